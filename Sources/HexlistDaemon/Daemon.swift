public import HexlistAPI
import HexlistAvahi
import HexlistDNS
import HexlistDiscovery
import HexlistModel
import HexlistNode
import HexlistRclone
import HexlistStore
import HexlistSystem
import HexlistTransport
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import UnixSignals

#if canImport(Glibc)
    import Glibc
#endif

/// The daemon. Opens its parts in order when it starts, and closes them in reverse order when it stops.
public struct Daemon: Sendable {
    /// Options from the command line and the environment.
    public struct Options: Sendable {
        public var paths: HexlistPaths
        /// The settings given on the command line, by the name of the key.
        public var settings: [String: String]
        public var environment: [String: String]

        public init(paths: HexlistPaths, settings: [String: String], environment: [String: String]) {
            self.paths = paths
            self.settings = settings
            self.environment = environment
        }
    }

    /// Time for which API requests may continue after SIGTERM. Then the node stops, which ends requests that wait for it.
    static let apiGrace: Duration = .seconds(2)
    /// Maximum time of a stop, after which the process exits. That loses nothing that was acknowledged, because it is on the disk.
    static let stopLimit: TimeAmount = .seconds(15)

    private let options: Options
    private let loader: ConfigurationLoader
    private let notifier: SystemdNotifier

    public init(options: Options) {
        self.options = options
        loader = ConfigurationLoader(
            commandLine: options.settings, environment: options.environment, path: options.paths.configurationFile,
            isNamed: options.paths.configurationIsNamed, machineName: MachineName.pretty(),
            downloadFolder: DownloadFolder.path(environment: options.environment, configurationHome: options.paths.configurationHome))
        notifier = SystemdNotifier(environment: options.environment)
    }

    /// Reads the configuration as a start would, without starting anything.
    /// - Returns: unknown `HEXLIST_…` variables, each with the nearest known one.
    /// - Throws: `HexlistError` `configuration`.
    public func check() throws -> [(name: String, nearest: String?)] {
        _ = try loader.load()
        return loader.unknownVariables()
    }

    /// Runs until SIGTERM or SIGINT.
    /// - Throws: `HexlistError` if the daemon cannot start, or if one of its parts ends unexpectedly.
    public func run() async throws {
        ProcessMemory.boundHeap()
        signal(SIGPIPE, SIG_IGN)
        signal(SIGCHLD, SIG_DFL)  // the parent process may have set it to be ignored; then waiting for a hook's exit would fail
        umask(0o077)
        // The private key is in memory: disable core dumps, and access by other processes of this user.
        ProcessMemory.forbidCoreDumps()
        DescriptorLimit.raise()
        // From here on signals are queued: a SIGTERM that arrives during startup stops the daemon once startup is complete.
        let signals = await UnixSignalsSequence(trapping: .sighup, .sigterm, .sigint)
        var settings = try loader.load()
        settings.node.files.cacheFolder = options.paths.cacheFolder
        settings.node.localSend?.installedProgram = InstalledLocalSend.installed(environment: options.environment)
        let logger = Logger(label: "hexlistd") { StderrLogHandler(label: $0, settings: settings.log) }
        for variable in loader.unknownVariables() {
            logger.warning(
                "environment variable is unknown", metadata: ["variable": "\(variable.name)", "nearest": "\(variable.nearest ?? "")"])
        }

        let folder = try StateFolder(path: options.paths.stateFolder, socket: options.paths.socket)
        let socket = try ControlSocket(path: options.paths.socket, isNamed: options.paths.socketIsNamed, state: folder)
        try StateFolderContents.check(folder.path)
        let metrics = Metrics()
        guard let store = try await StoreOpening.open(folder.storePath, metrics: StoreMetrics(metrics.registry), logger: logger) else {
            return
        }
        if let fault = store.fault {
            logger.warning("the store is read-only until it can be written", metadata: ["reason": "\(fault.message)"])
        }
        do {
            let isFirstStart = try Identity.load(from: folder.path) == nil
            let identity = try await OwnIdentity.open(folder: folder.path, store: store)
            try await serve(
                settings, identity: identity, store: store, metrics: metrics, socket: socket, folder: folder.path,
                isFirstStart: isFirstStart, signals: signals, logger: logger)
        } catch {
            close(store, logger)
            throw error
        }
        close(store, logger)
    }

    private func close(_ store: HexStore, _ logger: Logger) {
        do {
            try store.close()
        } catch {
            logger.error("closing the store failed", metadata: ["error": "\(error)"])
        }
    }

    /// Runs the parts of the daemon that use the network, on their own event loop group, until the daemon stops.
    private func serve(
        _ settings: Settings, identity: Identity, store: HexStore, metrics: Metrics, socket: ControlSocket, folder: String,
        isFirstStart: Bool, signals: UnixSignalsSequence, logger: Logger
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        // The second loop runs the page, rclone, keep-alives of streams and the stop timer.
        let (nodeLoop, otherLoop) = (group.next(), group.next())
        do {
            let rclone = Rclone(settings: settings.services.rclone(options.environment), group: otherLoop)
            let remotes = RcloneServices(rclone: rclone)
            let guests = GuestInvitationRegistry(loop: otherLoop)
            let senders = PlainHTTPSenders(guests: guests, drops: DropTokens(try await store.read { try $0.dropTokens() }))
            let guestPort = GuestConnectionHandover(senders: senders)
            let make: NodeSupervisor.Maker = { [settings] identity, configuration in
                try Node(
                    configuration: configuration, identity: identity, store: store, discovery: Self.discovery(settings, logger),
                    remotes: remotes, plainHTTP: guestPort.host, eventLoop: nodeLoop, metrics: NodeMetrics(metrics.registry), logger: logger
                )
            }
            let node = try make(identity, settings.node)
            let startedAt = ContinuousClock.now
            let machine = CopiedStateDetector(environment: options.environment)
            let isForeign = try await machine.isForeign(store)
            if isForeign {
                logger.warning("this state folder was last used on another machine; see `hexlist status`")
            }
            try await Self.start(node)
            if isFirstStart {
                FirstStartMessages.log(
                    await node.status(), usesMulticast: settings.domains.contains(where: Settings.isLocal),
                    configuration: options.paths.configurationFile, logger: logger)
            }
            Watchdog(environment: options.environment, notifier: notifier)?.watch(nodeLoop)
            let supervisor = NodeSupervisor(
                node: node, stateFolder: folder, machine: machine, isForeign: isForeign, logger: logger, make: make)
            let faults = HookFaults()
            let web = WebClient(eventLoop: otherLoop)
            let api = APIContext(
                supervisor: supervisor, stateFolder: folder,
                autostart: Autostart(configurationHome: options.paths.configurationHome, environment: options.environment),
                desktop: DesktopSession(environment: options.environment), startedAt: startedAt, openSchemes: settings.open.schemes,
                configuration: EffectiveConfiguration(path: options.paths.configurationFile, settings), hooks: faults, metrics: metrics,
                eventLoop: otherLoop, senders: senders,
                linkProbeSender: LinkProbeSender(client: web, isAllowed: Self.mayRequestPage(at:)), logger: logger)
            let hooks = Hooks(
                folder: HookFolder(path: options.paths.hookFolder), supervisor: supervisor,
                environment: { [options] in
                    HookEnvironment.make(from: options.environment, socket: socket.current, stateFolder: folder)
                },
                faults: faults, logger: logger)
            let titles = TitleFetcher(
                store: store, client: web, signal: api.titles,
                isOn: { [configuration = api.configuration] in configuration.readsTitles }, isAllowed: Self.mayRequestPage(at:),
                logger: logger)
            let run = DaemonRun(
                loader: loader, notifier: notifier, api: api, guestPort: guestPort, hooks: hooks, socket: socket, settings: settings,
                titles: titles)
            // This task is cancelled and awaited when the scope ends.
            async let _: Void = rclone.run()
            // The API socket uses the node's event loop, so that a send needs no thread switch.
            try await run.untilStopped(signals: signals, group: nodeLoop, stopLoop: otherLoop)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
        try? await group.shutdownGracefully()  // all parts of the daemon that use it have ended
    }

    /// Whether a page at this address may be requested, for its title or for a check of links. The address must be public, and outside the
    /// networks of this machine: a router may have a public IPv6 address, for example.
    private static func mayRequestPage(at address: IPAddress) -> Bool {
        address.isPublic
            && !MachineInterface.all().flatMap(\.addresses).contains { address.isInside($0.address, length: $0.prefixLength) }
    }

    /// Makes the peer discovery for the configured domains: `local` through avahi-daemon, the others by unicast DNS.
    private static func discovery(_ settings: Settings, _ logger: Logger) -> any PeerDiscovery {
        let others = settings.domains.filter { !Settings.isLocal(domain: $0) }
        let avahi = settings.domains.contains(where: Settings.isLocal) ? AvahiDiscovery(logger: logger) : nil
        return CombinedDiscovery(multicast: avahi, unicast: UnicastDiscovery(domains: others))
    }

    /// Starts the node. If its port is in use, the error names the program that uses the port.
    private static func start(_ node: Node) async throws {
        do {
            try await node.start()
        } catch {
            await node.stop()
            guard var fault = error as? HexlistError, fault.code == .portInUse, let port = await node.configuration.port,
                let listener = PortListener.find(port: port)
            else { throw error }
            let name = TerminalText.clean(listener.description, columns: 80)
            fault.hint = "\(name) listens there. Stop it, or set another `port`."
            throw fault
        }
    }
}
