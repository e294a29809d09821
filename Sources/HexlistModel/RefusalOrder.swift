/// Keeps a sender's hexes in order after one was refused temporarily. Until the sender sends a refused hex again, all other hexes are
/// refused for the same reason, so that none overtakes it (Docs/Protocol.md, "Delivery").
public struct RefusalOrder<Reason: Sendable>: Sendable {
    private struct Refusing: Sendable {
        var reason: Reason
        var ids: Set<MessageID> = []
    }

    private var refusing: Refusing?

    public init() {}

    /// Whether hexes are being refused.
    public var isRefusing: Bool { refusing != nil }

    /// Returns the reason to refuse a hex; `nil` if it may be accepted. If this hex was refused before, it may be accepted, and refusing
    /// ends.
    ///
    /// At most 4 096 IDs of refused hexes are remembered (128 KiB), which is more than a well-behaved sender has in flight.
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

    /// Records that a hex was refused temporarily, and starts refusing. When the hex is sent again, refusing ends.
    public mutating func refused(_ id: MessageID, for reason: Reason) {
        if refusing == nil { refusing = Refusing(reason: reason) }
        refusing?.ids.insert(id)
    }
}
