internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

extension Program {
    /// The result of starting a service.
    public enum ServiceStart: Equatable, Sendable {
        /// The service reported `READY=1`.
        case ready
        /// The service ended before it was ready.
        case ended
        /// The service runs, but was not ready in time.
        case timedOut
        /// The service was not started. The text describes the error.
        case notStarted(String)
    }

    /// Starts a service that continues after this process has ended, in a new session and without this process's descriptors. Blocks until
    /// the service reports readiness as described in sd_notify(3).
    /// - Parameters:
    ///   - environment: the service's complete environment, as `NAME=value`, without `NOTIFY_SOCKET`.
    ///   - notifySocket: the path of the socket to which the service reports. This method creates and removes the socket.
    ///   - milliseconds: the maximum time to wait.
    public func startService(environment: [String], notifySocket: String, milliseconds: CInt) -> ServiceStart {
        let socket = SystemSocket.open(AF_UNIX, .datagram)
        guard socket >= 0 else { return .notStarted(SystemError.last.description) }
        defer { close(socket) }
        unlink(notifySocket)
        guard SystemSocket.withUnixAddress(notifySocket, { bind(socket, $0, $1) }) == 0 else {
            return .notStarted(SystemError.last.description)
        }
        defer { unlink(notifySocket) }
        var words = Self.pointers([path] + arguments)
        var variables = Self.pointers(environment + ["NOTIFY_SOCKET=\(notifySocket)"])
        defer { for text in words + variables { free(text) } }
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard null >= 0 else { return .notStarted(SystemError.last.description) }
        defer { close(null) }
        var pid: pid_t = 0
        let error = hexlist_spawn(&pid, path, &words, &variables, nil, null, null, null)
        guard error == 0 else { return .notStarted(SystemError(code: error).description) }
        let ended = hexlist_pidfd_open(pid)
        defer { if ended >= 0 { close(ended) } }
        // The first message of hexlistd is READY=1. Later messages are not received by anyone.
        var waited = [pollfd(fd: socket, events: Int16(POLLIN), revents: 0), pollfd(fd: ended, events: Int16(POLLIN), revents: 0)]
        guard poll(&waited, 2, milliseconds) > 0 else { return .timedOut }
        return waited[0].revents != 0 ? .ready : .ended
    }
}
