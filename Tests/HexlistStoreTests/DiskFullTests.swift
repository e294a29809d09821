import Dispatch
import Foundation
import GRDB
import HexlistModel
import Synchronization
import TestSupport
import Testing

@testable import HexlistStore

@Suite(.timeLimit(.minutes(5))) struct DiskFullTests {
    private func fill(_ store: HexStore, from first: UInt64, peer: TestPeer) throws -> (queued: Int, error: HexlistError?) {
        for number in 0..<2_000 {
            do {
                let insert = outgoing(first + UInt64(number), to: peer, body: String(repeating: "x", count: 9_000))
                _ = try store.writeSync { try $0.enqueue(insert) }
            } catch let error as HexlistError {
                return (number, error)
            }
        }
        return (2_000, nil)
    }

    @Test func aBoundedFileFailsWholePiecesAndGoesOnLater() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        try test.store.onWritingConnection { try $0.execute(sql: "PRAGMA max_page_count = 200") }
        let (queued, error) = try fill(test.store, from: 0, peer: peer)
        #expect(error?.code == .storageFull)
        #expect(error?.message.contains(test.path) == true)
        #expect(queued > 10 && queued < 200)
        #expect(try test.read { try $0.counts() }.outbox.queued == Int64(queued))
        #expect(try test.countersAreRight())

        try test.store.onWritingConnection { try $0.execute(sql: "PRAGMA max_page_count = 100000") }
        #expect(try test.write { try $0.enqueue(outgoing(9_999, to: peer)) }.id == Int64(queued) + 1)
        #expect(try test.countersAreRight())
    }

    @Test func piecesBesideTheOneThatDoesNotFitAreKeptOrSaidToHaveFailed() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        try test.store.onWritingConnection { try $0.execute(sql: "PRAGMA max_page_count = 100") }
        let results = Mutex<[Int: Bool]>([:])
        let done = DispatchSemaphore(value: 0)
        let gate = try Gate(test.store)
        for number in 1...30 {
            let insert = outgoing(UInt64(number), to: peer, body: String(repeating: "x", count: number == 7 ? 900_000 : 100))
            test.store.submit(
                { try $0.enqueue(insert) },
                completion: { result in
                    results.withLock { $0[number] = (try? result.get()) != nil }
                    if number == 30 { done.signal() }
                })
        }
        gate.release()
        try done.take()
        let kept = try test.read { reader in
            try reader.outboxPage(limit: 100).items.map { Int($0.messageID.uuid.low & 0xFFFF) }
        }
        #expect(results.withLock { $0.filter(\.value).keys.sorted() } == kept)
        #expect(results.withLock { $0[7] } == false)
        #expect(kept.contains(30))
        #expect(try test.countersAreRight())
    }

    @Test func theDiskReserveRefusesBeforeSQLiteFails() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        #expect(try test.receive([hex(1)], from: peer) == [.stored])
        let outcomes = try test.receive([hex(1), hex(2), hex(3)], from: peer, diskReserve: .max)
        #expect(
            outcomes == [
                .duplicate(of: .stored), .refused(.storageFull, retryAfter: RetryAfter.storageFull),
                .refused(.storageFull, retryAfter: RetryAfter.storageFull),
            ])
    }

    #if os(Linux)
        /// Mounts a file system of the given size over a folder; `false` if that is not permitted.
        private static func mountSmall(_ folder: String, bytes: Int, again: Bool = false) -> Bool {
            mount("tmpfs", folder, "tmpfs", again ? UInt(MS_REMOUNT) : 0, "size=\(bytes)") == 0
        }

        private static let canMount: Bool = {
            guard let folder = try? TestStore.makeFolder() else { return false }
            defer { try? FileManager.default.removeItem(atPath: folder) }
            guard mountSmall(folder, bytes: 1 << 20) else { return false }
            umount2(folder, Int32(MNT_DETACH))
            return true
        }()

        /// Hexes that are small on the wire are counted as they are stored: rows of links, in the WAL and in the file.
        @Test(.enabled(if: canMount, "mounts a tmpfs, so needs root")) func theReserveIsFreeAfterThousandsOfEmptyLinks() throws {
            let folder = try TestStore.makeFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            try #require(Self.mountSmall(folder, bytes: 40 << 20))
            defer { umount2(folder, Int32(MNT_DETACH)) }
            let (path, reserve) = (folder + "/s.sqlite", Int64(12 << 20))
            let store = try HexStore(path: path)
            let peer = try TestPeer(1)
            _ = try store.writeSync { try $0.setTrust(peer.id, .trusted, fingerprint: peer.fingerprint, name: "", at: start) }
            let sender = Sender(peer: peer.id, fingerprint: peer.fingerprint, name: "", address: "192.168.1.7")
            var content = HexContent()
            let unknown = content.add("Unknown")
            content.links = Array(repeating: LinkContent(url: .empty, linkDescription: .empty, service: unknown), count: 5_000)
            let frame = Array(#"{"links":[{}"#.utf8).count + 3 * 4_999
            var least = Int64.max
            var kept = 0
            fill: while true {
                // Several write requests share a transaction, as with sessions.
                let results = Mutex<[DeliveryResult]>([])
                let done = DispatchSemaphore(value: 0)
                for number in 0..<8 {
                    let incoming = IncomingHex(
                        content: content, messageID: message(UInt64(kept + number)), weight: content.weight(frame: frame))
                    store.submit(
                        {
                            try $0.receive(
                                [incoming], from: sender, at: start, policy: .held, quotas: HeldQuotas(), diskReserve: reserve)
                        },
                        completion: { result in
                            results.withLock { $0 += (try? result.get()) ?? [] }
                            done.signal()
                        })
                }
                for _ in 0..<8 { try done.take() }
                least = min(least, StoreFile.freeBytes(path) ?? 0)
                for outcome in results.withLock({ $0 }) {
                    guard case .stored = outcome else {
                        #expect(outcome == .refused(.storageFull, retryAfter: RetryAfter.storageFull))
                        break fill
                    }
                    kept += 1
                }
            }
            #expect(kept > 8)
            try store.close()  // close checkpoints the WAL
            least = min(least, StoreFile.freeBytes(path) ?? 0)
            #expect(least >= reserve, "\(least) bytes were left after \(kept) hexes")
        }

        /// Fills a file system except for the given number of bytes.
        private static func fill(_ folder: String, butFor left: Int) throws {
            let free = try #require(StoreFile.freeBytes(folder))
            let descriptor = open(folder + "/ballast", O_CREAT | O_RDWR, 0o600)
            defer { close(descriptor) }
            #expect(posix_fallocate(descriptor, 0, off_t(free) - off_t(left)) == 0)
        }

        @Test(
            "on a full disk the store is read-only; once there is space it is writable again",
            .enabled(if: canMount, "mounts a tmpfs, so needs root"), arguments: [0, 4, 8, 16, 32, 48, 64, 128], [false, true])
        func fullAtTheStart(kibibytes: Int, wasKilled: Bool) async throws {
            let folder = try TestStore.makeFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            try #require(Self.mountSmall(folder, bytes: 8 << 20))
            defer { umount2(folder, Int32(MNT_DETACH)) }
            let path = folder + "/s.sqlite"
            let made = try TestStore()
            try made.write { try $0.setMeta("a", "b") }
            if !wasKilled { try made.store.close() }
            for end in wasKilled ? ["", "-wal"] : [""] { try FileManager.default.copyItem(atPath: made.path + end, toPath: path + end) }
            try Self.fill(folder, butFor: kibibytes << 10)

            let store = try HexStore(path: path)
            #expect(store.fault?.code == .storageFull)
            #expect(try store.readSync { try $0.meta("a") } == "b")
            #expect(try await store.read { try $0.meta("a") } == "b")
            let error = #expect(throws: HexlistError.self) { try store.writeSync { try $0.setMeta("a", "c") } }
            #expect(error?.code == .storageFull)
            let told = Mutex<StoreChange>([])
            store.observe { change in told.withLock { $0.formUnion(change) } }

            unlink(folder + "/ballast")
            if kibibytes % 8 == 0 {
                try store.writeSync { try $0.setMeta("a", "c") }  // without coalescing
                #expect(try store.readSync { try $0.meta("a") } == "c")
            }
            // The store recovers automatically, and the observer gets `.room`.
            try await eventually { store.fault == nil && told.withLock { $0 }.contains(.room) }
            try store.writeSync { try $0.setMeta("a", "d") }
            #expect(try await store.read { try $0.meta("a") } == "d")
            try store.close()
            let again = try HexStore(path: path)
            #expect(again.fault == nil)
            #expect(try again.readSync { try $0.meta("a") } == "d")
            try again.close()
        }

        @Test(
            "a store that cannot be reopened once there is space fails reads, and recovers automatically",
            .enabled(if: canMount, "mounts a tmpfs, so needs root"))
        func lostWhileItIsOnlyRead() async throws {
            let folder = try TestStore.makeFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            try #require(Self.mountSmall(folder, bytes: 8 << 20))
            defer { umount2(folder, Int32(MNT_DETACH)) }
            let path = folder + "/s.sqlite"
            let made = try TestStore()
            try made.write { try $0.setMeta("a", "b") }
            try made.store.close()
            try FileManager.default.copyItem(atPath: made.path, toPath: path)
            try Self.fill(folder, butFor: 0)
            let store = try HexStore(path: path)
            #expect(store.fault?.code == .storageFull)

            // A folder replaces the database, so that neither write nor read connections can be opened.
            try #require(rename(path, path + ".away") == 0 && mkdir(path, 0o700) == 0)
            unlink(folder + "/ballast")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 {
                    // Reads in flight and new reads while the connection is closed.
                    group.addTask {
                        for _ in 0..<200 { if let value = try? await store.read({ try $0.meta("a") }) { #expect(value == "b") } }
                    }
                }
                #expect(throws: HexlistError.self) { try store.writeSync { try $0.setMeta("a", "c") } }
                try await group.waitForAll()
            }
            let blocking = #expect(throws: HexlistError.self) { try store.readSync { try $0.meta("a") } }
            #expect(blocking?.code == .storageFull)
            await #expect(throws: HexlistError.self) { try await store.read { try $0.meta("a") } }

            try #require(rmdir(path) == 0 && rename(path + ".away", path) == 0)
            try store.writeSync { try $0.setMeta("a", "c") }
            #expect(try await store.read { try $0.meta("a") } == "c")
            try store.close()
        }

        @Test(
            "a full disk is the reported reason, even while another program has the store open",
            .enabled(if: canMount, "mounts a tmpfs, so needs root"), arguments: [false, true])
        func fullBesideAnotherProgram(isLocked: Bool) async throws {
            let folder = try TestStore.makeFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            try #require(Self.mountSmall(folder, bytes: 8 << 20))
            defer { umount2(folder, Int32(MNT_DETACH)) }
            let path = folder + "/s.sqlite"
            let made = try TestStore()
            try made.write { try $0.setMeta("a", "b") }
            try made.store.close()
            try FileManager.default.copyItem(atPath: made.path, toPath: path)
            var configuration = Configuration()
            if isLocked { configuration.prepareDatabase { try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE") } }
            let other = try DatabaseQueue(path: path, configuration: configuration)
            try await other.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN")
                _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM meta")
                try db.execute(sql: "COMMIT")
            }
            try Self.fill(folder, butFor: 0)
            if isLocked {
                let error = #expect(throws: HexlistError.self) { try HexStore(path: path) }
                #expect(error?.code == .storageFull)
                try other.close()
            }

            let store = try HexStore(path: path)
            #expect(store.fault?.code == .storageFull)
            #expect(try await store.read { try $0.meta("a") } == "b")
            unlink(folder + "/ballast")
            try store.writeSync { try $0.setMeta("a", "c") }
            #expect(try await store.read { try $0.meta("a") } == "c")
            try store.close()
            if !isLocked { try other.close() }
        }

        @Test(
            "a read-only store that is closed fails later reads",
            .enabled(if: canMount, "mounts a tmpfs, so needs root"))
        func readAfterTheEnd() async throws {
            let folder = try TestStore.makeFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            try #require(Self.mountSmall(folder, bytes: 8 << 20))
            defer { umount2(folder, Int32(MNT_DETACH)) }
            let made = try TestStore()
            try made.store.close()
            try FileManager.default.copyItem(atPath: made.path, toPath: folder + "/s.sqlite")
            try Self.fill(folder, butFor: 0)
            let store = try HexStore(path: folder + "/s.sqlite")
            try store.close()
            #expect(throws: HexlistError.self) { try store.readSync { try $0.meta("a") } }
            await #expect(throws: HexlistError.self) { try await store.read { try $0.meta("a") } }
        }

        @Test(
            "a store of an earlier version is not read on a full disk, because it must be migrated first",
            .enabled(if: canMount, "mounts a tmpfs, so needs root"))
        func fullBeforeAMigration() throws {
            let folder = try TestStore.makeFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            try #require(Self.mountSmall(folder, bytes: 8 << 20))
            defer { umount2(folder, Int32(MNT_DETACH)) }
            let path = folder + "/s.sqlite"
            let queue = try DatabaseQueue(path: path)
            try StoreSchema.migrator.migrate(queue, upTo: StoreSchema.migrator.migrations[11])
            try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA application_id = \(StoreFile.applicationID)") }
            try queue.close()
            try Self.fill(folder, butFor: 0)
            let error = #expect(throws: HexlistError.self) { try HexStore(path: path).close() }
            #expect(error?.code == .storageFull, "\(error?.message ?? "")")
            unlink(folder + "/ballast")
            try HexStore(path: path).close()
        }

        /// A real full file system: COMMIT itself fails, not an earlier operation.
        @Test(.enabled(if: canMount, "mounts a tmpfs, so needs root")) func aFullFileSystemFailsTheCommitAndRecovers() throws {
            let folder = try TestStore.makeFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            try #require(Self.mountSmall(folder, bytes: 2 << 20))
            defer { umount2(folder, Int32(MNT_DETACH)) }
            let store = try HexStore(path: folder + "/s.sqlite")
            let peer = try TestPeer(1)
            let (queued, error) = try fill(store, from: 0, peer: peer)
            #expect(error?.code == .storageFull)
            #expect(queued > 10)
            #expect(try store.readSync { try $0.counts() }.outbox.queued == Int64(queued))
            try #require(Self.mountSmall(folder, bytes: 32 << 20, again: true))
            #expect(try store.writeSync { try $0.enqueue(outgoing(9_999, to: peer)) }.id == Int64(queued) + 1)
            try store.close()
            let again = try HexStore(path: folder + "/s.sqlite")
            #expect(try again.readSync { try $0.counts() }.outbox.queued == Int64(queued) + 1)
            try again.close()
        }
    #endif
}
