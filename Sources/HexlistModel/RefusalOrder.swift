/// The order of a sender's hexes after a temporary refusal: later hexes must not overtake the refused one, so they are refused for the same
/// reason until a refused hex is sent again (Docs/Protocol.md, "Delivery").
public struct RefusalOrder<Reason: Sendable>: Sendable {
    private struct Refusing: Sendable {
        var reason: Reason
        var ids: Set<MessageID> = []
    }

    private var refusing: Refusing?

    public init() {}

    /// Whether hexes may have to be refused.
    public var isRefusing: Bool { refusing != nil }

    /// The reason to refuse a hex for; `nil` if the hex may be taken. A hex that was refused before ends the refusals.
    ///
    /// Remembers at most 4 096 of the ids refused here: more than any honest sender has in flight, and 128 KiB.
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

    /// Begins the refusals with a hex that was refused for now, or adds the hex to those that end them.
    public mutating func refused(_ id: MessageID, for reason: Reason) {
        if refusing == nil { refusing = Refusing(reason: reason) }
        refusing?.ids.insert(id)
    }
}
