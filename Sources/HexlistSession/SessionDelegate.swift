public import HexlistModel
public import HexlistWire

/// The receiver of the events of sessions: it decides whom to trust, stores hexes, and sends.
///
/// Every method is called on the event loop of the session's connection, and returns without blocking it. A session holds its delegate until
/// it has ended.
public protocol SessionDelegate: AnyObject, Sendable {
    /// The peer said Hello. On TLS its identity is proven, and `PeerSession.peer` has it; on plain TCP it is only a claim.
    /// - Parameter version: the peer's version, for display. Peer text.
    func opened(_ session: PeerSession, hello: Hello, version: String)

    /// Hexes came, at most `PeerSession.batchLimit`. The delegate calls `PeerSession.batchCompleted` once with a result for each, in their
    /// order, as soon as they are durable or refused; until then no more come on this session. Still called for frames that came before the
    /// session's end.
    func received(hexes: [IncomingHex], on session: PeerSession)

    /// The session ended. Called once, after all other calls except `received(hexes:on:)` for frames that came before.
    /// - Parameter closedByPeer: whether the other side closed the connection without a Bye, rather than the link being lost.
    func ended(_ session: PeerSession, end: Session.End, closedByPeer: Bool)

    /// The peer answered for hexes that were sent with `PeerSession.send`, in their order. By default ignored.
    func settled(_ hexes: [RowResult], on session: PeerSession)

    /// `PeerSession.canSend` may have become true again, because the connection takes writes. By default ignored.
    func writabilityChanged(on session: PeerSession)

    /// The peer sent another Hello, with another name or a larger frame limit. By default ignored.
    func updated(_ session: PeerSession, hello: Hello)

    /// The first frame was no Hello: a foreign program sends hexes and receives nothing but receipts. By default ignored.
    func openedWithoutHello(_ session: PeerSession)

    /// A step of a pairing came, over TLS and after Hello. By default refused.
    func received(pairing: Pairing, on session: PeerSession)

    /// A text for the user came. Peer text of at most `ProtocolLimits.messageBytes`. By default ignored.
    func received(alert: String, on session: PeerSession)

    /// The peer asks to be dialled back, to learn whether its port can be reached; `Session.answerDialBack` answers. By default ignored.
    func received(dialBack: DialBack, on session: PeerSession)

    /// The peer asks to be dialled for a connection on which it fetches files. By default ignored.
    func received(fileDial: DialBack, on session: PeerSession)

    /// A challenge (`Session.challenge`) was answered in time, or was not. By default ignored.
    func challengeEnded(_ message: String, answered: Bool, on session: PeerSession)

    /// A receipt that refuses hexes is being sent, for metrics. By default ignored.
    func sending(refusals receipt: Receipt, on session: PeerSession)

    /// Whether there is a reason to keep an idle session with a stranger: something to send, a pairing, a file. By default `false`.
    func hasWork(for session: PeerSession) -> Bool

    /// Whether a stranger's session may be ended because another stranger needs its place. By default `true`.
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
