import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// HTTP/1.1 for processes of this user, by the kernel's word; connections of others are closed unanswered.
struct OwnUserChannel: ServerChildChannel {
    typealias Value = HTTP1Channel.Value

    let http: HTTP1Channel
    /// Whether the task of a connection runs on its channel's loop. Long work has to leave it (`LocalServer.isShort`).
    let staysOnLoop: Bool
    /// The user of the connected process; `nil` where the kernel names none.
    let user: @Sendable (any Channel) async -> uid_t?
    private let refusals = Refusals()

    /// Whether a connection was refused. The log tells of the first: to a port anybody can make as many as they like.
    private final class Refusals: Sendable {
        private let hasTold = Atomic(false)

        func isFirst() -> Bool { !hasTold.exchange(true, ordering: .relaxed) }
    }

    init(http: HTTP1Channel, staysOnLoop: Bool, user: @escaping @Sendable (any Channel) async -> uid_t?) {
        self.http = http
        self.staysOnLoop = staysOnLoop
        self.user = user
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> { http.setup(channel: channel, logger: logger) }

    func handle(value: Value, logger: Logger) async {
        guard staysOnLoop else { return await serve(value, logger) }
        let executor = LoopExecutor(value.channel.eventLoop)
        await withTaskExecutorPreference(executor) { await serve(value, logger) }
    }

    private func serve(_ value: Value, _ logger: Logger) async {
        let owner = await user(value.channel)
        guard owner == geteuid() else {
            // Without a user the process is gone already.
            if let owner, refusals.isFirst() { logger.warning("refused a process of another user", metadata: ["user": "\(owner)"]) }
            try? await value.executeThenClose { _, _ in }
            return
        }
        await http.handle(value: value, logger: logger)
    }
}

/// The process at the other end of a Unix socket.
enum UnixSocketPeer {
    /// The user of the connected process, according to the kernel.
    static func user(of channel: any Channel) async -> uid_t? {
        guard let options = channel as? any SocketOptionProvider else { return nil }
        let credentials: Credentials? = try? await options.unsafeGetSocketOption(level: .socket, name: .init(rawValue: SO_PEERCRED)).get()
        return credentials?.uid
    }

    /// The `struct ucred` of unix(7), which Glibc's module does not export.
    private struct Credentials: Sendable {
        var pid: pid_t
        var uid: uid_t
        var gid: gid_t
    }
}
