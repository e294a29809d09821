import HexlistDiscovery
package import HexlistModel
package import HexlistSession
import HexlistTransport
import HexlistWire

/// A dial that led to a session.
struct Dialled: Sendable {
    var endpoint: Endpoint
    /// The directory's probe; `nil` for a dial for rows that wait.
    var probe: ProbeID?
    var expected: PeerID?
}

/// The delegate of one session: has the node's state of it, and passes its events to the node.
///
/// `@unchecked`: used on the node's event loop only, as the session is.
final class NodeSession: SessionDelegate, @unchecked Sendable {
    enum NameUpdateDelay {
        case quiet
        /// Another Hello came meanwhile.
        case toldAgain
    }

    private let node: Node
    /// The purpose of the dial; `nil` for an inbound session.
    let dialled: Dialled?
    /// The session as the directory knows it.
    var info: SessionInfo?
    /// The pause after the name of a later Hello was stored; `nil` if there is none.
    var namePause: NameUpdateDelay?

    init(_ node: Node, _ dialled: Dialled?) {
        self.node = node
        self.dialled = dialled
    }

    func opened(_ session: PeerSession, hello: Hello, version: String) {
        node.assumeIsolated { $0.sessionOpened(session, hello: hello, version: version) }
    }
    func openedWithoutHello(_ session: PeerSession) { node.assumeIsolated { $0.legacySender(session) } }
    func updated(_ session: PeerSession, hello: Hello) { node.assumeIsolated { $0.sessionUpdated(session, hello: hello) } }
    func received(hexes: [IncomingHex], on session: PeerSession) { node.assumeIsolated { $0.keep(hexes, from: session) } }
    func settled(_ hexes: [RowResult], on session: PeerSession) { node.assumeIsolated { $0.settled(hexes, on: session) } }
    func writabilityChanged(on session: PeerSession) { node.assumeIsolated { $0.roomMade(on: session) } }
    func received(pairing: Pairing, on session: PeerSession) { node.assumeIsolated { $0.pairing.received(pairing, session, $0) } }
    func received(alert: String, on session: PeerSession) { node.assumeIsolated { $0.alertReceived(alert, session) } }
    func received(dialBack: DialBack, on session: PeerSession) { node.assumeIsolated { $0.dialBack(dialBack, session) } }
    func received(fileDial: DialBack, on session: PeerSession) {
        guard session.peer != nil, let key = session.connection.peerFingerprint else { return }
        node.transfers.dial(fileDial, for: key, at: session.connection.remoteAddress)
    }
    func challengeEnded(_ message: String, answered: Bool, on session: PeerSession) {
        node.assumeIsolated { $0.duplicates.ended(session, message: message, answered: answered, $0) }
    }
    func sending(refusals receipt: Receipt, on session: PeerSession) { node.metrics.refused(in: receipt) }
    func hasWork(for session: PeerSession) -> Bool { node.assumeIsolated { $0.hasWork(for: session.peer) } }
    func mayGiveWay(_ session: PeerSession) -> Bool {
        node.assumeIsolated { node in
            // A peer with which the user pairs gives way to nobody.
            !(session.peer.map(node.pairing.desk.concerns) ?? false || node.duplicates.isWitness(session))
        }
    }
    func ended(_ session: PeerSession, end: Session.End, closedByPeer: Bool) {
        node.assumeIsolated { $0.sessionEnded(session, end: end, closedByPeer: closedByPeer) }
    }
}

extension PeerSession {
    private var own: NodeSession? { delegate as? NodeSession }

    /// The purpose of the dial; `nil` for an inbound session.
    var dialled: Dialled? { own?.dialled }

    var info: SessionInfo? {
        get { own?.info }
        set { own?.info = newValue }
    }

    var namePause: NodeSession.NameUpdateDelay? {
        get { own?.namePause }
        set { own?.namePause = newValue }
    }

    /// The address that answered if the session was dialled by a host's name.
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

extension Node: DuplicatesHost {
    package func isPairing(on session: PeerSession) -> Bool { pairing.desk.hasExchange(on: ObjectIdentifier(session)) }
    package func postponesEnd(of session: PeerSession) -> Bool { pairing.postponesEnd(of: session) }
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
