import Dispatch
import Foundation
import GRDB
import HexlistModel
import Synchronization
import TestSupport
import Testing

@testable import HexlistStore

@Suite(.timeLimit(.minutes(5))) struct CommitTests {
    private struct Mistake: Error {}

    @Test func aCompletionRunsOnlyOnceOthersSeeTheCommit() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let seen = Mutex<[Int64]>([])
        let done = DispatchSemaphore(value: 0)
        let reader = try DatabaseQueue(path: test.path)
        for number in 1...50 {
            let sender = Sender(peer: peer.id, fingerprint: peer.fingerprint, name: "", address: "::1")
            let incoming = hex(UInt64(number))
            test.store.submit(
                { writer in
                    try writer.receive(
                        [incoming], from: sender, at: start, policy: .everyone, quotas: HeldQuotas(hexesPerPeer: 100), diskReserve: 0)
                },
                completion: { result in
                    guard (try? result.get()) == [.stored] else { return }
                    let id = Int64(number)
                    let count = try? reader.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM hex WHERE id = ?", arguments: [id]) }
                    if count == 1 { seen.withLock { $0.append(id) } }
                    if number == 50 { done.signal() }
                })
        }
        try done.take()
        #expect(seen.withLock { $0 } == Array(1...50))
    }

    @Test func requestsThatWaitTogetherShareATransaction() throws {
        let test = try TestStore()
        let reader = try DatabaseQueue(path: test.path)
        let gate = try Gate(test.store)
        let seen = Mutex<[Int64?]>([])
        let done = DispatchSemaphore(value: 0)
        for number in 1...20 {
            test.store.submit(
                { try $0.appendEvent(.peerUp, at: Int64(number)) },
                completion: { _ in
                    let newest = try? reader.read { try Int64.fetchOne($0, sql: "SELECT max(number) FROM event") }
                    seen.withLock { $0.append(newest) }
                    if number == 20 { done.signal() }
                })
        }
        gate.release()
        try done.take()
        #expect(seen.withLock { $0 } == [Int64?](repeating: 20, count: 20))
        #expect(try test.read { try $0.eventPage(since: 0, limit: 100).items }.map(\.number) == Array(1...20))
    }

    @Test func manyDeferredRowsGoWithTheNextTransactionAfterItsOtherRequests() throws {
        let test = try TestStore()
        let reader = try DatabaseQueue(path: test.path)
        let gate = try Gate(test.store)
        let seen = Mutex<[Int64?]>([])
        let done = DispatchSemaphore(value: 0)
        for number in 1...3 {
            test.store.submit(
                rows: 40, isDeferrable: number < 3, { try $0.appendEvent(.peerUp, at: Int64(number)) },
                completion: { _ in
                    let newest = try? reader.read { try Int64.fetchOne($0, sql: "SELECT max(number) FROM event") }
                    seen.withLock { $0.append(newest) }
                    if number == 2 { done.signal() }
                })
        }
        gate.release()
        try done.take()
        #expect(seen.withLock { $0 } == [3, 3, 3])
        #expect(try test.read { try $0.eventPage(since: 0, limit: 100).items }.map(\.at) == [3, 1, 2])
    }

    @Test func aDeferredRequestLetsTheNextTransactionGoFirst() throws {
        let test = try TestStore()
        let reader = try DatabaseQueue(path: test.path)
        let gate = try Gate(test.store)
        let newest = Mutex<Int64?>(nil)
        let done = DispatchSemaphore(value: 0)
        gate.release()
        // The second request should be committed alone, before the deferred first one. If the writer takes the second one only after the
        // coalescing time of the first (3 ms), both share a transaction, which shows nothing. So the test repeats this.
        for number in 1...50 as ClosedRange<Int64> where newest.withLock({ $0 }) == nil {
            test.store.submit(isDeferrable: true, { try $0.appendEvent(.peerUp, at: 1) }, completion: { _ in done.signal() })
            test.store.submit(
                { try $0.appendEvent(.peerUp, at: 2) },
                completion: { _ in
                    let count = try? reader.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM event") }
                    if count == 2 * number - 1 { newest.withLock { $0 = count } }
                    done.signal()
                })
            try done.take()
            try done.take()
        }
        #expect(newest.withLock { $0 } != nil)
    }

    @Test func aDeferredRequestDoesNotWaitForTheEndOfABusyTime() throws {
        let test = try TestStore()
        let store = test.store
        let state = Mutex((isOver: false, count: 0))
        let over = DispatchSemaphore(value: 0)
        @Sendable func keepBusy() {
            let goesOn = state.withLock { state in
                state.count += 1
                return !state.isOver && state.count < 20_000
            }
            if goesOn { store.submit({ try $0.appendEvent(.peerUp, at: 1) }, completion: { _ in keepBusy() }) } else { over.signal() }
        }
        keepBusy()
        store.submit(isDeferrable: true, { try $0.appendEvent(.peerUp, at: 2) }, completion: { _ in state.withLock { $0.isOver = true } })
        try over.take()
        #expect(state.withLock { $0.count } < 20_000)
    }

    @Test func aDeferredRequestIsWrittenAloneIfNoneFollow() throws {
        let test = try TestStore()
        let done = DispatchSemaphore(value: 0)
        for _ in 1...3 {
            test.store.submit(isDeferrable: true, { try $0.appendEvent(.peerUp, at: 1) }, completion: { _ in done.signal() })
            try done.take()
        }
        #expect(try test.read { try $0.eventPage(since: 0, limit: 100).items }.count == 3)
    }

    @Test func aDeferredRequestIsWrittenWhenTheStoreCloses() throws {
        let test = try TestStore()
        let outcomes = Mutex<[Bool]>([])
        for _ in 1...3 {
            test.store.submit(
                isDeferrable: true, { try $0.appendEvent(.peerUp, at: 1) },
                completion: { result in outcomes.withLock { $0.append((try? result.get()) != nil) } })
        }
        try test.store.close()
        #expect(outcomes.withLock { $0 } == [true, true, true])
        let reader = try DatabaseQueue(path: test.path)
        #expect(try reader.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM event") } == 3)
    }

    @Test func aSmallRequestWaitsForOneTransactionOfLargeRequests() throws {
        let test = try TestStore()
        let gate = try Gate(test.store)
        let finished = Mutex<[String]>([])
        let done = DispatchSemaphore(value: 0)
        let reader = try DatabaseQueue(path: test.path)
        /// Names of the committed write requests, as another connection sees them.
        @Sendable func committed() -> Set<String> {
            Set((try? reader.read { try String.fetchAll($0, sql: "SELECT key FROM meta WHERE value = 'here'") }) ?? [])
        }
        let seen = Mutex<[String: Set<String>]>([:])
        func submit(_ name: String, rows: Int) {
            test.store.submit(rows: rows) {
                try $0.setMeta(name, "here")
            } completion: { _ in
                seen.withLock { $0[name] = committed() }
                finished.withLock { $0.append(name) }
                done.signal()
            }
        }
        // Five full batches, one over the limit of a transaction, and an interactive hex after them all.
        for number in 1...5 { submit("many-\(number)", rows: 4_096) }
        submit("most", rows: 20_000)
        submit("few", rows: 11)
        gate.release()
        for _ in 1...7 { try done.take() }
        #expect(finished.withLock { $0 } == ["few", "many-1", "many-2", "many-3", "many-4", "many-5", "most"])
        let first: Set = ["few", "many-1", "many-2", "many-3", "many-4"]
        #expect(seen.withLock { $0["few"] } == first && seen.withLock { $0["many-4"] } == first)
        #expect(seen.withLock { $0["many-5"] } == first.union(["many-5"]))
    }

    @Test("a burst is detected once; memory is released after little work, and again until there is none")
    func releasesOfABurst() {
        var state = MemoryReclaimerState()
        var begun = 0
        for _ in 1..<512 where state.passed(MemoryReclaimerState.operation) { begun += 1 }
        #expect(begun == 0)
        let begins = state.passed(MemoryReclaimerState.operation)
        let beginsAgain = state.passed(100 << 20)
        #expect(begins && !beginsAgain)
        let muchWork = state.check()
        #expect(muchWork == (releases: false, isRepeated: true))
        for _ in 1...3 {
            _ = state.passed(MemoryReclaimerState.little)
            let littleWork = state.check()
            #expect(littleWork == (releases: true, isRepeated: true))
        }
        _ = state.passed(MemoryReclaimerState.little + 1)
        let more = state.check()
        let none = state.check()
        #expect(more == (releases: false, isRepeated: true) && none == (releases: true, isRepeated: false))
        // The next burst is counted from 0 again.
        let little = state.passed(MemoryReclaimerState.burst - 1)
        let enough = state.passed(1)
        #expect(!little && enough)
    }

    @Test(arguments: [false, true]) func aRequestThatFailsIsRolledBackAlone(_ swallows: Bool) throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let gate = try Gate(test.store)
        let results = Mutex<[Int: Bool]>([:])
        let done = DispatchSemaphore(value: 0)
        for number in 1...5 {
            test.store.submit(
                { writer in
                    try writer.setMeta("\(number)", "here")
                    _ = try writer.enqueue(outgoing(UInt64(number), to: peer))
                    try writer.appendEvent(.peerUp, at: 1)
                    guard number == 3 else { return }
                    if swallows {  // a failed operation is undone completely, even if the caller catches its error
                        _ = try? writer.change {
                            try writer.run("DELETE FROM event")
                            try writer.run("INSERT INTO meta (key) VALUES ('no value')")
                        }
                    } else {
                        throw Mistake()
                    }
                },
                completion: { result in
                    results.withLock { $0[number] = (try? result.get()) != nil }
                    if number == 5 { done.signal() }
                })
        }
        gate.release()
        try done.take()
        #expect(results.withLock { $0 } == [1: true, 2: true, 3: false, 4: true, 5: true])
        #expect(try test.read { reader in try (1...5).map { try reader.meta("\($0)") != nil } } == [true, true, false, true, true])
        #expect(try test.read { try $0.eventPage(since: 0, limit: 10).items }.map(\.number) == [1, 2, 3, 4])
        #expect(try test.countersAreRight())
    }

    @Test func aRequestAloneThatFailsLeavesNothing() throws {
        let test = try TestStore()
        #expect(throws: Mistake.self) {
            try test.write { writer in
                try writer.setMeta("a", "b")
                throw Mistake()
            }
        }
        #expect(try test.read { try $0.meta("a") } == nil)
        try test.write { try $0.setMeta("a", "c") }
        #expect(try test.read { try $0.meta("a") } == "c")
    }

    @Test func aReadSeesTheNewestCommitAndItsErrorsArePeoples() async throws {
        let test = try TestStore()
        let store = test.store
        try await store.write { try $0.setMeta("a", "b") }
        #expect(try await store.read { try $0.meta("a") } == "b")
        let submitted = try await called { done in
            store.submitRead({ try $0.meta("a") }, completion: { done($0) })
        }
        #expect(try submitted.get() == "b")
        let failed = try await called { done in
            store.submitRead({ try $0.first("SELECT nothing", read: { $0.int64(0) }) }, completion: { done($0) })
        }
        #expect(throws: HexlistError.self) { try failed.get() }
        await #expect(throws: HexlistError.self) { try await store.read { try $0.db.execute(sql: "DELETE FROM hex") } }
        try store.close()
        let late = try await called { done in
            store.submitRead({ try $0.meta("a") }, completion: { done($0) })
        }
        #expect(throws: HexlistError.self) { try late.get() }
    }

    @Test func manyThreadsSubmitAtOnce() async throws {
        let test = try TestStore()
        let store = test.store
        let peer = try TestPeer(1)
        let ids = try await withThrowingTaskGroup(of: [Int64].self) { group in
            for thread in 0..<8 {
                group.addTask {
                    var ids: [Int64] = []
                    for number in 0..<50 {
                        let insert = outgoing(UInt64(thread * 1_000 + number), to: peer)
                        ids.append(try await store.write { try $0.enqueue(insert).id })
                    }
                    return ids
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(ids.sorted() == Array(1...400))
        #expect(try test.countersAreRight())
    }

    @Test func closingDoesWhatWaitsAndRefusesTheRest() throws {
        let test = try TestStore()
        let gate = try Gate(test.store)
        let results = Mutex<[Bool]>([])
        for number in 1...3 {
            test.store.submit(
                { try $0.setMeta("\(number)", "") },
                completion: { result in
                    results.withLock { $0.append((try? result.get()) != nil) }
                })
        }
        gate.release()
        try test.store.close()
        #expect(results.withLock { $0 } == [true, true, true])
        test.store.submit({ try $0.setMeta("4", "") }, completion: { result in results.withLock { $0.append((try? result.get()) != nil) } })
        #expect(results.withLock { $0 } == [true, true, true, false])
        let again = try HexStore(path: test.path)
        #expect(try again.readSync { reader in try (1...4).map { try reader.meta("\($0)") != nil } } == [true, true, true, false])
        try again.close()
    }

    /// A completion runs only after its transaction is durable: a copy of the files made in it is the store after a power cut at that
    /// moment.
    @Test func whatIsReportedDoneSurvivesACrash() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let copies = try TestStore.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: copies) }
        for number in 1...20 {
            let done = DispatchSemaphore(value: 0)
            let insert = outgoing(UInt64(number), to: peer, body: String(repeating: "x", count: 3_000))
            test.store.submit(
                { try $0.enqueue(insert) },
                completion: { [path = test.path] _ in
                    for file in ["", "-wal"] {
                        try? FileManager.default.copyItem(atPath: path + file, toPath: copies + "/\(number).sqlite" + file)
                    }
                    done.signal()
                })
            try done.take()
            let crashed = try HexStore(path: copies + "/\(number).sqlite")
            #expect(try crashed.readSync { try $0.outboxPage(limit: 100) }.items.map(\.id) == (1...Int64(number)).map { $0 })
            #expect(try crashed.readSync { try $0.counts() }.outbox.queued == Int64(number))
            #expect(try crashed.readSync { try String.fetchOne($0.db, sql: "PRAGMA integrity_check") } == "ok")
            try crashed.close()
        }
    }

    /// A WAL cut at any offset gives a store that opens, with a prefix of the transactions complete.
    @Test func aLogCutShortLosesWholeTransactionsOnly() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        for number in 1...20 { _ = try test.write { try $0.enqueue(outgoing(UInt64(number), to: peer)) } }
        let file = try Data(contentsOf: URL(fileURLWithPath: test.path))
        let log = try Data(contentsOf: URL(fileURLWithPath: test.path + "-wal"))
        let copies = try TestStore.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: copies) }
        var seen: Set<Int64> = []
        for step in 0..<40 {
            let path = copies + "/\(step).sqlite"
            try file.write(to: URL(fileURLWithPath: path))
            try log.prefix(log.count * step / 40).write(to: URL(fileURLWithPath: path + "-wal"))
            let cut = try HexStore(path: path)
            let queued = try cut.readSync { try $0.counts() }.outbox.queued
            #expect(try cut.readSync { try $0.outboxPage(limit: 100) }.items.map(\.id) == (0..<queued).map { $0 + 1 })
            seen.insert(queued)
            try cut.close()
        }
        #expect(seen.count > 10)
    }
}
