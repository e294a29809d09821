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

/// Authenticated connections to other peers, dialled and accepted, all on one event loop.
public final class PeerTransport: Sendable {
    public let identity: Identity
    public let eventLoop: any EventLoop
    let logger: Logger
    let state: NIOLoopBoundBox<TransportState>
    /// The threads on which files are read and written.
    public let fileThreads: FileThreads

    /// Performs no IO and starts nothing.
    /// - Parameters:
    ///   - eventLoop: one of `MultiThreadedEventLoopGroup`; all connections live on it and all callbacks are called on it.
    ///   - acceptsPlain: whether accepted connections may also be plain TCP, recognised by the first byte.
    /// - Throws: `HexlistError` `identity` if TLS refuses the identity.
    public init(
        identity: Identity, eventLoop: any EventLoop, limits: TransportLimits = TransportLimits(), acceptsPlain: Bool = false,
        metrics: TransportMetrics = TransportMetrics(), logger: Logger
    ) throws {
        // A write to a socket that the other side has closed must be an error, not the end of the process.
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
            eventLoop: eventLoop, contexts: contexts, limits: limits, acceptsPlain: acceptsPlain, metrics: metrics, logger: logger)
        fileThreads = state.fileThreads
        self.state = .makeBoxSendingValue(state, eventLoop: eventLoop)
    }

    /// Does the same with the default limits, on an event loop of the process's shared threads.
    public convenience init(identity: Identity) throws {
        try self.init(
            identity: identity, eventLoop: MultiThreadedEventLoopGroup.singleton.next(), logger: Logger(label: "hexlist.transport"))
    }

    /// Hands out files from now on: without a host every connection for files is closed after its handshake. Callable from any thread.
    public func serveFiles(for host: FileHost) {
        let state = state
        eventLoop.execute { state.value.serveFiles(for: host) }
    }

    /// Keeps places free for the last addresses of trusted peers (`TransportLimits.reserved`). Callable from any thread.
    /// - Parameter addresses: numeric addresses, which replace the previous ones. Others are ignored.
    public func setReservedAddresses(_ addresses: [String]) {
        let addresses = addresses.compactMap { IPAddress(scoped: $0) }
        let state = state
        eventLoop.execute { state.value.admission.reserve(addresses) }
    }

    /// Sets which IPv6 addresses are on an own link, for later connections. Callable from any thread.
    /// - Parameter networks: the addresses of this machine's interfaces, each with the length of its prefix in bits.
    public func setOwnNetworks(_ networks: [(prefix: IPAddress, length: Int)]) {
        let state = state
        eventLoop.execute { state.value.admission.setLinks(networks) }
    }

    /// Sets the limits for later connections; existing ones stay. Callable from any thread.
    public func setLimits(_ limits: TransportLimits) {
        let state = state
        eventLoop.execute { state.value.setLimits(limits) }
    }

    /// Dials targets of one peer, each `stagger` after the previous one or as soon as that failed; each has 3 s. The first that finishes
    /// its handshake wins, and the others are closed. Callable from any thread.
    /// - Parameters:
    ///   - targets: the targets, best first.
    ///   - expected: the peer that must answer; `nil` for any. Another identity is a failure of that target; the others continue.
    public func dial(
        _ targets: [DialTarget], expecting expected: PeerID? = nil, stagger: TimeAmount = .milliseconds(250)
    ) -> Dial {
        dial(targets, for: .session, expecting: expected, stagger: stagger)
    }

    /// Dials a peer as `dial`, to fetch files: only one whose Hello has the feature `files`. The report has `files` and no `connection`.
    public func dialForFiles(_ targets: [DialTarget], expecting expected: PeerID) -> Dial {
        dial(targets, for: .files, expecting: expected, stagger: .milliseconds(250))
    }

    /// Dials a peer that asked for it, to serve files to it. The report has `isServing` and no `connection`: the connection is the host's
    /// (`serveFiles`), which is asked as if the peer had dialled.
    public func dialToServeFiles(_ targets: [DialTarget], expecting expected: PeerID) -> Dial {
        dial(targets, for: .servingFiles, expecting: expected, stagger: .milliseconds(250))
    }

    private func dial(_ targets: [DialTarget], for purpose: DialPurpose, expecting expected: PeerID?, stagger: TimeAmount) -> Dial {
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

    /// Stops listening and dialling, closes all connections, and returns when they are gone: after little more than 2 s at most.
    public func shutdown() async {
        // The loop outlives the transport, and the futures of closed channels do not fail.
        try? await eventLoop.flatSubmit { [state] in state.value.stop() }.get()
        await fileThreads.stop()
    }

    /// Runs work on the loop.
    func onLoop(_ work: @escaping @Sendable (TransportState) -> Void) async throws {
        try await eventLoop.submit { [state] in work(state.value) }.get()
    }
}
