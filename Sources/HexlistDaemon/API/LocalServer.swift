import HexlistAPI
import HexlistModel
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle

#if canImport(Glibc)
    import Glibc
#endif

/// The HTTP server of the local API.
enum LocalServer {
    /// Maximum seconds for which a connection may be idle or a request incomplete.
    static let requestSeconds: Int64 = 60

    /// Returns the server as a service of the daemon. Hummingbird's `Application` is not used, because it wakes the process every second to
    /// update the date header.
    ///
    /// - Parameter onRunning: called once the socket is bound; no request is answered before it returns.
    static func service(
        api: APIContext, settings: Settings.API, socket: String, group: any EventLoopGroup,
        onRunning: @escaping @Sendable () async -> Void
    ) -> some ServiceLifecycle.Service {
        // Informational messages of Hummingbird are dropped, because they are not constant strings.
        var logger = api.logger
        logger.logLevel = max(logger.logLevel, .notice)
        let responder = router(api).buildResponder()
        let http = channel(settings: settings, logger: logger) { try await responder.respond(to: $0, context: $1) }
        return Server(
            // The mode of the socket file keeps other users out. This check also refuses root, and processes of other users that got an
            // open descriptor of the socket.
            childChannelSetup: OwnUserChannel(http: http, staysOnLoop: true) { UnixSocketUser.user(of: $0) },
            configuration: ServerConfiguration(
                address: .unixDomainSocket(path: socket),
                availableConnectionsDelegate: MaximumAvailableConnections(settings.connections, logger: logger)),
            onServerRunning: { _ in await onRunning() }, eventLoopGroup: group, logger: logger)
    }

    /// Makes an HTTP/1.1 channel, with the limits in `settings`. Used by all listeners: the socket, the page, feeds, and HTTP on the peer
    /// port.
    /// - Parameters:
    ///   - seconds: maximum time for which a connection may be idle or a request incomplete.
    ///   - limits: the limits for request bodies.
    static func channel(
        settings: Settings.API, seconds: Int64 = requestSeconds, limits: ConnectionHandler.Limits = ConnectionHandler.Limits(),
        logger: Logger,
        respond: @escaping @Sendable (Request, BasicRequestContext) async throws -> Response
    ) -> HTTP1Channel {
        HTTP1Channel(
            responder: responder(respond, logger: logger),
            configuration: HTTP1Channel.Configuration(
                additionalChannelHandlers: [ConnectionHandler(time: .seconds(seconds), limits)],
                httpDecoderConfiguration: HTTP1Channel.Configuration.DecoderConfiguration(
                    maxHeaderFieldSize: settings.headerBytes, maxHeaderListSize: settings.headerBytes,
                    maxHeaderFieldCount: settings.headerFields)))
    }

    private static func responder(
        _ respond: @escaping @Sendable (Request, BasicRequestContext) async throws -> Response, logger: Logger
    ) -> HTTPChannelHandler.Responder {
        { (request, writer: consuming ResponseWriter, channel) in
            let context = BasicRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
            if isShort(request) { return try await reply(to: request, context, writer, respond) }
            // Connections of the API socket run on the node's event loop, so requests that take longer move to the global executor.
            var slot = Optional(writer)
            try await CallerConnection.$channel.withValue(channel) {
                try await withTaskExecutorPreference(globalConcurrentExecutor) {
                    guard let writer = slot.take() else { return }
                    try await reply(to: request, context, writer, respond)
                }
            }
        }
    }

    private static func reply(
        to request: Request, _ context: BasicRequestContext, _ writer: consuming ResponseWriter,
        _ respond: @Sendable (Request, BasicRequestContext) async throws -> Response
    ) async throws {
        var response = try await respond(request, context)
        response.headers[.date] = HTTPDate.text(seconds: time(nil))
        do {
            try await writer.write(response: response.head, body: response.body)
        } catch is HTTPParserError {
            throw RequestReadError()
        }
    }

    /// Maximum bytes of a hex that is parsed on the event loop. Parsing a hex of this size takes 0.1 ms.
    private static let shortBytes = 64 << 10

    /// Whether a request is handled on its event loop: the send of a small hex, which takes less time than a thread switch.
    private static func isShort(_ request: Request) -> Bool {
        guard request.method == .post, request.uri.path == "/v1/sends", !LocalAPI.isStream(request.headers[.contentType]) else {
            return false
        }
        return request.headers[.contentLength].flatMap { Int($0) }.map { (0...shortBytes).contains($0) } ?? false
    }

    /// The error thrown in place of the parser's error, if the rest of a request cannot be parsed while its reply is being sent. The
    /// parser's own error would cause a second reply.
    private struct RequestReadError: Error {}

    /// Makes the router of the local API.
    /// - Parameter admit: checks a request before it is routed, and throws an error to refuse it.
    static func router(
        _ api: APIContext, admit: @escaping @Sendable (Request) throws -> Void = CrossOriginCheck.refuse
    ) -> Router<BasicRequestContext> {
        // Two routers are needed: the middleware gets the list of all routes, but applies only to routes that are added after it.
        let routes = Router()
        add(api, to: routes)
        let router = Router()
        router.add(
            middleware: ReplyMiddleware(
                logger: api.logger, methods: PathMethods(routes.routes.map { ("\($0.path)", $0.method) }), admit: admit))
        add(api, to: router)
        return router
    }

    private static func add(_ api: APIContext, to router: Router<BasicRequestContext>) {
        router.get("/healthz") { request, _ in
            _ = try APIQuery(request)
            // If the store cannot be read, this throws, and the health check fails.
            _ = try await api.store.read { try $0.counts() }
            return Response(
                status: .ok, headers: [.contentType: "text/plain; charset=utf-8"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: "ok\n")))
        }
        router.get("/v1/status") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(try await api.status())
        }
        router.get("/v1/config") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(api.configuration.shape(port: await api.node.status().port))
        }
        MetricsRoutes(api: api).add(to: router)
        PeerRoutes(api: api).add(to: router)
        GroupRoutes(api: api).add(to: router)
        EnvelopeRouteRoutes(api: api).add(to: router)
        OfferAndTransferRoutes(api: api).add(to: router)
        UploadRoutes(api: api).add(to: router)
        DraftRoutes(api: api).add(to: router)
        AutostartRoutes(api: api).add(to: router)
        ShareRoutes(api: api).add(to: router)
        ServiceRoutes(api: api).add(to: router)
        CacheRoutes(api: api).add(to: router)
        IdentityRoutes(api: api).add(to: router)
        RosterRoutes(api: api).add(to: router)
        BackupRoutes(api: api).add(to: router)
        ImportExportRoutes(api: api).add(to: router)
        PairingRoutes(api: api).add(to: router)
        OwnMachineRoutes(api: api).add(to: router)
        SharingRoutes(api: api).add(to: router)
        HexRoutes(api: api).add(to: router)
        MyHexlistRoutes(api: api).add(to: router)
        SearchRoutes(api: api).add(to: router)
        SendRoutes(api: api).add(to: router)
        DoctorRoutes(api: api).add(to: router)
        EventRoutes(api: api).add(to: router)
        PageRoutes(api: api).add(to: router)
        FeedAddressRoutes(api: api).add(to: router)
        InvitationRoutes(api: api).add(to: router)
        DropTokenRoutes(api: api).add(to: router)
    }
}
