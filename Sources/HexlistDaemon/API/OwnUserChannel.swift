import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// An HTTP/1.1 channel for processes of this user. The kernel reports the user of each connection. A connection of another user is closed
/// when it is accepted, before anything is read. It costs one look-up, and does not count towards the connection limit.
struct OwnUserChannel: ServerChildChannel {
    enum Value: ServerChildChannelValue {
        case own(HTTP1Channel.Value)
        /// A connection of another user, already closed.
        case refused(any Channel)

        var channel: any Channel {
            switch self {
            case .own(let connection): connection.channel
            case .refused(let channel): channel
            }
        }
    }

    let http: HTTP1Channel
    /// Whether the task of a connection runs on the event loop of its channel. A request that takes longer then has to move to another
    /// executor (`LocalServer.isShort`).
    let staysOnLoop: Bool
    /// Looks up the user of the connected process, on the channel's loop. The result is `nil` if the process has ended. Fails if the kernel
    /// reports an error.
    let user: @Sendable (any Channel) -> EventLoopFuture<uid_t?>
    private let refusals = Refusals()

    /// Records whether a connection was refused before. Only the first refusal is logged, because any user can connect to a port as often
    /// as they like.
    private final class Refusals: Sendable {
        private let isLogged = Atomic(false)

        func isFirst() -> Bool { !isLogged.exchange(true, ordering: .relaxed) }
    }

    init(http: HTTP1Channel, staysOnLoop: Bool, user: @escaping @Sendable (any Channel) -> EventLoopFuture<uid_t?>) {
        self.http = http
        self.staysOnLoop = staysOnLoop
        self.user = user
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let owner = user(channel).flatMapErrorThrowing { error in
            if refusals.isFirst() {
                logger.warning("refused a connection whose user the kernel does not report", metadata: ["error": "\(error)"])
            }
            return nil
        }
        return owner.flatMap { owner in
            guard owner == geteuid() else {
                if let owner, refusals.isFirst() {
                    logger.warning("refused a process of another user", metadata: ["user": "\(owner)"])
                }
                channel.close(promise: nil)
                return channel.eventLoop.makeSucceededFuture(.refused(channel))
            }
            return http.setup(channel: channel, logger: logger).map { .own($0) }
        }
    }

    func handle(value: Value, logger: Logger) async {
        guard case .own(let connection) = value else { return }
        guard staysOnLoop else { return await http.handle(value: connection, logger: logger) }
        let executor = LoopExecutor(connection.channel.eventLoop)
        await withTaskExecutorPreference(executor) { await http.handle(value: connection, logger: logger) }
    }
}

/// The process at the other end of a Unix socket.
enum UnixSocketUser {
    /// Returns the user of the connected process (SO_PEERCRED).
    static func user(of channel: any Channel) -> EventLoopFuture<uid_t?> {
        guard let options = channel as? any SocketOptionProvider else { return channel.eventLoop.makeSucceededFuture(nil) }
        let credentials: EventLoopFuture<Credentials> = options.unsafeGetSocketOption(
            level: .socket, name: .init(rawValue: SO_PEERCRED))
        return credentials.map { $0.uid }
    }

    /// The `struct ucred` of unix(7), which Glibc's module does not export.
    private struct Credentials: Sendable {
        var pid: pid_t
        var uid: uid_t
        var gid: gid_t
    }
}
