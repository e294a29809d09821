import HexlistSystem

#if canImport(Glibc)
    import Glibc
#endif

/// Sends state changes to systemd (sd_notify(3)). Does nothing if systemd did not start this process.
struct SystemdNotifier: Sendable {
    enum State: String, Sendable {
        case ready = "READY=1"
        case stopping = "STOPPING=1"
        case alive = "WATCHDOG=1"
    }

    /// The socket of systemd, as a path or, with a leading `@`, an abstract name; `nil` if systemd did not start this process.
    let socketPath: String?

    init(environment: [String: String]) { socketPath = environment["NOTIFY_SOCKET"] }

    /// Sends a state once. If the datagram is lost, systemd times out. If the queue of the socket is full, `alive` is dropped; for other
    /// states this blocks until there is space.
    func send(_ state: State) {
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
