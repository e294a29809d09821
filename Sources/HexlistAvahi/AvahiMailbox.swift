import CAvahi
import HexlistDiscovery
import Synchronization

/// Requests of other threads to Avahi's thread, and the descriptor that wakes it. Requests for the same thing merge, so there are at most
/// as many as there are announced records.
final class AvahiMailbox: Sendable {
    struct Contents: Sendable {
        /// The announcement to make from now on; `.some(nil)` for none, `nil` for no change.
        var announcement: ServiceAnnouncement??
        /// The wanted state of resolvers: open or closed.
        var resolvers: [Record: Bool] = [:]
        var isStopped = false
    }

    /// The descriptor that becomes readable when a request was put in.
    let descriptor: Int32
    private let contents = Mutex(Contents())

    /// Fails if the process has no descriptor left.
    init?() {
        descriptor = hexlist_wakeup()
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    func put(_ change: (inout Contents) -> Void) {
        contents.withLock { change(&$0) }
        hexlist_wake(descriptor)
    }

    /// Takes the requests put in since the last call. `isStopped` stays set.
    func take() -> Contents {
        contents.withLock { contents in
            defer { contents = Contents(isStopped: contents.isStopped) }
            return contents
        }
    }
}
