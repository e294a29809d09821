import HexlistModel

/// The position of a hook in the event log, and its failures on the event after that.
struct HookCursor: Equatable, Sendable {
    /// The number of the last event that was handled.
    private(set) var number: Int64
    private(set) var failures = 0

    /// The number of retries on one event.
    static let retries = 5
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(16))

    /// The consequence of a failure.
    enum Verdict: Equatable, Sendable {
        /// The event is tried again after a pause.
        case again(after: Duration)
        case givenUp
    }

    init(number: Int64) { self.number = number }

    /// Reads the form kept in the store, `<number> <failures>`.
    init?(text: String) {
        let parts = text.split(separator: " ").map { Int64($0) }
        guard parts.count == 2, let number = parts[0], let failures = parts[1], number >= 0,
            (0...Int64(Self.retries)).contains(failures)
        else { return nil }
        self.number = number
        self.failures = Int(failures)
    }

    var text: String { "\(number) \(failures)" }

    /// Marks an event, and all before it, as handled.
    mutating func pass(_ event: Int64) {
        number = max(number, event)
        failures = 0
    }

    /// Counts a failure on an event: it is tried again after 1, 2, 4, 8, 16 s, then the next event follows.
    mutating func fail(_ event: Int64) -> Verdict {
        guard failures < Self.retries else {
            pass(event)
            return .givenUp
        }
        failures += 1
        return .again(after: Self.backoff.pause(after: failures))
    }
}
