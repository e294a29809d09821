import CAvahi
import HexlistDiscovery
import Synchronization

/// Requests from other threads to Avahi's thread, and the descriptor that wakes it. Requests for the same record are coalesced, so their
/// number is bounded by the announced records.
final class AvahiMailbox: Sendable {
    struct Contents: Sendable {
        /// The announcement to publish from now on; `.some(nil)` to withdraw it, `nil` for no change.
        var announcement: ServiceAnnouncement??
        /// The requested state of resolvers: true for open.
        var resolvers: [Record: Bool] = [:]
        var isStopped = false
    }

    /// Becomes readable when a request is added.
    let descriptor: Int32
    private let contents = Mutex(Contents())

    /// Fails if the process is out of descriptors.
    init?() {
        descriptor = hexlist_wakeup()
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    func put(_ change: (inout Contents) -> Void) {
        contents.withLock { change(&$0) }
        hexlist_wake(descriptor)
    }

    /// Removes and returns all requests. `isStopped` stays set.
    func take() -> Contents {
        contents.withLock { contents in
            defer { contents = Contents(isStopped: contents.isStopped) }
            return contents
        }
    }
}
