public import HexlistAPI
public import HexlistClient
import HexlistDiscovery
import HexlistJSON
import HexlistModel
public import HexlistNode
import HexlistStore
import HexlistTransport
import Logging
import NIOPosix
import ServiceLifecycle
import TestSupport

@testable public import HexlistDaemon

/// A daemon in the test process: a real node on loopback TLS, a real store and the real API on a real socket.
public struct TestDaemon: Sendable {
    public let api: APIContext
    public let supervisor: NodeSupervisor
    public let client: HexlistClient
    public let socket: String
    public let configuration: EffectiveConfiguration
    /// The only address with web servers that the daemon may contact.
    public static let webServer = "127.0.0.2"
    public let hookFaults: HookFaults

    /// Runs `body` with one daemon per name. The daemons find each other through an in-memory discovery.
    public static func with(_ names: String..., settings: Settings.API = .init(), _ body: ([TestDaemon]) async throws -> Void) async throws
    {
        let link = InMemoryLink()
        try await start(names[...], link, settings, [], body)
    }

    private static func start(
        _ names: ArraySlice<String>, _ link: InMemoryLink, _ settings: Settings.API, _ started: [TestDaemon],
        _ body: ([TestDaemon]) async throws -> Void
    ) async throws {
        guard let name = names.first else { return try await body(started) }
        try await TemporaryFolder.with { folder in
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let metrics = Metrics()
            let store = try HexStore(path: "\(folder.path)/hexlist.sqlite", metrics: StoreMetrics(metrics.registry))
            var configuration = NodeConfiguration(name: name)
            configuration.listen = ["127.0.0.1"]
            configuration.port = 0
            var logger = Logger(label: name)
            logger.logLevel = .critical
            let guests = GuestInvitationRegistry(loop: group.next())
            let senders = PlainHTTPSenders(guests: guests, drops: DropTokens(try await store.read { try $0.dropTokens() }))
            let guestPort = GuestConnectionHandover(senders: senders)
            let make: NodeSupervisor.Maker = { [logger] identity, configuration in
                try Node(
                    configuration: configuration, identity: identity, store: store, discovery: InMemoryDiscovery(link: link),
                    plainHTTP: guestPort.host, eventLoop: group.next(), metrics: NodeMetrics(metrics.registry), logger: logger)
            }
            let node = try make(try Identity.create(in: folder.path), configuration)
            try await node.start()
            let supervisor = NodeSupervisor(
                node: node, stateFolder: folder.path, machine: CopiedStateDetector(environment: [:]), isForeign: false, logger: logger,
                make: make)
            let socket = "\(folder.path)/control.sock"
            let hookFaults = HookFaults()
            var inEffect = Settings(name: name)
            inEffect.node.files.downloads = "\(folder.path)/downloads"
            let inForce = EffectiveConfiguration(path: "\(folder.path)/config.yaml", inEffect)
            let api = APIContext(
                supervisor: supervisor, stateFolder: folder.path,
                autostart: Autostart(configurationHome: folder.path, environment: [:]), desktop: DesktopSession(environment: [:]),
                startedAt: .now, openSchemes: Settings.Open().schemes, configuration: inForce, hooks: hookFaults, metrics: metrics,
                eventLoop: group.next(), senders: senders,
                linkProbeSender: LinkProbeSender(
                    client: WebClient(eventLoop: group.next()), isAllowed: { $0 == IPAddress(Self.webServer) }, pause: .zero,
                    interval: .milliseconds(20)), logger: logger)
            let (running, isRunning) = AsyncStream.makeStream(of: Void.self)
            let server = LocalServer.service(api: api, settings: settings, socket: socket, group: group) { isRunning.finish() }
            let services = ServiceGroup(
                configuration: .init(
                    services: [server, PageService(api: api), FeedService(api: api), GuestService(api: api, port: guestPort)],
                    logger: logger))
            let client = HexlistClient(socketPath: socket, replySeconds: Self.patience)
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await services.run() }
                for await _ in running {}
                let daemon = TestDaemon(
                    api: api, supervisor: supervisor, client: client, socket: socket, configuration: inForce, hookFaults: hookFaults)
                let result: Result<Void, any Error>
                do {
                    try await start(names.dropFirst(), link, settings, started + [daemon], body)
                    result = .success(())
                } catch {
                    result = .failure(error)
                }
                await services.triggerGracefulShutdown()
                await supervisor.stop()
                try await tasks.waitForAll()
                try store.close()
                try await group.shutdownGracefully()
                try result.get()
            }
        }
    }

    public var node: Node { supervisor.node }
    public var uuid: String { node.id.description }

    /// Waits until this daemon sees the given number of peers.
    public func awaitPeers(_ count: Int) async throws {
        try await client.watchPeers(all: false) { $0.count < count }
    }

    /// Timeout in seconds for a reply or a send. It is long because daemon and client share the test program's thread pool with tests that
    /// compute for up to a minute on a loaded machine.
    public static let patience = 240.0

    public func send(_ links: [String], description: String = "d", to peers: [String], wait: SendWaitGoal = .stored, key: String? = nil)
        async throws
        -> [SendOutcome]
    {
        let hex = TestHex(description: description, links: links)
        return try await client.send(
            HexlistClient.Send(content: .hex(hex.jsonBytes), peers: peers, wait: wait, timeout: Self.patience, key: key))
    }
}

private struct TestHex: JSONEncodable {
    var description: String
    var links: [String]

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("hexDescription", description)
            $0.member("links", links)
        }
    }
}
