import HexlistAPI
import HexlistJSON

/// The source of a value that is sent whenever it differs from the one sent last.
struct WatchSource<Shape: JSONEncodable>: StreamSource {
    /// The kind of the messages.
    let event: String
    let look: @Sendable () async throws -> Shape
    private var last: String?
    private var lookedAt: ContinuousClock.Instant?

    /// The least time between two looks, however fast the value changes.
    private static var pause: Duration { .milliseconds(100) }

    init(event: String, look: @escaping @Sendable () async throws -> Shape) {
        self.event = event
        self.look = look
    }

    mutating func next() async throws -> (messages: [StreamMessage], hasMore: Bool) {
        if let lookedAt, ContinuousClock.now - lookedAt < Self.pause { try await Task.sleep(until: lookedAt + Self.pause) }
        let seen = try await look().jsonText
        lookedAt = .now
        guard seen != last else { return ([], false) }
        last = seen
        return ([StreamMessage(event: event, data: seen)], false)
    }
}
