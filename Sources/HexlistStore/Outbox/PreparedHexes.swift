public import HexlistModel

/// Hexes on their way into the outbox, for whichever peers, and as the outbox will have them: the bodies of all in one buffer, the rest in another
/// (`PackedHexes`). So a hex of a stream is no object of its own, neither where it is made nor where it is stored or sent from. Those of a stream come in
/// several of these, each as large as a pack.
public struct PreparedHexes: Sendable {
    /// The HexJMs in JSON, one behind the other. Who adds a hex appends its body first.
    public var bodies: [UInt8] = []
    /// The hexes without their bodies, as a pack has them.
    private(set) var packed = PackedHexes()
    private var origins: [Origin] = []
    /// The offers that hexes name, by their indices; few name any.
    private var offers: [Int: [[UInt8]]] = [:]

    private struct Origin {
        var line: Int
        var hasKey: Bool
    }

    public init() {}

    /// - Parameter bytes: the bytes of bodies to make room for.
    public init(room bytes: Int) { bodies.reserveCapacity(bytes) }

    /// Whether these are as many as a pack has.
    public var isFull: Bool { count >= OutboxPack.mostHexes || bodies.count >= OutboxPack.mostBytes }

    public var count: Int { origins.count }
    public var isEmpty: Bool { origins.isEmpty }

    /// Where the body of the next hex begins.
    public var nextBody: Int { packed.bodiesEnd }

    /// Adds a hex, whose body is what was appended to `bodies` since the one before.
    /// - Parameters:
    ///   - line: the line of a stream it came in; 0 for a single one.
    ///   - messageID: newly made, or that of a caller's key, which an earlier row may have.
    ///   - digest: of a hex with a key: the SHA-256 of the hex as its sender gave it, before an own name was filled in, by which the same key with
    ///     other content is recognised. `nil` without a key.
    ///   - subject: the subject (`HexSubject`), kept when the body is gone.
    ///   - offers: the offers of files of this machine that its links name, of 16 bytes each.
    public mutating func add(
        line: Int = 0, messageID: MessageID, digest: [UInt8]?, subject: String = "", offers: [[UInt8]] = []
    ) {
        packed.append(messageID: messageID.uuid, digest: digest ?? [], bodyBytes: bodies.count - nextBody, subject: subject)
        if !offers.isEmpty { self.offers[count] = offers }
        origins.append(Origin(line: line, hasKey: digest != nil))
    }

    /// Whether these and more of them are no more than a pack has.
    public func hasRoom(for more: PreparedHexes) -> Bool {
        count + more.count <= OutboxPack.mostHexes && bodies.count + more.bodies.count <= OutboxPack.mostBytes
    }

    /// Appends more, for which there is room.
    public mutating func append(_ more: PreparedHexes) {
        bodies.reserveCapacity(OutboxPack.mostBytes)  // at once: growing copies
        for (index, offers) in more.offers { self.offers[count + index] = offers }
        bodies += more.bodies
        packed.append(more.packed)
        origins += more.origins
    }

    // MARK: One of them, by its index

    public func line(_ index: Int) -> Int { origins[index].line }

    public func hasKey(_ index: Int) -> Bool { origins[index].hasKey }

    public func messageID(_ index: Int) -> MessageID { MessageID(packed.messageID(at: index) ?? .nil) }

    public func body(_ index: Int) -> ArraySlice<UInt8> { bodies[packed.entries[index].body] }

    /// Whether some of them are the greater part. Of fewer, whoever keeps bodies copies them: a slice keeps all of `bodies`.
    public func isMost(_ indices: Range<Int>) -> Bool { !indices.isEmpty && 2 * packed.bodies(of: indices).count >= bodies.count }

    public func offers(_ index: Int) -> [[UInt8]] { offers.isEmpty ? [] : offers[index] ?? [] }
}
