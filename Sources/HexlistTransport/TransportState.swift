import HexlistModel
import Logging
import NIOCore

/// The state that the connections of a transport share. Used on its event loop only.
final class TransportState {
    let eventLoop: any EventLoop
    let contexts: TLSContexts
    let acceptsPlain: Bool
    let logger: Logger
    let metrics: TransportMetrics
    let resolver: NameResolver
    let plainHTTP: PlainHTTPHost
    var plainSlots = PlainHTTPSlots<ObjectIdentifier>()
    var admission: Admission
    /// The rate limit of handshakes from the addresses at which trusted peers were last reached. It is separate, so that many handshakes
    /// from other addresses do not delay trusted peers.
    let reservedHandshakes: HandshakeRateLimit
    /// The rate limit of all other handshakes.
    let handshakes: HandshakeRateLimit
    private(set) var isStopping = false
    private var onAccept: ((PeerConnection) -> Void)?
    /// The callbacks for serving files; `nil` if no files are served.
    private var fileHost: FileConnectionHost?
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
        eventLoop: any EventLoop, contexts: TLSContexts, limits: TransportLimits, acceptsPlain: Bool, plainHTTP: PlainHTTPHost,
        metrics: TransportMetrics, logger: Logger
    ) {
        self.eventLoop = eventLoop
        self.contexts = contexts
        self.acceptsPlain = acceptsPlain
        self.plainHTTP = plainHTTP
        self.metrics = metrics
        self.logger = logger
        admission = Admission(limits: limits)
        reservedHandshakes = HandshakeRateLimit(perSecond: limits.handshakesPerSecond, eventLoop: eventLoop)
        handshakes = HandshakeRateLimit(perSecond: limits.handshakesPerSecond, eventLoop: eventLoop)
        resolver = NameResolver(eventLoop: eventLoop)
        listeners = Listeners(eventLoop: eventLoop, logger: logger)
    }

    func setLimits(_ limits: TransportLimits) {
        admission.limits = limits
        reservedHandshakes.setRate(limits.handshakesPerSecond)
        handshakes.setRate(limits.handshakesPerSecond)
    }

    func accept(with onAccept: @escaping (PeerConnection) -> Void) { self.onAccept = onAccept }

    func serveFiles(for host: FileConnectionHost) { fileHost = host }

    /// The host that may serve files to the peer with this key; `nil` if the peer may not have another connection for files.
    func host(serving peer: Fingerprint) -> FileConnectionHost? {
        guard let fileHost, !isStopping, fileHost.mayServe(peer) else { return nil }
        return fileHost
    }

    func serves(_ connection: FileServerConnection) {
        guard let fileHost, !isStopping else { return connection.abort() }
        metrics.accepted.increment()
        fileHost.onServerConnection(connection)
    }

    /// Whether this machine has requested the peer with this key to dial and to serve files.
    func expectsFiles(of peer: Fingerprint) -> Bool {
        guard let fileHost, !isStopping else { return false }
        return fileHost.expectsFiles(peer)
    }

    func filesConnected(on connection: FileClientConnection) {
        guard let fileHost, !isStopping else { return connection.abort() }
        metrics.accepted.increment()
        fileHost.onClientConnection(connection)
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

    /// Closes a connection immediately.
    /// - Parameter channel: the identifier of the channel.
    func abort(_ channel: ObjectIdentifier) { live[channel]?.gate.abort() }

    func ended(_ channel: any Channel) { live[ObjectIdentifier(channel)] = nil }

    /// Retains a race until it ends.
    func began(_ race: DialRace) {
        races[ObjectIdentifier(race)] = race
        if isStopping { race.cancel() }
    }

    func ended(_ race: DialRace) { races[ObjectIdentifier(race)] = nil }

    /// Stops listening and dialling, and closes all connections.
    /// - Returns: a future that completes when all channels are closed.
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
