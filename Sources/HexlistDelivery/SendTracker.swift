public import HexlistEventLoop
public import HexlistModel
public import NIOCore

/// Tells whoever waits for rows of the outbox what becomes of them: sends, single ones and streams alike, and streams that wait for room.
/// Lives on the node's loop.
public struct SendTracker {
    private var sends: [ObjectIdentifier: TrackedSend] = [:]
    private var waitingForRoom: [ObjectIdentifier: Wakeup] = [:]
    /// Rises with each row that makes room in the outbox.
    public private(set) var madeRoom: UInt64 = 0

    /// Whether a receipt is told before it is in the store.
    var followsReceipts: Bool { sends.values.contains(where: \.followsReceipts) }
    /// Whether somebody waits for rows, of whatever peer, to be in the store.
    var followsStore: Bool { sends.values.contains { !$0.followsReceipts } }

    public mutating func follow(_ send: TrackedSend) { sends[ObjectIdentifier(send)] = send }

    public mutating func unfollow(_ send: TrackedSend) { sends[ObjectIdentifier(send)] = nil }

    /// Wakes the caller whenever there may be more room than there was, until `stopWaiting`.
    public mutating func waitForRoom(_ wakeup: Wakeup) { waitingForRoom[ObjectIdentifier(wakeup)] = wakeup }

    public mutating func stopWaiting(_ wakeup: Wakeup) { waitingForRoom[ObjectIdentifier(wakeup)] = nil }

    /// Takes rows that were answered, cancelled, given up, or queued again, as the store has them now.
    public mutating func moved(_ moves: [OutboxMove]) {
        guard !moves.isEmpty else { return }
        for send in sends.values { send.moved(moves) }
        if moves.contains(where: { $0.to != .queued }) { roomMade() }
    }

    /// Takes receipts that are not in the store yet. Who waits for one hex is told at once: the peer has it, and says so again should this
    /// node forget.
    func received(_ receipts: [OutboxMove]) {
        for send in sends.values { send.received(receipts) }
    }

    /// Wakes those who wait for room: rows came to an end, or are gone.
    public mutating func roomMade() {
        madeRoom &+= 1
        for wakeup in waitingForRoom.values { wakeup.wake() }
    }

    /// Makes every send look again, because what its rows wait for may have changed.
    /// - Parameter isStopping: whether callers that wait for room look too, because there will be none.
    func lookAgain(isStopping: Bool) {
        for send in sends.values { send.changed() }
        if isStopping { for wakeup in waitingForRoom.values { wakeup.wake() } }
    }
}

/// The sleep of one caller on the node's loop.
public final class Wakeup: @unchecked Sendable {
    private var continuation: CheckedContinuation<Void, Never>?
    /// Whether it was woken while nobody slept: between a look and the sleep the loop may do other things.
    private var isDue = false

    public init() {}

    /// Ends the sleep, or the next one before it begins.
    public func wake() {
        guard let continuation else {
            isDue = true
            return
        }
        self.continuation = nil
        continuation.resume()
    }

    /// Sleeps until it is woken, the deadline has come or the task is cancelled.
    /// - Parameter isolation: the actor whose executor is the event loop.
    public func sleep(
        until deadline: ContinuousClock.Instant, on eventLoop: any EventLoop, _ clocks: Clocks,
        isolation: isolated (any Actor)? = #isolation
    ) async {
        let timer = eventLoop.schedule(at: deadline, clocks) { self.wake() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if isDue {
                    isDue = false
                    continuation.resume()
                } else {
                    self.continuation = continuation
                }
            }
        } onCancel: {
            eventLoop.execute { self.wake() }
        }
        timer.cancel()
    }
}
