import HexlistModel
import Logging
import NIOCore

/// The state of a transport, confined to its event loop. All parts of the transport share it.
final class TransportState {
    let eventLoop: any EventLoop
    let contexts: TLSContexts
    let acceptsPlain: Bool
    let logger: Logger
    let metrics: TransportMetrics
    let resolver: NameResolver
    var admission: Admission
    /// The handshakes from the last addresses of trusted peers, and of all others, so that a flood of these does not delay those.
    let reservedTurns: HandshakeRateLimit
    let turns: HandshakeRateLimit
    private(set) var isStopping = false
    private var onAccept: ((PeerConnection) -> Void)?
    /// `nil` while no files are handed out.
    private var fileHost: FileHost?
    let fileThreads = FileThreads()
    private var live: [ObjectIdentifier: LiveChannel] = [:]
    private var races: [ObjectIdentifier: DialRace] = [:]
    let listeners: Listeners

    private struct LiveChannel {
        var channel: any Channel
        var gate: ChannelGate
        var connection: PeerConnection?
    }

    init(
        eventLoop: any EventLoop, contexts: TLSContexts, limits: TransportLimits, acceptsPlain: Bool, metrics: TransportMetrics,
        logger: Logger
    ) {
        self.eventLoop = eventLoop
        self.contexts = contexts
        self.acceptsPlain = acceptsPlain
        self.metrics = metrics
        self.logger = logger
        admission = Admission(limits: limits)
        reservedTurns = HandshakeRateLimit(perSecond: limits.handshakesPerSecond, eventLoop: eventLoop)
        turns = HandshakeRateLimit(perSecond: limits.handshakesPerSecond, eventLoop: eventLoop)
        resolver = NameResolver(eventLoop: eventLoop)
        listeners = Listeners(eventLoop: eventLoop, logger: logger)
    }

    func setLimits(_ limits: TransportLimits) {
        admission.limits = limits
        reservedTurns.setRate(limits.handshakesPerSecond)
        turns.setRate(limits.handshakesPerSecond)
    }

    func accept(with onAccept: @escaping (PeerConnection) -> Void) { self.onAccept = onAccept }

    func serveFiles(for host: FileHost) { fileHost = host }

    /// Who serves a peer that proved this key; `nil` if it may not have one more connection for files.
    func host(serving peer: Fingerprint) -> FileHost? {
        guard let fileHost, !isStopping, fileHost.mayServe(peer) else { return nil }
        return fileHost
    }

    func serves(_ connection: FileServerConnection) {
        guard let fileHost, !isStopping else { return connection.abort() }
        metrics.accepted.increment()
        fileHost.serves(connection)
    }

    /// Whether a peer that proved this key was asked to dial and serve files.
    func wantsFiles(of peer: Fingerprint) -> Bool {
        guard let fileHost, !isStopping else { return false }
        return fileHost.wantsFiles(peer)
    }

    func takesFiles(on connection: FileClientConnection) {
        guard let fileHost, !isStopping else { return connection.abort() }
        metrics.accepted.increment()
        fileHost.takesFiles(connection)
    }

    func accepted(_ connection: PeerConnection) {
        guard let onAccept, !isStopping else { return connection.abort() }
        metrics.accepted.increment()
        onAccept(connection)
    }

    func opened(_ channel: any Channel, _ gate: ChannelGate) {
        live[ObjectIdentifier(channel)] = LiveChannel(channel: channel, gate: gate)
    }

    func connected(_ connection: PeerConnection, on channel: any Channel) {
        live[ObjectIdentifier(channel)]?.connection = connection
    }

    func ended(_ channel: any Channel) { live[ObjectIdentifier(channel)] = nil }

    /// Holds a race until it is over.
    func began(_ race: DialRace) {
        races[ObjectIdentifier(race)] = race
        if isStopping { race.cancel() }
    }

    func ended(_ race: DialRace) { races[ObjectIdentifier(race)] = nil }

    /// - Returns: a future that completes when everything is closed.
    func stop() -> EventLoopFuture<Void> {
        isStopping = true
        onAccept = nil
        fileHost = nil
        for race in Array(races.values) { race.cancel() }
        var gone = listeners.close()
        for one in Array(live.values) {
            gone.append(one.channel.closeFuture)
            if let connection = one.connection { connection.close() } else { one.gate.abort() }
        }
        return .andAllComplete(gone, on: eventLoop)
    }
}
