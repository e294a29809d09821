public import NIOCore

/// An actor whose executor is an event loop, so that callbacks of connections and timers reach its state without a hop.
///
/// The components of its state are classes confined to the loop: their methods take the actor as their `isolated` host, and callbacks of
/// timers and of other threads come back through `onLoop`. The components therefore need neither locks nor tasks.
public protocol EventLoopActor: Actor {
    nonisolated var eventLoop: any EventLoop { get }
    nonisolated var clocks: Clocks { get }
    /// Whether the actor is shutting down, so that no timer is set any more.
    var isStopping: Bool { get }
}

extension EventLoopActor {
    /// Runs `body` on the event loop. Calls from one thread run in their order.
    nonisolated public func onLoop(_ body: @escaping @Sendable (isolated Self) -> Void) {
        eventLoop.execute { self.assumeIsolated { body($0) } }
    }
}
