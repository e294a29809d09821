public import HexlistEventLoop
public import HexlistModel
public import NIOCore

/// Notifies the callers that wait for results of rows, and the bulk sends that wait for space in the outbox. Used on the node's event loop
/// only.
public struct SendTracker {
    private var sends: [ObjectIdentifier: TrackedSend] = [:]
    private var waitingForCapacity: [ObjectIdentifier: Wakeup] = [:]
    /// Increases whenever rows are completed or deleted, which frees space in the outbox.
    public private(set) var capacityEpoch: UInt64 = 0

    /// Whether a caller waits for receipts, which it may get before they are durable.
    var followsReceipts: Bool { sends.values.contains(where: \.followsReceipts) }
    /// Whether a caller waits for durable results.
    var followsStore: Bool { sends.values.contains { !$0.followsReceipts } }

    public mutating func follow(_ send: TrackedSend) { sends[ObjectIdentifier(send)] = send }

    public mutating func unfollow(_ send: TrackedSend) { sends[ObjectIdentifier(send)] = nil }

    /// Wakes a caller whenever space in the outbox is freed, until `stopWaiting`.
    public mutating func waitForCapacity(_ wakeup: Wakeup) { waitingForCapacity[ObjectIdentifier(wakeup)] = wakeup }

    public mutating func stopWaiting(_ wakeup: Wakeup) { waitingForCapacity[ObjectIdentifier(wakeup)] = nil }

    /// Handles changes of the states of rows after their commit.
    public mutating func moved(_ moves: [OutboxStateChange]) {
        guard !moves.isEmpty else { return }
        for send in sends.values { send.moved(moves) }
        if moves.contains(where: { $0.to != .queued }) { capacityFreed() }
    }

    /// Handles receipts that are not durable yet. Callers that wait for a single hex are notified immediately. If a crash loses the
    /// receipt, the hex is sent again, and the peer answers `duplicate`.
    func received(_ receipts: [OutboxStateChange]) {
        for send in sends.values { send.received(receipts) }
    }

    /// Wakes the callers that wait for space in the outbox.
    public mutating func capacityFreed() {
        capacityEpoch &+= 1
        for wakeup in waitingForCapacity.values { wakeup.wake() }
    }

    /// Notifies all sends, so that their callers check again whether waiting makes sense.
    /// - Parameter isStopping: whether the node is stopping. Callers that wait for space are then woken too, because no more space will be
    ///   freed.
    func wakeAll(isStopping: Bool) {
        for send in sends.values { send.changed() }
        if isStopping { for wakeup in waitingForCapacity.values { wakeup.wake() } }
    }
}

/// A wake-up of one caller, like a condition variable. Used on the node's event loop only; that makes it `Sendable`.
public final class Wakeup: @unchecked Sendable {
    private var continuation: CheckedContinuation<Void, Never>?
    /// Whether `wake` was called while nobody slept. A wake-up between the caller's check of its condition and its `sleep` is therefore not
    /// lost.
    private var isWoken = false

    public init() {}

    /// Ends the current sleep. If nobody sleeps, the next `sleep` returns immediately.
    public func wake() {
        guard let continuation else {
            isWoken = true
            return
        }
        self.continuation = nil
        continuation.resume()
    }

    /// Sleeps until `wake` is called, the deadline passes, or the task is cancelled.
    /// - Parameter isolation: the actor whose executor is the event loop.
    public func sleep(
        until deadline: ContinuousClock.Instant, on eventLoop: any EventLoop, _ clocks: Clocks,
        isolation: isolated (any Actor)? = #isolation
    ) async {
        let timer = eventLoop.schedule(at: deadline, clocks) { self.wake() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if isWoken {
                    isWoken = false
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
