import HexlistStore
import Logging
import NIOCore

/// What the owners of a node's state use of it. An owner is a class that lives on the node's event loop: whoever calls it passes the node as
/// `isolated` host, and callbacks of timers and of the store come back by way of the host, so an owner needs neither locks nor tasks.
protocol NodeHost: Actor {
    nonisolated var store: HexStore { get }
    nonisolated var eventLoop: any EventLoop { get }
    nonisolated var logger: Logger { get }
    nonisolated var watchers: Watchers { get }
    var configuration: NodeConfiguration { get }
    var isStopping: Bool { get }
}

extension NodeHost {
    /// From a thread of the store or of discovery back to the loop, in order.
    nonisolated func onLoop(_ body: @escaping @Sendable (isolated Self) -> Void) {
        eventLoop.execute { self.assumeIsolated { body($0) } }
    }
}
