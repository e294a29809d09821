import CAvahi
import HexlistDiscovery
import Synchronization

/// What other threads ask of Avahi's, and the way to wake it. Requests for the same thing merge, so it holds no more than there are
/// announced records.
final class AvahiMailbox: Sendable {
    struct Contents: Sendable {
        /// What is to be announced from now on; `.some(nil)` for nothing.
        var announcement: ServiceAnnouncement??
        /// Whether the resolver of a record is to be open.
        var resolvers: [Record: Bool] = [:]
        var isStopped = false
    }

    /// Readable when something was put in.
    let descriptor: Int32
    private let contents = Mutex(Contents())

    /// `nil` where the process has no descriptor left.
    init?() {
        descriptor = hexlist_wakeup()
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    func put(_ change: (inout Contents) -> Void) {
        contents.withLock { change(&$0) }
        hexlist_wake(descriptor)
    }

    /// What was put in since it was last taken; that it is stopped stays.
    func take() -> Contents {
        contents.withLock { contents in
            defer { contents = Contents(isStopped: contents.isStopped) }
            return contents
        }
    }
}
