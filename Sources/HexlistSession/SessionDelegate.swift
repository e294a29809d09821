public import HexlistModel
public import HexlistWire

/// The owner of sessions: it receives their events, decides about trust, stores received hexes, and sends hexes.
///
/// Every method is called on the event loop of the session's connection, and must not block it. A session retains its delegate until it has
/// ended.
public protocol SessionDelegate: AnyObject, Sendable {
    /// Handles the first Hello of the peer. On TLS its identity is proven, and `PeerSession.peer` has it; on plain TCP it is only a claim.
    /// - Parameter version: the version of the peer's program, to be displayed. Untrusted text of the peer.
    func opened(_ session: PeerSession, hello: Hello, version: String)

    /// Handles a batch of received hexes, at most `PeerSession.batchLimit`. Once they are durable or refused, the delegate calls
    /// `PeerSession.batchCompleted` with a result for each hex, in their order. The next batch follows only after that call. Also called
    /// for frames that arrived before the session's end.
    func received(hexes: [IncomingHex], on session: PeerSession)

    /// Handles the end of the session. Called once. Only `received(hexes:on:)` may be called later, for frames that arrived before the end.
    /// - Parameter closedByPeer: whether the peer closed the connection without a Bye. `false` if the connection was lost.
    func ended(_ session: PeerSession, end: Session.EndReason, closedByPeer: Bool)

    /// Handles results of hexes that were sent with `PeerSession.send`, in their order. Ignored by default.
    func settled(_ hexes: [RowResult], on session: PeerSession)

    /// Handles a writable connection: `PeerSession.canSend` may be true again. Ignored by default.
    func writabilityChanged(on session: PeerSession)

    /// Handles another Hello of the peer, with a new name or a higher frame limit. Ignored by default.
    func updated(_ session: PeerSession, hello: Hello)

    /// Handles a first frame other than a Hello. The peer is a legacy sender, which sends hexes and receives only receipts. Ignored by
    /// default.
    func openedWithoutHello(_ session: PeerSession)

    /// Handles a step of a pairing, over TLS and after Hello. Refused by default.
    func received(pairing: Pairing, on session: PeerSession)

    /// Handles a message for the user: untrusted text of the peer, at most `ProtocolLimits.messageBytes` bytes. Ignored by default.
    func received(alert: String, on session: PeerSession)

    /// Handles a dial-back request, by which the peer tests whether its port can be reached. `Session.answerDialBack` answers it. Ignored
    /// by default.
    func received(dialBack: DialBack, on session: PeerSession)

    /// Handles a request of the peer to dial it. The peer fetches files on the new connection. Ignored by default.
    func received(fileDial: DialBack, on session: PeerSession)

    /// Handles the announcement that lists of the peer have changed. A peer can send it as often as it likes. Ignored by default.
    func receivedListNews(on session: PeerSession)

    /// Handles the answer or the timeout of a challenge (`Session.challenge`). Ignored by default.
    func challengeEnded(_ message: String, answered: Bool, on session: PeerSession)

    /// Observes a receipt that refuses hexes before it is sent, for metrics. Ignored by default.
    func sending(refusals receipt: Receipt, on session: PeerSession)

    /// Whether an idle session with a stranger is not ended, because it is needed to send a hex, or for a pairing or a file. `false` by
    /// default.
    func hasWork(for session: PeerSession) -> Bool

    /// Whether a stranger's session may be ended to make room for another stranger. `true` by default.
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
    public func receivedListNews(on session: PeerSession) {}
    public func challengeEnded(_ message: String, answered: Bool, on session: PeerSession) {}
    public func sending(refusals receipt: Receipt, on session: PeerSession) {}
    public func hasWork(for session: PeerSession) -> Bool { false }
    public func mayGiveWay(_ session: PeerSession) -> Bool { true }
}
