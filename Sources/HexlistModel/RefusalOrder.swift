/// Keeps the order of a sender's hexes after a temporary refusal: later hexes are refused for the same reason until a refused one is sent
/// again, so that none overtakes it (Docs/Protocol.md, "Delivery").
public struct RefusalOrder<Reason: Sendable>: Sendable {
    private struct Refusing: Sendable {
        var reason: Reason
        var ids: Set<MessageID> = []
    }

    private var refusing: Refusing?

    public init() {}

    /// Whether hexes are being refused.
    public var isRefusing: Bool { refusing != nil }

    /// The reason to refuse a hex; `nil` if it can be accepted. A hex that was refused before ends the refusals.
    ///
    /// Remembers at most 4 096 refused IDs (128 KiB), more than a well-behaved sender has in flight.
    public mutating func reason(toRefuse id: MessageID?) -> Reason? {
        guard let reason = refusing?.reason else { return nil }
        guard let id else { return reason }
        if refusing?.ids.contains(id) == true {
            refusing = nil
            return nil
        }
        if let count = refusing?.ids.count, count < 4_096 { refusing?.ids.insert(id) }
        return reason
    }

    /// Starts refusing after a hex was refused temporarily, or adds it to those that end the refusals.
    public mutating func refused(_ id: MessageID, for reason: Reason) {
        if refusing == nil { refusing = Refusing(reason: reason) }
        refusing?.ids.insert(id)
    }
}
