public import HexlistEventLoop
public import HexlistModel
public import NIOCore

/// Notifies the callers that wait for results of rows, and streams that wait for capacity of the outbox. Confined to the node's event loop.
public struct SendTracker {
    private var sends: [ObjectIdentifier: TrackedSend] = [:]
    private var waitingForCapacity: [ObjectIdentifier: Wakeup] = [:]
    /// Increases whenever rows are completed or deleted.
    public private(set) var capacityEpoch: UInt64 = 0

    /// Whether a caller is notified of receipts before they are durable.
    var followsReceipts: Bool { sends.values.contains(where: \.followsReceipts) }
    /// Whether a caller waits for durable results.
    var followsStore: Bool { sends.values.contains { !$0.followsReceipts } }

    public mutating func follow(_ send: TrackedSend) { sends[ObjectIdentifier(send)] = send }

    public mutating func unfollow(_ send: TrackedSend) { sends[ObjectIdentifier(send)] = nil }

    /// Wakes a caller whenever capacity is freed, until `stopWaiting`.
    public mutating func waitForCapacity(_ wakeup: Wakeup) { waitingForCapacity[ObjectIdentifier(wakeup)] = wakeup }

    public mutating func stopWaiting(_ wakeup: Wakeup) { waitingForCapacity[ObjectIdentifier(wakeup)] = nil }

    /// Handles changes of rows after their commit.
    public mutating func moved(_ moves: [OutboxMove]) {
        guard !moves.isEmpty else { return }
        for send in sends.values { send.moved(moves) }
        if moves.contains(where: { $0.to != .queued }) { capacityFreed() }
    }

    /// Handles receipts that are not durable yet. Callers of single hexes are notified already: if a crash loses the receipt, the hex is
    /// sent again and the peer answers `duplicate`.
    func received(_ receipts: [OutboxMove]) {
        for send in sends.values { send.received(receipts) }
    }

    /// Wakes the callers that wait for capacity.
    public mutating func capacityFreed() {
        capacityEpoch &+= 1
        for wakeup in waitingForCapacity.values { wakeup.wake() }
    }

    /// Notifies all sends, because the conditions for waiting may have changed.
    /// - Parameter isStopping: whether to wake the callers that wait for capacity too, because no capacity will be freed any more.
    func wakeAll(isStopping: Bool) {
        for send in sends.values { send.changed() }
        if isStopping { for wakeup in waitingForCapacity.values { wakeup.wake() } }
    }
}

/// A wake-up for one caller, like a condition variable. Confined to the node's event loop; that makes it `Sendable`.
public final class Wakeup: @unchecked Sendable {
    private var continuation: CheckedContinuation<Void, Never>?
    /// Whether `wake` was called since the last sleep, so that a wake-up between the caller's check of its condition and its `sleep` is not
    /// lost.
    private var isWoken = false

    public init() {}

    /// Ends the current sleep. If no caller sleeps, the next `sleep` returns immediately.
    public func wake() {
        guard let continuation else {
            isWoken = true
            return
        }
        self.continuation = nil
        continuation.resume()
    }

    /// Sleeps until `wake`, the deadline or the cancellation of the task.
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
