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

/// Dials peers and accepts their connections, with authentication. All connections run on one event loop.
public final class PeerTransport: Sendable {
    public let identity: Identity
    public let eventLoop: any EventLoop
    let logger: Logger
    let state: NIOLoopBoundBox<TransportState>
    /// The threads on which files are read and written.
    public let fileThreads: FileThreads

    /// Creates a transport. Performs no IO.
    /// - Parameters:
    ///   - eventLoop: a loop of a `MultiThreadedEventLoopGroup`. All connections run on it, and all callbacks are called on it.
    ///   - acceptsPlain: whether to accept frames on plain TCP as well. They are recognised by their first byte.
    ///   - plainHTTP: the server for plain HTTP on the same port. HTTP is recognised by its first byte.
    /// - Throws: `HexlistError` `identity` if TLS refuses the identity.
    public init(
        identity: Identity, eventLoop: any EventLoop, limits: TransportLimits = TransportLimits(), acceptsPlain: Bool = false,
        plainHTTP: PlainHTTPHost = .none, metrics: TransportMetrics = TransportMetrics(), logger: Logger
    ) throws {
        // Writing to a socket that the peer has closed must be an error, instead of ending the process.
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

    /// Creates a transport with default limits, on an event loop of the shared thread group.
    public convenience init(identity: Identity) throws {
        try self.init(
            identity: identity, eventLoop: MultiThreadedEventLoopGroup.singleton.next(), logger: Logger(label: "hexlist.transport"))
    }

    /// Starts to serve files. Before that, connections for files are closed after their handshake. Thread-safe.
    public func serveFiles(for host: FileConnectionHost) {
        let state = state
        eventLoop.execute { state.value.serveFiles(for: host) }
    }

    /// Reserves connections for the addresses at which trusted peers were last reached (`TransportLimits.reserved`). Thread-safe.
    /// - Parameter addresses: numeric addresses, which replace the previous ones. Other texts are ignored.
    public func setReservedAddresses(_ addresses: [String]) {
        let addresses = addresses.compactMap { IPAddress(scoped: $0) }
        let state = state
        eventLoop.execute { state.value.admission.reserve(addresses) }
    }

    /// Sets the IPv6 networks to which this machine is connected (`Admission.network`). A change applies to new connections only.
    /// Thread-safe.
    /// - Parameter networks: the addresses of this machine's interfaces, each with its prefix length in bits.
    public func setOwnNetworks(_ networks: [(prefix: IPAddress, length: Int)]) {
        let state = state
        eventLoop.execute { state.value.admission.setLinks(networks) }
    }

    /// Sets the limits. A change applies to new connections only. Thread-safe.
    public func setLimits(_ limits: TransportLimits) {
        let state = state
        eventLoop.execute { state.value.setLimits(limits) }
    }

    /// Dials the targets of one peer in a staggered race. An attempt starts `stagger` after the previous one, or earlier if that one fails.
    /// Each has a timeout of 3 s. The first connection that completes its handshake is used; the others are closed. Thread-safe.
    /// - Parameters:
    ///   - targets: the targets, best first.
    ///   - expected: the peer that has to answer; `nil` for any peer. If another one answers, the race goes on with the other targets.
    public func dial(
        _ targets: [DialTarget], expecting expected: PeerID? = nil, stagger: TimeAmount = .milliseconds(250)
    ) -> Dial {
        dial(targets, for: .session, expecting: expected, stagger: stagger)
    }

    /// Dials a peer in order to fetch files. The peer's Hello must have the feature `files`. On success, the report has a connection in
    /// `files` instead of `connection`.
    public func dialForFiles(_ targets: [DialTarget], expecting expected: PeerID) -> Dial {
        dial(targets, for: .files, expecting: expected, stagger: .milliseconds(250))
    }

    /// Dials a peer that has requested it, in order to serve files. On success, the report has `isServing` instead of `connection`. The
    /// `FileConnectionHost` receives the connection, as if the peer had dialled.
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

    /// Stops listening and dialling, and closes all connections. Returns when they are closed, after little more than 2 s at most.
    public func shutdown() async {
        // No error is possible: the event loop outlives the transport, and the futures for closing channels always succeed.
        try? await eventLoop.flatSubmit { [state] in state.value.stop() }.get()
        await fileThreads.stop()
    }

    func onLoop(_ work: @escaping @Sendable (TransportState) -> Void) async throws {
        try await eventLoop.submit { [state] in work(state.value) }.get()
    }
}
