import HexlistModel

/// When rows may go out again to a peer that failed on them, or refused them for now. Outlives the sessions with it.
struct DeliveryBackoff: Sendable {
    typealias Instant = ContinuousClock.Instant

    private static let shortest = Duration.seconds(ProtocolLimits.retryAfterRange.lowerBound)

    /// The end of the wait after a transfer that failed.
    private var failedUntil: Instant?
    /// The end of the wait the peer itself asked for.
    private var refusedUntil: Instant?
    /// When a wait the peer asked for last ended because it said that it may take more.
    private var invitedAt: Instant?
    /// The peer's start, and the bytes of a frame it took, as its newest Hello told them.
    private var greeting: (boot: BootNonce, frameLimit: Int)?

    /// The later end of both waits.
    var until: Instant? {
        guard let failedUntil else { return refusedUntil }
        return refusedUntil.map { max($0, failedUntil) } ?? failedUntil
    }

    mutating func failed(until instant: Instant) { failedUntil = max(failedUntil ?? instant, instant) }

    mutating func refused(until instant: Instant) { refusedUntil = max(refusedUntil ?? instant, instant) }

    /// A hex was refused that left before the peer's last Hello, or on another session: with the hex before it, which says nothing about what the peer
    /// takes now. One wait for all of them, and always one: a peer could answer each hex by a Hello and a refusal.
    mutating func refusedUninvited(now: Instant) { refused(until: now + Self.shortest) }

    mutating func endFailure() { failedUntil = nil }

    mutating func endRefusal() { refusedUntil = nil }

    mutating func end() {
        failedUntil = nil
        refusedUntil = nil
    }

    /// The peer's first Hello on a session.
    mutating func greeted(boot: BootNonce, frameLimit: Int, now: Instant) {
        if let greeting, greeting.boot != boot || greeting.frameLimit < frameLimit { invited(now: now) }
        greeting = (boot, frameLimit)
    }

    /// The peer's later Hello.
    /// - Parameter frameLimit: `nil` where it does not count for the session that is sent on.
    mutating func greetedAgain(frameLimit: Int?, now: Instant) {
        if let frameLimit { greeting?.frameLimit = frameLimit }
        invited(now: now)
    }

    /// Ends the wait the peer asked for, but for so much that a peer that says Hello all the time is asked no more often than one with
    /// the shortest `retryAfter`.
    private mutating func invited(now: Instant) {
        guard let until = refusedUntil else { return }
        let earliest = invitedAt.map { max(now, $0 + Self.shortest) } ?? now
        refusedUntil = min(until, earliest)
        invitedAt = refusedUntil
    }
}
