import HexlistModel
import Synchronization
import Testing

@testable import HexlistDelivery

@Suite("Send progress")
struct SendTrackerTests {
    static let peers = (1...3).map { PeerID(UUIDBytes(high: $0, low: 0)) }

    static func send(_ kind: TrackedSend.Kind, onChange: @escaping @Sendable () -> Void = {}) -> TrackedSend {
        TrackedSend(to: peers, kind, .system, onChange: onChange)
    }

    /// Follows a send with rows 1, 2 and 3, one for each peer, which are all from line 7 of a bulk stream.
    static func followed(_ kind: TrackedSend.Kind, by tracker: inout SendTracker, onChange: @escaping @Sendable () -> Void = {})
        -> TrackedSend
    {
        let send = send(kind, onChange: onChange)
        tracker.follow(send)
        for (row, peer) in zip(Int64(1)..., peers) {
            send.accepted(row, for: peer, .queued, line: 7)
        }
        return send
    }

    static func move(_ row: Int64, _ from: OutboxState = .queued, to state: OutboxState) -> OutboxStateChange {
        OutboxStateChange(id: row, peer: peers[Int(row) - 1], from: from, to: state)
    }

    @Test("rows of a single hex end with their receipts, once")
    func single() {
        var tracker = SendTracker()
        let looks = Mutex(0)
        let send = Self.followed(.single(bytes: 10), by: &tracker) { looks.withLock { $0 += 1 } }
        #expect(tracker.followsReceipts && !tracker.followsStore)
        tracker.received([Self.move(1, to: .stored), Self.move(2, to: .held)])
        #expect(send.delivered == [1: .stored, 2: .held])
        #expect(send.pending == [Self.peers[2]: 1])
        #expect(looks.withLock { $0 } == 1)
        // The commit that follows changes nothing, and other sends' rows are ignored.
        tracker.moved([Self.move(1, to: .stored), Self.move(2, to: .held)])
        tracker.moved([OutboxStateChange(id: 9, peer: Self.peers[0], from: .queued, to: .failed)])
        #expect(looks.withLock { $0 } == 1)
        tracker.moved([Self.move(3, to: .rejected)])
        #expect(send.pending.isEmpty)
        #expect(send.counts.stored == 1 && send.counts.held == 1 && send.counts.rejected == 1 && send.counts.queued == 0)
    }

    @Test("rows of a stream end with the commit; failures are reported by line, and a row queued again is pending again")
    func stream() {
        var tracker = SendTracker()
        let send = Self.followed(.stream(reportsAll: false), by: &tracker)
        #expect(!tracker.followsReceipts && tracker.followsStore)
        tracker.received([Self.move(1, to: .stored)])
        #expect(send.counts.queued == 3)
        tracker.moved([Self.move(1, to: .stored), Self.move(2, to: .failed)])
        #expect(send.counts.stored == 1 && send.counts.failed == 1 && send.counts.queued == 1)
        #expect(send.pending == [Self.peers[2]: 1])
        #expect(send.takeFailures() == [2] && send.takeFailures().isEmpty)
        #expect(send.line(of: 2) == 7 && send.line(of: 4) == nil)
        tracker.moved([Self.move(2, .failed, to: .queued)])
        #expect(send.pending == [Self.peers[1]: 1, Self.peers[2]: 1])
        tracker.unfollow(send)
        tracker.moved([Self.move(2, to: .stored)])
        #expect(send.counts.queued == 2)
    }

    @Test("of rows that changed together, each send counts its own")
    func ranges() {
        var tracker = SendTracker()
        let single = Self.followed(.single(bytes: 10), by: &tracker)
        let stream = Self.send(.stream(reportsAll: false))
        tracker.follow(stream)
        for row in 4...70 as ClosedRange<Int64> { stream.accepted(row, for: Self.peers[0], .queued, line: Int(row)) }
        tracker.received([OutboxStateChange(ids: 1...40, peer: Self.peers[0], from: .queued, to: .stored)])
        #expect(single.delivered.count == 3 && single.counts.stored == 3 && stream.counts.stored == 0)
        tracker.moved([OutboxStateChange(ids: 1...40, peer: Self.peers[0], from: .queued, to: .stored)])
        tracker.moved([OutboxStateChange(ids: 69...90, peer: Self.peers[0], from: .queued, to: .rejected)])
        #expect(single.counts.stored == 3 && single.counts.queued == 0)
        #expect(stream.counts.stored == 37 && stream.counts.rejected == 2 && stream.counts.queued == 28)
        #expect(stream.pending == [Self.peers[0]: 28])
        #expect(stream.takeFailures() == [69, 70])
    }

    @Test("a stream that reports all rows reports each once, in line order")
    func telling() {
        var tracker = SendTracker()
        let send = Self.followed(.stream(reportsAll: true), by: &tracker)
        for (row, peer) in zip(Int64(4)..., Self.peers) {
            send.accepted(row, for: peer, .queued, line: 8)
        }
        tracker.moved([Self.move(1, to: .failed)])
        #expect(send.takeFailures().isEmpty)
        #expect(send.nextUnreported(4) == [1, 2, 3, 4])
        #expect(send.markReported(4) == [7, 7, 7, 8])
        #expect(send.nextUnreported(4) == [5, 6])
        #expect(send.markReported(2) == [8, 8] && send.nextUnreported(4).isEmpty)
    }

    @Test("capacity is freed by the end of a row, not by its return to the queue")
    func room() {
        var tracker = SendTracker()
        tracker.moved([Self.move(1, .failed, to: .queued)])
        #expect(tracker.capacityEpoch == 0)
        tracker.moved([Self.move(1, to: .cancelled)])
        #expect(tracker.capacityEpoch == 1)
        tracker.capacityFreed()
        #expect(tracker.capacityEpoch == 2)
    }
}
