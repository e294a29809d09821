public import HexlistModel
public import Logging
public import NIOCore
import NIOPosix

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Authenticated connections to other peers, dialled and accepted. All run on one event loop.
public final class PeerTransport: Sendable {
    public let identity: Identity
    public let eventLoop: any EventLoop
    let logger: Logger
    let state: NIOLoopBoundBox<TransportState>
    /// The threads on which files are read and written.
    public let fileThreads: FileThreads

    /// Creates a transport, without IO.
    /// - Parameters:
    ///   - eventLoop: a loop of `MultiThreadedEventLoopGroup`; all connections run and all callbacks are called on it.
    ///   - acceptsPlain: whether to accept plain TCP too, recognised by the first byte.
    ///   - plainHTTP: serves plain HTTP on the same port, recognised by the first byte.
    /// - Throws: `HexlistError` `identity` if TLS refuses the identity.
    public init(
        identity: Identity, eventLoop: any EventLoop, limits: TransportLimits = TransportLimits(), acceptsPlain: Bool = false,
        plainHTTP: PlainHTTPHost = .none, metrics: TransportMetrics = TransportMetrics(), logger: Logger
    ) throws {
        // Writing to a socket closed by the peer must return an error instead of ending the process.
        _ = signal(SIGPIPE, SIG_IGN)
        self.identity = identity
        self.eventLoop = eventLoop
        self.logger = logger
        let contexts: TLSContexts
        do {
            contexts = try TLSContexts(identity: identity)
        } catch {
            throw HexlistError(
                .identity, "The identity cannot be used for TLS: \(error).", hint: "Put back a copy of \(Identity.fileName).")
        }
        let state = TransportState(
            eventLoop: eventLoop, contexts: contexts, limits: limits, acceptsPlain: acceptsPlain, plainHTTP: plainHTTP, metrics: metrics,
            logger: logger)
        fileThreads = state.fileThreads
        self.state = .makeBoxSendingValue(state, eventLoop: eventLoop)
    }

    /// A transport with default limits on an event loop of the shared thread group.
    public convenience init(identity: Identity) throws {
        try self.init(
            identity: identity, eventLoop: MultiThreadedEventLoopGroup.singleton.next(), logger: Logger(label: "hexlist.transport"))
    }

    /// Starts to serve files. Without a host, connections for files are closed after their handshake. Thread-safe.
    public func serveFiles(for host: FileHost) {
        let state = state
        eventLoop.execute { state.value.serveFiles(for: host) }
    }

    /// Reserves connection slots for the last addresses of trusted peers (`TransportLimits.reserved`). Thread-safe.
    /// - Parameter addresses: numeric addresses, which replace the previous ones. Others are ignored.
    public func setReservedAddresses(_ addresses: [String]) {
        let addresses = addresses.compactMap { IPAddress(scoped: $0) }
        let state = state
        eventLoop.execute { state.value.admission.reserve(addresses) }
    }

    /// Sets the IPv6 networks of local links, for new connections. Thread-safe.
    /// - Parameter networks: the addresses of this machine's interfaces, each with its prefix length in bits.
    public func setOwnNetworks(_ networks: [(prefix: IPAddress, length: Int)]) {
        let state = state
        eventLoop.execute { state.value.admission.setLinks(networks) }
    }

    /// Sets the limits for new connections; existing ones stay. Thread-safe.
    public func setLimits(_ limits: TransportLimits) {
        let state = state
        eventLoop.execute { state.value.setLimits(limits) }
    }

    /// Dials the targets of one peer in a staggered race. Each attempt starts `stagger` after the previous one, or when that fails, and has
    /// a timeout of 3 s. The first to finish its handshake wins; the others are closed. Thread-safe.
    /// - Parameters:
    ///   - targets: best first.
    ///   - expected: the peer that must answer; `nil` for any. If another peer answers, that target fails and the others continue.
    public func dial(
        _ targets: [DialTarget], expecting expected: PeerID? = nil, stagger: TimeAmount = .milliseconds(250)
    ) -> Dial {
        dial(targets, for: .session, expecting: expected, stagger: stagger)
    }

    /// Dials a peer to fetch files. The peer's Hello must have the feature `files`. On success the report has `files` instead of
    /// `connection`.
    public func dialForFiles(_ targets: [DialTarget], expecting expected: PeerID) -> Dial {
        dial(targets, for: .files, expecting: expected, stagger: .milliseconds(250))
    }

    /// Dials a peer at its request, to serve files to it. On success the report has `isServing` instead of `connection`, and the `FileHost`
    /// receives the connection, as if the peer had dialled.
    public func dialToServeFiles(_ targets: [DialTarget], expecting expected: PeerID) -> Dial {
        dial(targets, for: .servingFiles, expecting: expected, stagger: .milliseconds(250))
    }

    private func dial(_ targets: [DialTarget], for purpose: ConnectionProtocol, expecting expected: PeerID?, stagger: TimeAmount) -> Dial {
        let promise = eventLoop.makePromise(of: DialReport.self)
        let state = state
        let race = NIOLoopBoundBox<DialRace?>.makeEmptyBox(valueType: DialRace.self, eventLoop: eventLoop)
        eventLoop.execute {
            let running = DialRace(
                targets: targets, purpose: purpose, expecting: expected, stagger: stagger, state: state.value, promise: promise)
            race.value = running
            promise.futureResult.whenComplete { _ in race.value = nil }
            running.start()
        }
        return Dial(report: promise.futureResult, race: race)
    }

    /// Stops listening and dialling, and closes all connections. Returns when they are closed, after slightly more than 2 s at most.
    public func shutdown() async {
        // Does not fail: the loop outlives the transport, and close futures of channels always succeed.
        try? await eventLoop.flatSubmit { [state] in state.value.stop() }.get()
        await fileThreads.stop()
    }

    func onLoop(_ work: @escaping @Sendable (TransportState) -> Void) async throws {
        try await eventLoop.submit { [state] in work(state.value) }.get()
    }
}
