import HexlistModel

/// The position of a hook in the event log, and the number of its failures for the next event.
struct HookCursor: Equatable, Sendable {
    /// The number of the last event that was handled or skipped.
    private(set) var number: Int64
    private(set) var failures = 0

    /// Maximum number of retries for one event.
    static let retries = 5
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(16))

    /// The decision after a failed run of the hook.
    enum RetryDecision: Equatable, Sendable {
        /// The hook has to run again for the event, after this time.
        case retry(after: Duration)
        case giveUp
    }

    init(number: Int64) { self.number = number }

    /// Parses the text in the store, `<number> <failures>`; `nil` if it is invalid.
    init?(text: String) {
        let parts = text.split(separator: " ").map { Int64($0) }
        guard parts.count == 2, let number = parts[0], let failures = parts[1], number >= 0,
            (0...Int64(Self.retries)).contains(failures)
        else { return nil }
        self.number = number
        self.failures = Int(failures)
    }

    var text: String { "\(number) \(failures)" }

    /// Marks all events up to the given number as handled.
    mutating func pass(_ event: Int64) {
        number = max(number, event)
        failures = 0
    }

    /// Counts a failure for an event. The event is retried after 1, 2, 4, 8 and 16 s, and then skipped.
    mutating func fail(_ event: Int64) -> RetryDecision {
        guard failures < Self.retries else {
            pass(event)
            return .giveUp
        }
        failures += 1
        return .retry(after: Self.backoff.pause(after: failures))
    }
}
