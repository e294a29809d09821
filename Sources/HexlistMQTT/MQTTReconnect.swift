import HexlistModel

/// Computes the pause before the next connection to a broker from the ends of earlier connections.
package struct MQTTReconnect: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// The pauses after consecutive failures, if no connection has worked recently.
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(300))
    /// The pauses during `recoveryTime` after a working connection ended. They are short, so that envelopes are delivered soon after a
    /// restart of the broker.
    private static let recoveryBackoff = Backoff(from: .seconds(1), to: .seconds(4))
    private static let recoveryTime = Duration.seconds(300)
    /// The pause after another client with the same id was recognised.
    package static let secondClientPause = Duration.seconds(600)
    /// If the broker closes a connection within this time of the login, another client with the same id may have caused it.
    private static let shortTime = Duration.seconds(10)
    /// If the broker closed `takeovers` connections that early within this time, another client has the same id.
    private static let takeoverTime = Duration.seconds(60)
    private static let takeovers = 3
    /// A connection that lasted for this time resets the number of consecutive failures.
    private static let healthyTime = Duration.seconds(60)

    /// The end of a connection.
    package struct End: Equatable, Sendable {
        package var fault: MQTTFault
        /// The time of the successful login; `nil` if there was none.
        package var loggedInAt: Instant?
        /// Whether publishes were in flight at the end.
        package var hadPublishes: Bool

        package init(fault: MQTTFault, loggedInAt: Instant?, hadPublishes: Bool) {
            self.fault = fault
            self.loggedInAt = loggedInAt
            self.hadPublishes = hadPublishes
        }
    }

    private var failures = 0
    /// The end of the last connection that lasted at least `shortTime`.
    private var workedUntil: Instant?
    /// The times within the last `takeoverTime` at which the broker closed a connection within `shortTime` of its login.
    private var shortEnds: [Instant] = []
    /// Whether another machine seems to use the client id.
    package private(set) var hasSecondClient = false

    package init() {}

    /// Records the end of a connection.
    /// - Returns: the pause until the next connection.
    package mutating func pause(after end: End, now: Instant, using random: inout some RandomNumberGenerator) -> Duration {
        let lasted = end.loggedInAt.map { now - $0 }
        if let lasted, lasted >= Self.healthyTime { failures = 0 }
        if let lasted, lasted >= Self.shortTime { workedUntil = now }
        failures += 1
        // If publishes were in flight, a full mailbox is a more likely cause than another client.
        if end.fault == .closed, !end.hadPublishes, let lasted, lasted < Self.shortTime { shortEnds.append(now) }
        shortEnds.removeAll { now - $0 > Self.takeoverTime }
        hasSecondClient = shortEnds.count >= Self.takeovers
        guard !hasSecondClient else {
            shortEnds = []
            return Self.secondClientPause
        }
        // The pauses after a working connection are short enough for three takeovers in a minute.
        let backoff = workedUntil.map { now - $0 < Self.recoveryTime } ?? false ? Self.recoveryBackoff : Self.backoff
        return backoff.jitteredPause(after: failures, shortest: .seconds(1), using: &random)
    }
}
