public import HexlistModel

/// Encoded hexes for the outbox, in the layout of a pack: one buffer with the bodies, and one with everything else (`PackedHexes`). Hexes
/// of a bulk send therefore need no allocations of their own. A bulk send is a sequence of `PreparedHexes`, each at most as large as a
/// pack.
public struct PreparedHexes: Sendable {
    /// The concatenated bodies: HexJMs in JSON. Append the body of a hex before calling `add` for the hex.
    public var bodies: [UInt8] = []
    /// The hexes without their bodies.
    private(set) var packed = PackedHexes()
    private var origins: [Origin] = []
    /// The ids of the offers of files in each hex, by the index of the hex.
    private var offers: [Int: [[UInt8]]] = [:]

    private struct Origin {
        var line: Int
        var hasKey: Bool
    }

    public init() {}

    /// - Parameter bytes: capacity to reserve for bodies.
    public init(room bytes: Int) { bodies.reserveCapacity(bytes) }

    /// Whether the hexes fill a pack.
    public var isFull: Bool { count >= OutboxPack.maxHexes || bodies.count >= OutboxPack.maxBytes }

    public var count: Int { origins.count }
    public var isEmpty: Bool { origins.isEmpty }

    /// Offset in `bodies` at which the body of the next hex begins.
    public var nextBody: Int { packed.bodiesEnd }

    /// Adds a hex. Its body consists of the bytes that were appended to `bodies` since the previous call.
    /// - Parameters:
    ///   - line: the line number of the hex in a bulk send; 0 for a single hex.
    ///   - messageID: a new id; for a hex with a key, the id that belongs to the key, which rows of an earlier send may have too.
    ///   - digest: SHA-256 of the hex as the caller passed it, before this machine's name was filled in. Detects that a key is reused for
    ///     other content. `nil` for a hex without a key.
    ///   - subject: the subject (`HexSubject`), which is kept after the body is deleted.
    ///   - offers: the ids (16 bytes each) of the offers to which links of the hex refer.
    public mutating func add(
        line: Int = 0, messageID: MessageID, digest: [UInt8]?, subject: String = "", offers: [[UInt8]] = []
    ) {
        packed.append(messageID: messageID.uuid, digest: digest ?? [], bodyBytes: bodies.count - nextBody, subject: subject)
        if !offers.isEmpty { self.offers[count] = offers }
        origins.append(Origin(line: line, hasKey: digest != nil))
    }

    /// Whether these hexes and `more` fit into one pack together.
    public func hasRoom(for more: PreparedHexes) -> Bool {
        count + more.count <= OutboxPack.maxHexes && bodies.count + more.bodies.count <= OutboxPack.maxBytes
    }

    /// Appends more hexes, for which `hasRoom(for:)` must be true.
    public mutating func append(_ more: PreparedHexes) {
        bodies.reserveCapacity(OutboxPack.maxBytes)  // avoids reallocations while the buffer grows
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

    /// Whether the bodies of these hexes are at least half of the bytes of all bodies. If not, the caller should copy bodies that it keeps,
    /// because a slice keeps the whole buffer in memory.
    public func isMost(_ indices: Range<Int>) -> Bool { !indices.isEmpty && 2 * packed.bodies(of: indices).count >= bodies.count }

    public func offers(_ index: Int) -> [[UInt8]] { offers.isEmpty ? [] : offers[index] ?? [] }
}
