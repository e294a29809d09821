public import NIOCore

extension EventLoop {
    /// Runs `task` at an instant of the monotonic clock, or immediately if the instant has passed.
    public func schedule(at deadline: ContinuousClock.Instant, _ clocks: Clocks, _ task: @escaping @Sendable () -> Void) -> Scheduled<Void>
    {
        scheduleTask(in: TimeAmount(max(.zero, deadline - clocks.now)), task)
    }

    /// Calls `begin` with a completion handler and waits for the value that is passed to the handler. Returns `value` instead if this takes
    /// longer than `time`.
    /// - Parameter isolation: an actor whose executor is this event loop.
    public func within<Value: Sendable>(
        _ time: TimeAmount, otherwise value: Value, isolation: isolated (any Actor)? = #isolation,
        _ begin: (@escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        let promise = makePromise(of: Value.self)
        begin { promise.succeed($0) }
        let timer = scheduleTask(in: time) { promise.succeed(value) }
        defer { timer.cancel() }
        return (try? await promise.futureResult.get()) ?? value
    }
}
