internal import CLinux
@preconcurrency internal import Dispatch
public import HexlistModel
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#endif

/// Reports the machine's addresses whenever they change, and waking from sleep. The kernel wakes it: nothing is polled.
public final class MachineWatch: Sendable {
    public enum Change: Sendable {
        /// The addresses of all interfaces that are up, by interface, in the order of `MachineInterface.all()`; never the same twice in a
        /// row.
        case addresses([InterfaceAddress])
        /// The machine slept, and runs again.
        case woke
    }

    private struct State: Sendable {
        var sources: [any DispatchSourceRead] = []
        var addresses: [InterfaceAddress]?
        var sleep = SleepWatch(slept: hexlist_slept())
    }
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "hexlist.machine")

    public init() {}

    /// - Parameter tell: called with the addresses at once, then on a thread of this object, one change at a time, until `stop`.
    public func start(_ tell: @escaping @Sendable (Change) -> Void) {
        watch(hexlist_watch_addresses()) { [self] _ in lookAtAddresses(tell) }
        watch(hexlist_watch_wake()) { [self] descriptor in
            _ = hexlist_arm_wake(descriptor)
            if state.withLock({ $0.sleep.hasWoken(slept: hexlist_slept()) }) { tell(.woke) }
        }
        // After the watches are set up, so that no change is missed in between.
        queue.sync { lookAtAddresses(tell) }
    }

    /// Ends the reports; none follows when this returns.
    public func stop() {
        for source in state.withLock({ $0.sources }) { source.cancel() }
        state.withLock { $0.sources = [] }
        queue.sync {}
    }

    /// - Parameter descriptor: readable when there is something to look at. Closed at the end; -1 if the kernel has none.
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

    private func lookAtAddresses(_ tell: (Change) -> Void) {
        let present = MachineInterface.all().filter(\.isUp).flatMap(\.addresses)
        let isNew = state.withLock { state in
            defer { state.addresses = present }
            return state.addresses != present
        }
        if isNew { tell(.addresses(present)) }
    }
}
