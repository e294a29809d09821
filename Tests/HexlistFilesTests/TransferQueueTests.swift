import HexlistModel
import TestSupport
import Testing

@testable import HexlistFiles

@Suite("Transfer queue") struct TransferQueueTests {
    private static let now = ContinuousClock.now
    private static func peer(_ number: UInt64) -> PeerID { PeerID(UUIDBytes(high: 1, low: number)) }
    private static func key(_ number: Int64) -> TransferKey { TransferKey(url: "\(number)", folder: "/") }

    /// A queue and a caller that performs its actions.
    private struct Stage {
        var queue = TransferQueue()
        var now = TransferQueueTests.now
        var running: [TransferAttemptID: TransferID] = [:]
        var places: [TransferAttemptID: (place: TransferQueue.Slot, peer: PeerID)] = [:]
        var states: [TransferID: TransferState] = [:]
        var armed: TransferQueue.Instant?
        var started: [TransferID] = []
        /// Attempts that were asked to yield.
        var leaving: [TransferAttemptID] = []
        var peers: [TransferID: PeerID] = [:]
        var arrived: [TransferAttemptID: Int64] = [:]

        mutating func take(_ actions: [TransferQueue.Action]) {
            for action in actions {
                switch action {
                case .start(let id, let run, let peer, let place):
                    #expect(running.updateValue(id, forKey: run) == nil && peers[id] == peer)
                    places[run] = (place, peer)
                    #expect(running.values.count { $0 == id } == 1, "two runs of one transfer")
                    started.append(id)
                case .stop(let run):
                    #expect(running.removeValue(forKey: run) != nil)
                    places[run] = nil
                case .preempt(let run):
                    #expect(running[run] != nil)
                    leaving.append(run)
                case .changed(let id, let state): states[id] = state
                case .arm(let at):
                    #expect(armed != at, "armed twice for the same instant")
                    armed = at
                }
            }
            let taken = Dictionary(grouping: places.filter { running[$0.key] != nil }.values, by: \.place.number)
            #expect(running.count == queue.runningCount && taken.count <= TransferQueue.slotCount)
            for runs in taken.values {
                #expect(runs.count == 1 || runs.allSatisfy(\.place.isShared) && runs.count <= TransferQueue.maximumPerSlot)
                #expect(Set(runs.map(\.peer)).count == 1)
            }
        }

        @discardableResult
        mutating func add(
            _ id: Int64, peer: UInt64, key: Int64? = nil, isSmall: Bool = false, resumes: Bool = true, force: Bool = false
        ) -> TransferQueue.Admission {
            peers[TransferID(id)] = TransferQueueTests.peer(peer)
            let (admission, actions) = queue.add(
                TransferID(id), peer: TransferQueueTests.peer(peer), key: TransferQueueTests.key(key ?? id), isSmall: isSmall,
                resumes: resumes, force: force, now: now)
            take(actions)
            return admission
        }

        mutating func come(_ peer: UInt64) { take(queue.peerCame(TransferQueueTests.peer(peer), now: now)) }
        mutating func go(_ peer: UInt64) { take(queue.peerWent(TransferQueueTests.peer(peer), now: now)) }

        func run(of id: Int64) -> TransferAttemptID? { running.first { $0.value == TransferID(id) }?.key }

        /// Advances the clock while some transfers receive the given number of bytes each. Calls `deadlineReached` when it is due.
        mutating func pass(_ time: Duration, bytes: [Int64: Int64] = [:]) {
            let end = now + time
            for (id, count) in bytes {
                guard let run = run(of: id) else { continue }
                arrived[run, default: 0] += count
                queue.progressed(run, arrived: arrived[run] ?? 0)
            }
            while let at = armed, at <= end { wait() }
            now = end
        }

        /// Ends the attempts that were asked to yield.
        /// - Returns: their transfers.
        mutating func preempt() -> [Int64] {
            let ids = leaving.compactMap { running[$0]?.value }
            leaving = []
            for id in ids { end(id, .preempted) }
            return ids
        }

        mutating func end(_ id: Int64, _ outcome: TransferQueue.AttemptResult) {
            guard let run = running.first(where: { $0.value == TransferID(id) })?.key else {
                Issue.record("\(id) does not run")
                return
            }
            running[run] = nil
            take(queue.ended(run, outcome, now: now))
        }

        /// Advances the clock to the armed deadline.
        mutating func wait() {
            guard let at = armed else {
                Issue.record("nothing is armed")
                return
            }
            now = max(now, at)
            armed = nil
            take(queue.deadlineReached(now: now))
        }

        func state(_ id: Int64) -> TransferState? { queue.state(of: TransferID(id)) }
        var runningIDs: [Int64] { running.values.map(\.value).sorted() }
    }

    @Test("four run at once, and peers alternate")
    func turns() {
        var stage = Stage()
        for id in 1...8 { stage.add(Int64(id), peer: 1) }
        #expect(stage.running.isEmpty && stage.state(1) == .waiting(.peer))
        stage.come(1)
        #expect(stage.runningIDs == [1, 2, 3, 4] && stage.state(5) == .waiting(.slot))
        stage.come(2)
        stage.come(3)
        for id in 11...12 { stage.add(Int64(id), peer: 2) }
        stage.add(21, peer: 3)
        // A peer has at most three slots while others wait.
        for id in 1...4 { stage.end(Int64(id), .done) }
        #expect(stage.started.map(\.value) == [1, 2, 3, 4, 11, 5, 21, 12])
        #expect(stage.states[TransferID(1)] == .done && stage.state(1) == nil)
        for id in [11, 5, 21, 12] { stage.end(Int64(id), .done) }
        #expect(stage.started.suffix(3).map(\.value) == [6, 7, 8] && stage.armed == nil)
    }

    @Test("a peer with all slots returns exactly one when another peer waits")
    func threePlaces() {
        var stage = Stage()
        stage.come(1)
        for id in 1...8 { stage.add(Int64(id), peer: 1) }
        #expect(stage.runningIDs == [1, 2, 3, 4] && stage.leaving.isEmpty)
        stage.come(2)
        stage.add(11, peer: 2)
        // The newest transfer yields, because it has received the least.
        #expect(stage.preempt() == [4] && stage.runningIDs == [1, 2, 3, 11])
        #expect(stage.state(4) == .waiting(.slot))
        // The first peer has two slots left, so it gets the next one, although the other peer waits for a second one.
        stage.add(12, peer: 2)
        stage.end(1, .done)
        #expect(stage.runningIDs == [2, 3, 5, 11] && stage.leaving.isEmpty)
        stage.end(11, .done)
        stage.end(12, .done)
        #expect(stage.runningIDs == [2, 3, 5, 6] && stage.leaving.isEmpty)
        // A transfer that yielded is queued behind its peer's others.
        #expect(stage.started.map(\.value) == [1, 2, 3, 4, 11, 5, 12, 6])
    }

    @Test(
        "a slow transfer gives way while another peer waits, and goes on when nobody does",
        arguments: [(Int64(120), true), (TransferQueue.minimumRate - 1, true), (TransferQueue.minimumRate, false), (1 << 20, false)])
    func slow(rate: Int64, yields: Bool) {
        var stage = Stage()
        for peer in 1...3 as ClosedRange<UInt64> { stage.come(peer) }
        for id in 1...3 { stage.add(Int64(id), peer: 1) }
        stage.add(11, peer: 2)
        let bytes = { (seconds: Int64) -> [Int64: Int64] in [1: rate * seconds, 2: rate * seconds, 3: rate * seconds, 11: rate * seconds] }
        // No peer waits: slow transfers continue, and no deadline is armed.
        for _ in 1...100 { stage.pass(.seconds(60), bytes: bytes(60)) }
        #expect(stage.runningIDs == [1, 2, 3, 11] && stage.leaving.isEmpty && stage.armed == nil)
        stage.add(21, peer: 3)
        stage.pass(.seconds(29), bytes: bytes(29))
        #expect(stage.leaving.isEmpty)
        stage.pass(.seconds(1), bytes: bytes(1))
        #expect(stage.leaving.count == (yields ? 1 : 0))
        if yields {
            let left = stage.preempt()
            #expect(stage.runningIDs == [1, 2, 3, 11, 21].filter { !left.contains($0) }, "\(left)")
            // The slow transfer gets another slot later, so that a slow link makes progress too.
            for _ in 1...8 {
                stage.pass(.seconds(30), bytes: [21: 30 << 20])
                _ = stage.preempt()
            }
            #expect(stage.started.count { $0.value == left[0] } > 1)
        }
    }

    @Test("a transfer that cannot resume keeps its slot, and an ended attempt is not asked twice")
    func keepsPlace() {
        var stage = Stage()
        stage.come(1)
        stage.come(2)
        for id in 1...4 { stage.add(Int64(id), peer: 1, resumes: false) }
        stage.add(11, peer: 2)
        stage.pass(.seconds(120))
        #expect(stage.leaving.isEmpty && stage.runningIDs == [1, 2, 3, 4] && stage.armed == nil)
        stage.end(1, .done)
        #expect(stage.runningIDs == [2, 3, 4, 11])
        // The peer's small files leave their shared slot together, then share one again.
        var other = Stage()
        other.come(1)
        for id in 1...64 { other.add(Int64(id), peer: 1, isSmall: true) }
        other.come(2)
        other.add(100, peer: 2)
        #expect(other.leaving.count == TransferQueue.maximumPerSlot)
        other.pass(.seconds(120))
        #expect(other.leaving.count == TransferQueue.maximumPerSlot, "one place at a time")
        #expect(other.preempt().count == TransferQueue.maximumPerSlot && other.state(100) == .running)
        other.end(100, .done)
        #expect(other.running.count == 64)
    }

    @Test("a peer's small files share a slot unless another peer or a large file waits for one")
    func sharing() {
        var stage = Stage()
        stage.come(1)
        let most = Int64(TransferQueue.slotCount * TransferQueue.maximumPerSlot)
        for id in 1...(most + 20) { stage.add(id, peer: 1, isSmall: true) }
        #expect(stage.runningIDs == Array(1...most))
        stage.end(1, .done)
        #expect(stage.running.count == Int(most) && stage.runningIDs.last == most + 1)
        // Another peer arrives: it gets the first slot that becomes free.
        stage.come(2)
        stage.add(1_000, peer: 2)
        let last = stage.runningIDs.filter { $0 != 1_000 }
        var ended = 0
        for id in last where stage.state(1_000) == .waiting(.slot) {
            stage.end(id, .done)
            ended += 1
        }
        #expect(stage.state(1_000) == .running && ended >= TransferQueue.maximumPerSlot)
        // An interrupted transfer no longer shares a slot.
        var other = Stage()
        other.come(1)
        for id in 1...Int64(6) { other.add(id, peer: 1, isSmall: true) }
        #expect(other.runningIDs == Array(1...6))
        for id in 1...Int64(6) { other.end(id, .interrupted(progressed: false)) }
        other.wait()
        #expect(other.running.count == TransferQueue.slotCount)
        #expect(other.places.filter { other.running[$0.key] != nil }.values.allSatisfy { !$0.place.isShared })
    }

    @Test("an absent peer, a lost link and a full disk are unlimited waits, not failures")
    func waits() {
        var stage = Stage()
        stage.come(1)
        stage.add(1, peer: 1)
        for _ in 1...20 {
            stage.end(1, .diskFull)
            #expect(stage.state(1) == .waiting(.disk) && stage.armed == stage.now + TransferQueue.diskRetryDelay)
            stage.wait()
            #expect(stage.runningIDs == [1])
        }
        var pauses: [Duration] = []
        for _ in 1...9 {
            stage.end(1, .interrupted(progressed: false))
            #expect(stage.state(1) == .waiting(.link))
            pauses.append(stage.now.duration(to: stage.armed ?? stage.now))
            stage.wait()
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
        stage.end(1, .interrupted(progressed: true))
        #expect(stage.armed == stage.now + .seconds(1))
        // A new session justifies an immediate attempt.
        stage.come(1)
        #expect(stage.runningIDs == [1] && stage.armed == nil)
        stage.go(1)
        stage.end(1, .interrupted(progressed: true))
        #expect(stage.state(1) == .waiting(.peer) && stage.armed == nil)
        stage.come(1)
        #expect(stage.runningIDs == [1])
    }

    @Test("several attempts on one lost link share one pause, and resume in order")
    func oneLink() {
        var stage = Stage()
        stage.come(1)
        for id in 1...6 { stage.add(Int64(id), peer: 1) }
        // The first interrupted transfer pauses the peer, so its queued transfers do not start.
        for id in 1...4 { stage.end(Int64(id), .interrupted(progressed: false)) }
        #expect(stage.running.isEmpty && stage.armed == stage.now + .seconds(1))
        stage.wait()
        #expect(stage.runningIDs == [1, 2, 3, 4])
    }

    @Test("three failures caused by the source pause for three minutes; only force restarts the transfer earlier")
    func failures() {
        var stage = Stage()
        stage.come(1)
        stage.add(1, peer: 1)
        stage.end(1, .sourceFault)
        #expect(stage.state(1) == .waiting(.source))
        stage.wait()
        stage.end(1, .interrupted(progressed: true))  // neither a success nor a failure
        stage.wait()
        stage.end(1, .sourceFault)
        stage.wait()
        stage.end(1, .sourceFault)
        let until = stage.now + .seconds(180)
        #expect(stage.state(1) == .paused(until: until) && stage.armed == until)
        #expect(stage.add(2, peer: 1, key: 1) == .paused(until: until))
        #expect(stage.queue.retry(TransferID(1), now: stage.now).admission == .paused(until: until))
        #expect(stage.running.isEmpty)
        #expect(stage.add(2, peer: 1, key: 1, force: true) == .known(TransferID(1)))
        #expect(stage.runningIDs == [1])
        // Failures of a transfer are remembered after it was cancelled.
        for _ in 1...2 {
            stage.end(1, .sourceFault)
            stage.wait()
        }
        stage.end(1, .sourceFault)
        stage.take(stage.queue.cancel(TransferID(1), now: stage.now))
        #expect(stage.add(3, peer: 1, key: 1) == .paused(until: stage.now + .seconds(180)))
        stage.now += .seconds(180)
        #expect(stage.add(3, peer: 1, key: 1) == .accepted && stage.runningIDs == [3])
        #expect(stage.add(4, peer: 1, key: 3) == .accepted)
    }

    @Test("it continues after a pause, and fails after three rounds")
    func rounds() {
        var stage = Stage()
        stage.come(1)
        stage.add(1, peer: 1)
        for round in 1...3 {
            for attempt in 1...3 {
                stage.end(1, .sourceFault)
                if round < 3 || attempt < 3 { stage.wait() }
            }
        }
        #expect(stage.state(1) == nil && stage.states[TransferID(1)] == .failed && stage.started.count == 9)
        #expect(stage.armed == nil && stage.queue.count == 0)
        #expect(stage.add(2, peer: 1, key: 1) == .paused(until: stage.now + .seconds(180)))
        #expect(stage.add(2, peer: 1, key: 1, force: true) == .accepted)
        stage.end(2, .done)
        #expect(stage.add(3, peer: 1, key: 1) == .accepted)
        stage.end(3, .final)
        #expect(stage.states[TransferID(3)] == .failed && stage.add(4, peer: 1, key: 1) == .accepted)
    }

    @Test("late events for a cancelled transfer or an ended attempt are dropped")
    func cancels() throws {
        var stage = Stage()
        stage.come(1)
        for id in 1...6 { stage.add(Int64(id), peer: 1) }
        let run = try #require(stage.running.first { $0.value == TransferID(2) }?.key)
        stage.take(stage.queue.cancel(TransferID(2), now: stage.now))
        stage.take(stage.queue.cancel(TransferID(5), now: stage.now))
        #expect(stage.runningIDs == [1, 3, 4, 6] && stage.states[TransferID(2)] == .cancelled && stage.states[TransferID(5)] == .cancelled)
        #expect(stage.queue.ended(run, .done, now: stage.now).isEmpty && stage.queue.ended(run, .sourceFault, now: stage.now).isEmpty)
        #expect(stage.queue.cancel(TransferID(2), now: stage.now).isEmpty)
        #expect(stage.queue.retry(TransferID(2), now: stage.now).admission == .unknown)
        #expect(stage.queue.ended(TransferAttemptID(999), .done, now: stage.now).isEmpty)
        #expect(stage.queue.retry(TransferID(1), now: stage.now) == (.accepted, []))
    }

    @Test("the same file into the same folder is one transfer; a retry ends its wait")
    func same() {
        var stage = Stage()
        stage.add(1, peer: 1)
        #expect(stage.add(2, peer: 1, key: 1) == .known(TransferID(1)) && stage.queue.count == 1)
        #expect(
            TransferKey(url: "a", folder: "b") != TransferKey(url: "a", folder: "c")
                && TransferKey(url: "a", folder: "b") != TransferKey(url: "ab", folder: ""))
        stage.come(1)
        stage.end(1, .diskFull)
        stage.take(stage.queue.retry(TransferID(1), now: stage.now).actions)
        #expect(stage.runningIDs == [1] && stage.armed == nil)
        stage.end(1, .interrupted(progressed: false))
        stage.take(stage.queue.retry(TransferID(1), now: stage.now).actions)
        #expect(stage.runningIDs == [1] && stage.armed == nil)
    }

    @Test("the queue is bounded; adding for an absent peer and cancelling leaves no state", .offPool)
    func bounded() {
        var queue = TransferQueue()
        for id in 0..<Int64(TransferQueue.maximumCount) {
            _ = queue.add(TransferID(id), peer: Self.peer(1), key: Self.key(id), now: Self.now)
        }
        #expect(queue.add(TransferID(-1), peer: Self.peer(1), key: Self.key(-1), now: Self.now).admission == .full)
        for id in 0..<Int64(TransferQueue.maximumCount) { _ = queue.cancel(TransferID(id), now: Self.now) }
        for id in 0..<10_000 as Range<Int64> {
            _ = queue.add(TransferID(id), peer: Self.peer(1), key: Self.key(id), now: Self.now)
            _ = queue.cancel(TransferID(id), now: Self.now)
        }
        #expect(queue.count == 0 && queue.bookkeepingCount < 1_000)
    }

    @Test(
        "random histories: slots are used, peers alternate, no transfer is lost, and armed deadlines are due", .offPool,
        arguments: 1...40 as ClosedRange<UInt64>)
    func random(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var stage = Stage()
        var present: Set<UInt64> = []
        var added: [Int64] = []
        for _ in 1...600 {
            switch Int.random(in: 0..<12, using: &random) {
            case 0...3:
                let id = Int64(added.count + 1)
                if stage.add(id, peer: UInt64.random(in: 1...5, using: &random)) == .accepted {
                    added.append(id)
                } else {
                    Issue.record("not taken")
                }
            case 4:
                let peer = UInt64.random(in: 1...5, using: &random)
                if present.insert(peer).inserted {
                    stage.come(peer)
                } else {
                    present.remove(peer)
                    stage.go(peer)
                }
            case 5: if let id = added.randomElement(using: &random) { stage.take(stage.queue.cancel(TransferID(id), now: stage.now)) }
            case 6:
                if let id = added.randomElement(using: &random) {
                    stage.take(stage.queue.retry(TransferID(id), force: Bool.random(using: &random), now: stage.now).actions)
                }
            case 7: if stage.armed != nil { stage.wait() }
            case 8: stage.now += .milliseconds(Int.random(in: 0...500, using: &random))
            default:
                guard let id = stage.runningIDs.randomElement(using: &random) else { break }
                let outcomes: [TransferQueue.AttemptResult] = [
                    .done, .done, .interrupted(progressed: false), .interrupted(progressed: true), .diskFull, .sourceFault, .sourceFault,
                    .preempted, .final,
                ]
                stage.end(id, outcomes.randomElement(using: &random) ?? .done)
            }
            // A free slot means that no transfer could use it.
            if stage.running.count < TransferQueue.slotCount {
                #expect(!added.contains { stage.state($0) == .waiting(.slot) })
            }
            for id in added {
                switch stage.state(id) {
                case .running?: #expect(stage.runningIDs.contains(id))
                case .waiting(.peer)?: break
                case nil: #expect([.done, .failed, .cancelled].contains(stage.states[TransferID(id)]))
                default: #expect(!stage.runningIDs.contains(id))
                }
                if case .paused? = stage.state(id) { #expect(stage.armed != nil) }
                if case .waiting(.disk)? = stage.state(id) { #expect(stage.armed != nil) }
                if case .waiting(.link)? = stage.state(id) { #expect(stage.armed != nil) }
            }
        }
        // In the end all peers are online and all transfers succeed.
        for peer in 1...5 as ClosedRange<UInt64> { stage.come(peer) }
        while stage.queue.count > 0 {
            if let id = stage.runningIDs.first { stage.end(id, .done) } else { stage.wait() }
        }
        #expect(added.allSatisfy { [.done, .failed, .cancelled].contains(stage.states[TransferID($0)]) })
        #expect(stage.queue.bookkeepingCount <= 64 + 5)
    }

    @Test("a peer with one file waits at most one turn behind a peer with a thousand")
    func fair() {
        var stage = Stage()
        stage.come(1)
        stage.come(2)
        for id in 1...1_000 { stage.add(Int64(id), peer: 1) }
        stage.add(2_000, peer: 2)
        stage.end(stage.runningIDs[0], .done)
        #expect(stage.runningIDs.contains(2_000))
    }

    @Test("an attempt with all its bytes passes its slot on; the number of attempts waiting for names is bounded")
    func received() {
        var stage = Stage()
        stage.come(1)
        for id in 1...1_000 { stage.add(Int64(id), peer: 1) }
        var received: [TransferAttemptID] = []
        while let run = stage.running.keys.min(by: { $0.value < $1.value }) {
            received.append(run)
            stage.running[run] = nil
            stage.take(stage.queue.received(run, now: stage.now))
        }
        #expect(received.count == TransferQueue.maximumReceived + TransferQueue.slotCount - 1)
        #expect(stage.state(1) == .running && stage.state(1_000) == .waiting(.slot))
        // Each attempt that ends lets one more start. Repeated events, and those of abandoned attempts, are ignored.
        stage.take(stage.queue.ended(received[0], .done, now: stage.now))
        #expect(stage.states[TransferID(1)] == .done && stage.runningIDs.isEmpty)
        for run in received.dropFirst().prefix(4) { stage.take(stage.queue.ended(run, .done, now: stage.now)) }
        #expect(stage.runningIDs.count == TransferQueue.slotCount)
        let late = stage.queue.ended(received[0], .done, now: stage.now) + stage.queue.received(received[1], now: stage.now)
        #expect(late.isEmpty)
        stage.running[received[10]] = TransferID(11)
        stage.take(stage.queue.cancel(TransferID(11), now: stage.now))
        #expect(stage.states[TransferID(11)] == .cancelled)
        let dropped = stage.queue.ended(received[10], .done, now: stage.now)
        #expect(dropped.isEmpty)
        stage.take(stage.queue.ended(received[11], .sourceFault, now: stage.now))
        #expect(stage.state(12) != .running)
    }
}
