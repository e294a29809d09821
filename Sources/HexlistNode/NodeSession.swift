import HexlistDiscovery
package import HexlistModel
package import HexlistSession
import HexlistTransport
import HexlistWire

/// The dial that opened a session.
struct SessionDial: Sendable {
    var endpoint: Endpoint
    /// The directory's probe for which the peer was dialled; `nil` if it was dialled for another reason, such as queued rows, a pairing or
    /// `hexlist doctor`.
    var probe: ProbeID?
    var expected: PeerID?
}

/// The delegate of one session: passes the session's events to the node, and stores the node's data about the session.
///
/// Confined to the node's event loop; that makes it `Sendable`.
final class NodeSession: SessionDelegate, @unchecked Sendable {
    enum NameUpdatePause {
        case quiet
        /// Another Hello of the peer arrived during the pause of 1 s; its name is stored after the pause.
        case hadHello
    }

    private let node: Node
    /// The dial that opened the session; `nil` for an inbound session.
    let dialled: SessionDial?
    /// The description of the session that was passed to the directory.
    var info: SessionInfo?
    /// The state of the pause of 1 s after a new name of the peer was stored; `nil` outside such a pause.
    var namePause: NameUpdatePause?

    init(_ node: Node, _ dialled: SessionDial?) {
        self.node = node
        self.dialled = dialled
    }

    func opened(_ session: PeerSession, hello: Hello, version: String) {
        node.assumeIsolated { $0.sessionOpened(session, hello: hello, version: version) }
    }
    func openedWithoutHello(_ session: PeerSession) { node.assumeIsolated { $0.legacySender(session) } }
    func updated(_ session: PeerSession, hello: Hello) { node.assumeIsolated { $0.sessionUpdated(session, hello: hello) } }
    func received(hexes: [IncomingHex], on session: PeerSession) { node.assumeIsolated { $0.receive(hexes, from: session) } }
    func settled(_ hexes: [RowResult], on session: PeerSession) { node.assumeIsolated { $0.settled(hexes, on: session) } }
    func writabilityChanged(on session: PeerSession) { node.assumeIsolated { $0.writabilityChanged(on: session) } }
    func received(pairing: Pairing, on session: PeerSession) { node.assumeIsolated { $0.pairingDriver.received(pairing, session, $0) } }
    func received(alert: String, on session: PeerSession) { node.assumeIsolated { $0.alertReceived(alert, session) } }
    func received(dialBack: DialBack, on session: PeerSession) { node.assumeIsolated { $0.answerDialBack(dialBack, session) } }
    func received(fileDial: DialBack, on session: PeerSession) {
        guard session.peer != nil, let key = session.connection.peerFingerprint else { return }
        node.transfers.dial(fileDial, for: key, at: session.connection.remoteAddress)
    }
    func receivedListNews(on session: PeerSession) {
        guard let peer = session.peer else { return }
        node.assumeIsolated { $0.lists.newsArrived(from: peer, $0) }
    }
    func challengeEnded(_ message: String, answered: Bool, on session: PeerSession) {
        node.assumeIsolated { $0.duplicates.ended(session, message: message, answered: answered, $0) }
    }
    func sending(refusals receipt: Receipt, on session: PeerSession) { node.metrics.refused(in: receipt) }
    func hasWork(for session: PeerSession) -> Bool { node.assumeIsolated { $0.hasWork(for: session.peer) } }
    func mayGiveWay(_ session: PeerSession) -> Bool {
        node.assumeIsolated { node in
            // A session that a pairing or an identity check needs is not closed to make room for another one.
            !(session.peer.map(node.pairingDriver.coordinator.concerns) ?? false || node.duplicates.isWitness(session))
        }
    }
    func ended(_ session: PeerSession, end: Session.EndReason, closedByPeer: Bool) {
        node.assumeIsolated { $0.sessionEnded(session, end: end, closedByPeer: closedByPeer) }
    }
}

extension PeerSession {
    private var own: NodeSession? { delegate as? NodeSession }

    /// The dial that opened the session; `nil` for an inbound session.
    var dialled: SessionDial? { own?.dialled }

    var info: SessionInfo? {
        get { own?.info }
        set { own?.info = newValue }
    }

    var namePause: NodeSession.NameUpdatePause? {
        get { own?.namePause }
        set { own?.namePause = newValue }
    }

    /// The numeric address of a session that was dialled by a host name; `nil` for other sessions.
    var addressBehindName: String? {
        guard let dialled, connection.remoteAddress != dialled.endpoint.host, DialTarget(dialled.endpoint).isName else { return nil }
        return connection.remoteAddress
    }

    /// The source address of an inbound session.
    var source: Endpoint? {
        guard dialled == nil else { return nil }
        return Endpoint(host: connection.remoteAddress, port: connection.remotePort, via: .inbound)
    }
}

extension Node: DuplicateChallengesHost {
    package func isPairing(on session: PeerSession) -> Bool { pairingDriver.coordinator.hasExchange(on: ObjectIdentifier(session)) }
    package func postponesEnd(of session: PeerSession) -> Bool { pairingDriver.postponesEnd(of: session) }
    package func foundTwoStarts(of peer: PeerID, _ older: BootNonce, _ newer: BootNonce) {
        finder.apply(.identityConflict(peer, older, newer), self)
    }
}

extension SessionLimits {
    init(_ limits: NodeConfiguration.Limits) {
        self.init()
        strangerFrameBytes = limits.strangerFrameBytes
        strangerFramesPerSecond = limits.strangerFramesPerSecond
        allStrangersFramesPerSecond = limits.allStrangersFramesPerSecond
        strangerSessions = limits.strangerSessions
    }
}
