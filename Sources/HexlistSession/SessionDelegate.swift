public import HexlistModel
public import HexlistWire

/// The receiver of the events of sessions: it decides whom to trust, stores hexes, and sends.
///
/// Every method is called on the event loop of the session's connection, and returns without blocking it. A session holds its delegate until
/// it has ended.
public protocol SessionDelegate: AnyObject, Sendable {
    /// Handles the first Hello of the peer. On TLS its identity is proven, and `PeerSession.peer` has it; on plain TCP it is only a claim.
    /// - Parameter version: the peer's version, for display. Peer text.
    func opened(_ session: PeerSession, hello: Hello, version: String)

    /// Handles received hexes, at most `PeerSession.batchLimit`. The delegate calls `PeerSession.batchCompleted` once they are durable or
    /// refused, with a result for each in their order. The next batch is passed only after that call. Also called for frames received
    /// before the session's end.
    func received(hexes: [IncomingHex], on session: PeerSession)

    /// Handles the end of the session. Called once, after all other calls except `received(hexes:on:)` for frames that arrived before the
    /// end.
    /// - Parameter closedByPeer: whether the other side closed the connection without a Bye, rather than the link being lost.
    func ended(_ session: PeerSession, end: Session.EndReason, closedByPeer: Bool)

    /// Handles results of hexes that were sent with `PeerSession.send`, in their order. Ignored by default.
    func settled(_ hexes: [RowResult], on session: PeerSession)

    /// Handles a writable connection: `PeerSession.canSend` may be true again. Ignored by default.
    func writabilityChanged(on session: PeerSession)

    /// Handles another Hello of the peer, with a new name or a higher frame limit. Ignored by default.
    func updated(_ session: PeerSession, hello: Hello)

    /// Handles a first frame other than Hello: a foreign program, which sends hexes and receives only receipts. Ignored by default.
    func openedWithoutHello(_ session: PeerSession)

    /// Handles a step of a pairing, over TLS and after Hello. Refused by default.
    func received(pairing: Pairing, on session: PeerSession)

    /// Handles a text for the user: peer text of at most `ProtocolLimits.messageBytes` bytes. Ignored by default.
    func received(alert: String, on session: PeerSession)

    /// Handles a dial-back request, by which the peer tests whether its port can be reached. `Session.answerDialBack` answers it. Ignored by
    /// default.
    func received(dialBack: DialBack, on session: PeerSession)

    /// Handles a request to dial the peer for a connection on which it fetches files. Ignored by default.
    func received(fileDial: DialBack, on session: PeerSession)

    /// Handles the answer or the timeout of a challenge (`Session.challenge`). Ignored by default.
    func challengeEnded(_ message: String, answered: Bool, on session: PeerSession)

    /// Observes a receipt that refuses hexes before it is sent, for metrics. Ignored by default.
    func sending(refusals receipt: Receipt, on session: PeerSession)

    /// Whether an idle session with a stranger is kept, for example to send a hex, or for a pairing or a file. `false` by default.
    func hasWork(for session: PeerSession) -> Bool

    /// Whether a stranger's session may be ended in favour of another stranger. `true` by default.
    func mayGiveWay(_ session: PeerSession) -> Bool
}

extension SessionDelegate {
    public func settled(_ hexes: [RowResult], on session: PeerSession) {}
    public func writabilityChanged(on session: PeerSession) {}
    public func updated(_ session: PeerSession, hello: Hello) {}
    public func openedWithoutHello(_ session: PeerSession) {}
    public func received(pairing: Pairing, on session: PeerSession) { session.refuse(pairing) }
    public func received(alert: String, on session: PeerSession) {}
    public func received(dialBack: DialBack, on session: PeerSession) {}
    public func received(fileDial: DialBack, on session: PeerSession) {}
    public func challengeEnded(_ message: String, answered: Bool, on session: PeerSession) {}
    public func sending(refusals receipt: Receipt, on session: PeerSession) {}
    public func hasWork(for session: PeerSession) -> Bool { false }
    public func mayGiveWay(_ session: PeerSession) -> Bool { true }
}
