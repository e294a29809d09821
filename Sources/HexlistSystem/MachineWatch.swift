internal import CLinux
@preconcurrency internal import Dispatch
public import HexlistModel
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#endif

/// Reports changes of the machine's addresses, and waking from sleep. Event-driven, without polling.
public final class MachineWatch: Sendable {
    public enum Change: Sendable {
        /// The addresses of all interfaces that are up, in the order of `MachineInterface.all()`. Never equal to the previous report.
        case addresses([InterfaceAddress])
        /// The machine woke from sleep.
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

    /// - Parameter onChange: called with the current addresses before this method returns, then on a queue of this object, one change at a
    ///   time, until `stop`.
    public func start(_ onChange: @escaping @Sendable (Change) -> Void) {
        watch(hexlist_watch_addresses()) { [self] _ in reportAddresses(onChange) }
        watch(hexlist_watch_wake()) { [self] descriptor in
            _ = hexlist_arm_wake(descriptor)
            if state.withLock({ $0.sleep.hasWoken(slept: hexlist_slept()) }) { onChange(.woke) }
        }
        // After both watches are set up, so that no change is missed.
        queue.sync { reportAddresses(onChange) }
    }

    /// Stops the reports. None is made after this method has returned.
    public func stop() {
        for source in state.withLock({ $0.sources }) { source.cancel() }
        state.withLock { $0.sources = [] }
        queue.sync {}
    }

    /// - Parameter descriptor: becomes readable on a change; closed at the end. -1 if it could not be created.
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

    private func reportAddresses(_ onChange: (Change) -> Void) {
        let present = MachineInterface.all().filter(\.isUp).flatMap(\.addresses)
        let isNew = state.withLock { state in
            defer { state.addresses = present }
            return state.addresses != present
        }
        if isNew { onChange(.addresses(present)) }
    }
}
