public import NIOCore

/// An actor whose executor is an event loop, so that callbacks of connections and timers access its state without changing threads.
///
/// The parts of its state are classes that are used on the loop only. Their methods have the actor as `isolated` parameter, and callbacks
/// of timers and of other threads return to the loop with `onLoop`. The classes therefore need neither locks nor tasks.
public protocol EventLoopActor: Actor {
    nonisolated var eventLoop: any EventLoop { get }
    nonisolated var clocks: Clocks { get }
    /// Whether the actor is shutting down, so that no timer is set any more.
    var isStopping: Bool { get }
}

extension EventLoopActor {
    /// Runs `body` on the event loop. Calls from one thread run in the order in which they were made.
    nonisolated public func onLoop(_ body: @escaping @Sendable (isolated Self) -> Void) {
        eventLoop.execute { self.assumeIsolated { body($0) } }
    }
}
