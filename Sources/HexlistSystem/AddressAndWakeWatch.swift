internal import CLinux
@preconcurrency internal import Dispatch
public import HexlistModel
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#endif

/// Reports when the addresses of this machine change and when the machine wakes from sleep. The kernel reports the events, so nothing is
/// polled.
public final class AddressAndWakeWatch: Sendable {
    public enum Change: Sendable {
        /// The addresses of all interfaces that are up, in the order of `MachineInterface.all()`. Always different from the addresses
        /// reported before.
        case addresses([InterfaceAddress])
        /// The machine woke from sleep.
        case woke
    }

    private struct State: Sendable {
        var sources: [any DispatchSourceRead] = []
        var addresses: [InterfaceAddress]?
        var sleep = SuspensionDetector(slept: hexlist_slept())
    }
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "hexlist.machine")

    public init() {}

    /// Starts watching.
    /// - Parameter onChange: called with the current addresses before this method returns. Later calls are made on a queue of this object,
    ///   one at a time, until `stop` is called.
    public func start(_ onChange: @escaping @Sendable (Change) -> Void) {
        watch(hexlist_watch_addresses()) { [self] _ in reportAddresses(onChange) }
        watch(hexlist_watch_wake()) { [self] descriptor in
            _ = hexlist_arm_wake(descriptor)
            if state.withLock({ $0.sleep.hasWoken(slept: hexlist_slept()) }) { onChange(.woke) }
        }
        // Reports the current addresses only after both watches exist, so that no change is missed.
        queue.sync { reportAddresses(onChange) }
    }

    /// Stops the reports. `onChange` is not called any more after this method has returned.
    public func stop() {
        for source in state.withLock({ $0.sources }) { source.cancel() }
        state.withLock { $0.sources = [] }
        queue.sync {}
    }

    /// - Parameter descriptor: a descriptor that becomes readable on a change, or -1 if it could not be created. Closed when the watch
    ///   ends.
    private func watch(_ descriptor: Int32, _ readEvents: @escaping @Sendable (Int32) -> Void) {
        guard descriptor >= 0 else { return }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
            hexlist_drain(descriptor)
            readEvents(descriptor)
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
