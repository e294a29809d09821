import HexlistTransport
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization

/// Passes plain HTTP connections, which the transport accepts on the peer port, to `GuestService`.
///
/// This type is needed because the transport exists before the API that answers the requests, and is replaced when the identity is rotated.
final class GuestConnectionHandover: Sendable {
    typealias Connection = HTTP1Channel.Value

    private let senders: PlainHTTPSenders
    /// The channel that parses the requests; `nil` until the service runs, and after it stopped.
    private let http = Mutex<HTTP1Channel?>(nil)
    /// The accepted connections. Their number is bounded by the slots for plain HTTP in the transport.
    let connections: AsyncStream<Connection>
    private let accepted: AsyncStream<Connection>.Continuation

    init(senders: PlainHTTPSenders) {
        self.senders = senders
        (connections, accepted) = AsyncStream.makeStream(of: Connection.self)
    }

    /// The handler of plain HTTP connections, for the transport of a node.
    var host: PlainHTTPHost {
        PlainHTTPHost(isOpen: { self.senders.isOpen }) { channel in
            try self.http.withLock { http in
                guard let http else { throw ChannelError.alreadyClosed }
                // The handlers are added synchronously, because this runs on the loop of the channel. Each connection gets into
                // `connections`, and the consumer of that stream closes it.
                let made = http.setup(channel: channel, logger: Logger(label: "hexlist.guests") { _ in SwiftLogNoOpLogHandler() })
                    .assumeIsolated()
                made.whenSuccess { self.accepted.yield($0) }
                made.whenFailure { _ in channel.close(promise: nil) }
            }
        }
    }

    func open(_ http: HTTP1Channel) { self.http.withLock { $0 = http } }

    /// Refuses further connections. The stream `connections` ends after the connections that were accepted.
    func close() {
        http.withLock { http in
            http = nil
            accepted.finish()
        }
    }
}

/// Serves guests and shortcuts as a service of the daemon.
struct GuestService: DaemonService {
    let api: APIContext
    let port: GuestConnectionHandover

    /// Maximum seconds for which a connection may be idle or a request incomplete.
    private static let seconds: Int64 = 30
    /// Maximum bytes of the body of a guest's request, except the content of a file. It is larger than each accepted body, so that a guest
    /// with a longer text gets a reply.
    private static let maximumBody = 4 << 20

    func run() async throws {
        var logger = api.logger
        logger.logLevel = max(logger.logLevel, .notice)
        let (responder, drops) = (GuestResponder(api: api), DropResponder(api: api))
        // The head of a browser's request has a few hundred bytes, so the default limits suffice. Those of the socket do not apply.
        var settings = Settings.API()
        settings.headerBytes = 16 << 10
        settings.headerFields = 64
        let http = LocalServer.channel(
            settings: settings, seconds: Self.seconds,
            limits: ConnectionHandler.Limits(
                maximumBody: Self.maximumBody,
                uploads: [
                    (path: GuestResponder.files, maximumBody: Int(GuestInvitations.largestFile)),
                    (path: DropResponder.path, maximumBody: DropReceiver.bodyBytes),
                ], isStrict: true),
            logger: logger
        ) { request, context in
            request.uri.path.hasPrefix(DropResponder.path)
                ? try await drops.respond(to: request) : try await responder.respond(to: request, context: context)
        }
        await responder.removeLeftovers()
        api.guests.onChange { [api] in api.node.notifyWatchers() }
        port.open(http)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for await parts in api.guests.discarded { await responder.discard(parts) }
            }
            await withTaskCancellationOrGracefulShutdownHandler {
                await withDiscardingTaskGroup { requests in
                    for await connection in port.connections {
                        requests.addTask { [logger] in await http.handle(value: connection, logger: logger) }
                    }
                    requests.cancelAll()
                }
            } onCancelOrGracefulShutdown: {
                port.close()
                api.guests.stop()
            }
            await group.waitForAll()
        }
    }
}
