import HexlistSystem

#if canImport(Glibc)
    import Glibc
#endif

/// Tells systemd how the daemon does (sd_notify(3)); nothing where systemd did not start it.
struct SystemdNotifier: Sendable {
    enum State: String, Sendable {
        case ready = "READY=1"
        case stopping = "STOPPING=1"
        case alive = "WATCHDOG=1"
    }

    /// A path, or a name in the abstract space behind `@`.
    let socketPath: String?

    init(environment: [String: String]) { socketPath = environment["NOTIFY_SOCKET"] }

    /// A datagram that does not get through is nobody's loss but systemd's: it waits until its time is up. A sign of life is not worth
    /// waiting for a place in its queue.
    func tell(_ state: State) {
        guard let socketPath, socketPath.hasPrefix("/") || socketPath.hasPrefix("@") else { return }
        let descriptor = SystemSocket.open(AF_UNIX, .datagram)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let text = Array(state.rawValue.utf8)
        let flags = CInt(MSG_NOSIGNAL) | (state == .alive ? CInt(MSG_DONTWAIT) : 0)
        _ = SystemSocket.withUnixAddress(socketPath) { address, length in
            CInt(text.withUnsafeBytes { sendto(descriptor, $0.baseAddress, $0.count, flags, address, length) })
        }
    }
}
