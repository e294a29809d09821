import CGlibc
@preconcurrency import Dispatch
import Glibc
import HexlistAPI
import HexlistDiscovery
import HexlistModel
import Synchronization

/// Tells of the machine's addresses whenever they change, and that it woke from sleep. The kernel says when to look: nothing is polled.
final class MachineWatch: Sendable {
    private struct State: Sendable {
        var sources: [any DispatchSourceRead] = []
        var addresses: [InterfaceAddress]?
        var sleep = SleepWatch(slept: hexlist_slept())
    }
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "hexlist.machine")

    /// - Parameter tell: called with the addresses at once, then on a thread of this, one event at a time, until `stop`.
    func start(_ tell: @escaping @Sendable (DiscoveryEvent) -> Void) {
        watch(hexlist_watch_addresses()) { [self] _ in lookAtAddresses(tell) }
        watch(hexlist_watch_wake()) { [self] descriptor in
            _ = hexlist_arm_wake(descriptor)
            if state.withLock({ $0.sleep.hasWoken(slept: hexlist_slept()) }) { tell(.woke) }
        }
        // Behind the watches, so that no change falls in between.
        queue.sync { lookAtAddresses(tell) }
    }

    /// No event follows.
    func stop() {
        for source in state.withLock({ $0.sources }) { source.cancel() }
        state.withLock { $0.sources = [] }
        queue.sync {}
    }

    /// - Parameter descriptor: becomes readable when there is something to look at. Closed in the end; -1 where the kernel has none.
    private func watch(_ descriptor: Int32, _ look: @escaping @Sendable (Int32) -> Void) {
        guard descriptor >= 0 else { return }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
            hexlist_drain(descriptor)
            look(descriptor)
        }
        source.setCancelHandler { close(descriptor) }
        state.withLock { $0.sources.append(source) }
        source.activate()
    }

    private func lookAtAddresses(_ tell: (DiscoveryEvent) -> Void) {
        // In an order that does not change by itself.
        let present = MachineInterface.all().filter(\.isUp).flatMap(\.addresses).sorted {
            ($0.index, $0.address, $0.prefixLength) < ($1.index, $1.address, $1.prefixLength)
        }
        let isNew = state.withLock { state in
            defer { state.addresses = present }
            return state.addresses != present
        }
        if isNew { tell(.interfaces(present)) }
    }
}
