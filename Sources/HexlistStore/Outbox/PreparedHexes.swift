public import HexlistModel

/// Encoded hexes for the outbox, in the layout of a pack: one buffer of bodies and one of everything else (`PackedHexes`). A hex of a bulk
/// send therefore needs no allocation of its own. A bulk send is a sequence of `PreparedHexes`, each as large as a pack.
public struct PreparedHexes: Sendable {
    /// The concatenated HexJMs in JSON. Append the body of a hex before calling `add`.
    public var bodies: [UInt8] = []
    /// The hexes without their bodies.
    private(set) var packed = PackedHexes()
    private var origins: [Origin] = []
    /// Offers of files in the hexes, by index.
    private var offers: [Int: [[UInt8]]] = [:]

    private struct Origin {
        var line: Int
        var hasKey: Bool
    }

    public init() {}

    /// - Parameter bytes: capacity to reserve for bodies.
    public init(room bytes: Int) { bodies.reserveCapacity(bytes) }

    /// Whether a pack takes no more hexes.
    public var isFull: Bool { count >= OutboxPack.maxHexes || bodies.count >= OutboxPack.maxBytes }

    public var count: Int { origins.count }
    public var isEmpty: Bool { origins.isEmpty }

    /// Offset of the next hex's body in `bodies`.
    public var nextBody: Int { packed.bodiesEnd }

    /// Adds a hex. Its body are the bytes that were appended to `bodies` after the previous call.
    /// - Parameters:
    ///   - line: the line number in a bulk send; 0 for a single hex.
    ///   - messageID: a new id, or the id of the caller's key, which an earlier row may have.
    ///   - digest: SHA-256 of the hex as the caller passed it, before this machine's name was filled in; detects a key that is reused for
    ///     other content. `nil` for a hex without a key.
    ///   - subject: the subject (`HexSubject`), kept after the body is deleted.
    ///   - offers: ids, 16 bytes each, of the offers of this machine's files in its links.
    public mutating func add(
        line: Int = 0, messageID: MessageID, digest: [UInt8]?, subject: String = "", offers: [[UInt8]] = []
    ) {
        packed.append(messageID: messageID.uuid, digest: digest ?? [], bodyBytes: bodies.count - nextBody, subject: subject)
        if !offers.isEmpty { self.offers[count] = offers }
        origins.append(Origin(line: line, hasKey: digest != nil))
    }

    /// Whether one pack can have these hexes and `more`.
    public func hasRoom(for more: PreparedHexes) -> Bool {
        count + more.count <= OutboxPack.maxHexes && bodies.count + more.bodies.count <= OutboxPack.maxBytes
    }

    /// Appends more hexes. `hasRoom(for:)` must be true for them.
    public mutating func append(_ more: PreparedHexes) {
        bodies.reserveCapacity(OutboxPack.maxBytes)  // avoids copies while it grows
        for (index, offers) in more.offers { self.offers[count + index] = offers }
        bodies += more.bodies
        packed.append(more.packed)
        origins += more.origins
    }

    // MARK: One hex by index

    public func line(_ index: Int) -> Int { origins[index].line }

    public func hasKey(_ index: Int) -> Bool { origins[index].hasKey }

    public func messageID(_ index: Int) -> MessageID { MessageID(packed.messageID(at: index) ?? .nil) }

    public func body(_ index: Int) -> ArraySlice<UInt8> { bodies[packed.entries[index].body] }

    /// Whether the bodies of these hexes are at least half of all. If not, copy the bodies to keep: a slice keeps the whole buffer in
    /// memory.
    public func isMost(_ indices: Range<Int>) -> Bool { !indices.isEmpty && 2 * packed.bodies(of: indices).count >= bodies.count }

    public func offers(_ index: Int) -> [[UInt8]] { offers.isEmpty ? [] : offers[index] ?? [] }
}
