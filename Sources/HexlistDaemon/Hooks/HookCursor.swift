import HexlistModel

/// How far a hook is in the event log, and how often it failed on the event after that.
struct HookCursor: Equatable, Sendable {
    /// Number of the last event that is dealt with.
    private(set) var number: Int64
    private(set) var failures = 0

    /// Times a hook is tried again on one event.
    static let retries = 5
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(16))

    /// What follows a failure.
    enum Verdict: Equatable, Sendable {
        /// - Parameter after: the pause before it.
        case again(after: Duration)
        case givenUp
    }

    init(number: Int64) { self.number = number }

    /// As the store keeps it, `<number> <failures>`.
    init?(text: String) {
        let parts = text.split(separator: " ").map { Int64($0) }
        guard parts.count == 2, let number = parts[0], let failures = parts[1], number >= 0,
            (0...Int64(Self.retries)).contains(failures)
        else { return nil }
        self.number = number
        self.failures = Int(failures)
    }

    var text: String { "\(number) \(failures)" }

    /// The event is dealt with, and so is what lies before it.
    mutating func pass(_ event: Int64) {
        number = max(number, event)
        failures = 0
    }

    /// It failed on an event: 1, 2, 4, 8, 16 s later it is tried again, and then it goes on with the next one.
    mutating func fail(_ event: Int64) -> Verdict {
        guard failures < Self.retries else {
            pass(event)
            return .givenUp
        }
        failures += 1
        return .again(after: Self.backoff.pause(after: failures))
    }
}
