public import HexlistModel
public import Logging
public import NIOCore

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

    /// Does no IO and starts nothing.
    /// - Parameters:
    ///   - eventLoop: one of `MultiThreadedEventLoopGroup`; every connection lives on it and every callback comes on it.
    ///   - acceptsPlain: whether a connection may also be bare TCP, told apart by its first byte.
    /// - Throws: `HexlistError` `identity` when TLS does not take the identity.
    public init(
        identity: Identity, eventLoop: any EventLoop, limits: TransportLimits = TransportLimits(), acceptsPlain: Bool = false,
        logger: Logger
    ) throws {
        // A write to a socket the other side has closed must be an error, not the end of the process.
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
            eventLoop: eventLoop, contexts: contexts, limits: limits, acceptsPlain: acceptsPlain, logger: logger)
        self.state = .makeBoxSendingValue(state, eventLoop: eventLoop)
    }

    /// Keeps places free for the last addresses of trusted peers (`TransportLimits.reserved`). From any thread.
    /// - Parameter addresses: numeric; they replace those given before. What is no address is left out.
    public func setReservedAddresses(_ addresses: [String]) {
        let addresses = addresses.compactMap { IPAddress(scoped: $0) }
        let state = state
        eventLoop.execute { state.value.admission.reserve(addresses) }
    }

    /// Tells which IPv6 addresses are on an own link, for connections to come. From any thread.
    /// - Parameter networks: the addresses of own interfaces, each with the bits of its prefix.
    public func setOwnNetworks(_ networks: [(prefix: IPAddress, length: Int)]) {
        let state = state
        eventLoop.execute { state.value.admission.setLinks(networks) }
    }

    /// For connections to come; those there are stay. From any thread.
    public func setLimits(_ limits: TransportLimits) {
        let state = state
        eventLoop.execute { state.value.setLimits(limits) }
    }

    /// Dials targets of one peer, the next one `stagger` after the one before or as soon as that failed; each gets 3 s. The
    /// first to finish its handshake wins, and the others are closed. From any thread.
    /// - Parameters:
    ///   - targets: best first.
    ///   - expected: who must answer; anyone for `nil`. Another one there is a failure of that target, and the others go on.
    public func dial(
        _ targets: [DialTarget], expecting expected: PeerID? = nil, stagger: TimeAmount = .milliseconds(250)
    ) -> Dial {
        let promise = eventLoop.makePromise(of: DialReport.self)
        let state = state
        let race = NIOLoopBoundBox<DialRace?>.makeEmptyBox(valueType: DialRace.self, eventLoop: eventLoop)
        eventLoop.execute {
            let running = DialRace(
                targets: targets, expecting: expected, stagger: stagger, state: state.value, promise: promise)
            race.value = running
            promise.futureResult.whenComplete { _ in race.value = nil }
            running.start()
        }
        return Dial(report: promise.futureResult, race: race)
    }

    /// Stops listening and dialling, closes what is open, and returns when all of it is gone: after a little over 2 s at most.
    public func shutdown() async {
        // The loop lives longer than the transport, and the futures of closed channels do not fail.
        try? await eventLoop.flatSubmit { [state] in state.value.stop() }.get()
    }

    /// Runs on the loop.
    func onLoop(_ work: @escaping @Sendable (TransportState) -> Void) async throws {
        try await eventLoop.submit { [state] in work(state.value) }.get()
    }
}
