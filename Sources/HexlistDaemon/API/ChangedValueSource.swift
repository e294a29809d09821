import HexlistAPI
import HexlistJSON

/// A source of an event stream that sends a value in the first message, and again whenever the value has changed.
struct ChangedValueSource<Shape: JSONEncodable>: EventStreamSource {
    /// The event type of the messages.
    let event: String
    let read: @Sendable () async throws -> Shape
    private var last: String?
    private var lookedAt: ContinuousClock.Instant?

    /// Minimum time between two reads of the value.
    private static var pause: Duration { .milliseconds(100) }

    init(event: String, read: @escaping @Sendable () async throws -> Shape) {
        self.event = event
        self.read = read
    }

    mutating func next() async throws -> (messages: [ServerSentEvent], hasMore: Bool) {
        if let lookedAt, ContinuousClock.now - lookedAt < Self.pause { try await Task.sleep(until: lookedAt + Self.pause) }
        let seen = try await read().jsonText
        lookedAt = .now
        guard seen != last else { return ([], false) }
        last = seen
        return ([ServerSentEvent(event: event, data: seen)], false)
    }
}
