import HexlistModel

/// The pauses before rows are sent to a peer again, after a failed transfer or a temporary refusal. They go on after the end of a session.
struct DeliveryBackoff: Sendable {
    typealias Instant = ContinuousClock.Instant

    private static let shortest = Duration.seconds(ProtocolLimits.retryAfterRange.lowerBound)

    /// The end of the pause after a failed transfer; `nil` if there is none.
    private var failedUntil: Instant?
    /// The end of the pause that the peer requested with `retryAfter`; `nil` if there is none.
    private var refusedUntil: Instant?
    /// The last time at which the pause requested by the peer was ended by a Hello of the peer.
    private var invitedAt: Instant?
    /// The boot nonce and the frame limit of the peer's newest Hello.
    private var greeting: (boot: BootNonce, frameLimit: Int)?

    /// The end of the pause: after a failed transfer, or requested by the peer (the later of both); `nil` if there is none.
    var until: Instant? {
        guard let failedUntil else { return refusedUntil }
        return refusedUntil.map { max($0, failedUntil) } ?? failedUntil
    }

    mutating func failed(until instant: Instant) { failedUntil = max(failedUntil ?? instant, instant) }

    mutating func refused(until instant: Instant) { refusedUntil = max(refusedUntil ?? instant, instant) }

    /// Begins the shortest pause, after the refusal of a hex that was sent before the peer's last Hello or on another session. Such a
    /// refusal says nothing about the peer's capacity now. Without any pause, a peer that answers each hex with a Hello and a refusal would
    /// be retried in a busy loop.
    mutating func refusedBeforeHello(now: Instant) { refused(until: now + Self.shortest) }

    mutating func endFailure() { failedUntil = nil }

    mutating func endRefusal() { refusedUntil = nil }

    mutating func end() {
        failedUntil = nil
        refusedUntil = nil
    }

    /// Handles the first Hello of a session. Ends the requested pause if the peer restarted, or raised its frame limit.
    mutating func greeted(boot: BootNonce, frameLimit: Int, now: Instant) {
        if let greeting, greeting.boot != boot || greeting.frameLimit < frameLimit { invited(now: now) }
        greeting = (boot, frameLimit)
    }

    /// Handles a later Hello of a session. Ends the requested pause.
    /// - Parameter frameLimit: the frame limit in this Hello; `nil` if the Hello came on a session that is not used for sending.
    mutating func greetedAgain(frameLimit: Int?, now: Instant) {
        if let frameLimit { greeting?.frameLimit = frameLimit }
        invited(now: now)
    }

    /// Ends the requested pause, at most once per `shortest`. A peer that keeps sending Hello is thus retried no more often than a peer
    /// that requests the shortest `retryAfter`.
    private mutating func invited(now: Instant) {
        guard let until = refusedUntil else { return }
        let earliest = invitedAt.map { max(now, $0 + Self.shortest) } ?? now
        refusedUntil = min(until, earliest)
        invitedAt = refusedUntil
    }
}
