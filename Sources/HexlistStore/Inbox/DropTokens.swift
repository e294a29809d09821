internal import GRDB
public import HexlistModel

/// A drop token: the right of a program without Hexlist, such as a shortcut on a phone, to send texts and files into the inbox.
public struct DropToken: Sendable, Equatable {
    /// The random UUID under which the hexes of the token are recorded.
    public var peer: PeerID
    /// The name that the user gave to the token. Different tokens have different `NormalizedName`s.
    public var name: String
    /// SHA-256 of the token, which itself is not stored.
    public var sha256: [UInt8]
    /// Milliseconds since 1970.
    public var createdAt: Int64
    /// The time of the last stored hex, in milliseconds since 1970; `nil` before the first.
    public var usedAt: Int64?

    /// Maximum number of drop tokens.
    public static let limit = 32
    /// Maximum length of a name, in characters.
    public static let nameLength = 40

    public init(peer: PeerID, name: String, sha256: [UInt8], createdAt: Int64, usedAt: Int64? = nil) {
        (self.peer, self.name, self.sha256, self.createdAt, self.usedAt) = (peer, name, sha256, createdAt, usedAt)
    }

    /// The SQL of the table. It has no foreign key to `peer`, because the row of `peer` is inserted only with the first hex.
    static let schema = """
        CREATE TABLE dropToken (
            peer BLOB PRIMARY KEY CHECK (length(peer) = 16),
            name TEXT NOT NULL,
            sha256 BLOB NOT NULL UNIQUE CHECK (length(sha256) = 32),
            createdAt INTEGER NOT NULL,
            usedAt INTEGER
        ) STRICT, WITHOUT ROWID;
        """
}

/// The result of storing a hex of a drop token.
public enum DropResult: Sendable, Equatable {
    /// The hex is durable, with this id.
    case stored(Int64)
    /// The hex was stored before, by an earlier request with one of its message ids.
    case storedBefore
    /// The token was removed meanwhile, so nothing was stored.
    case removed
}

extension StoreReader {
    /// Returns all drop tokens, oldest first.
    public func dropTokens() throws -> [DropToken] {
        try all("SELECT peer, name, sha256, createdAt, usedAt FROM dropToken ORDER BY createdAt, peer") { row in
            row.uuid(0).map {
                DropToken(
                    peer: PeerID($0), name: row.text(1), sha256: row.bytes(2), createdAt: row.int64(3),
                    usedAt: row.isNull(4) ? nil : row.int64(4))
            }
        }.compactMap(\.self)
    }
}

extension HexStore {
    /// Adds a drop token.
    /// - Throws: `badRequest` if another one has the same name, or there are too many.
    public func add(_ token: DropToken) async throws {
        try await write { writer in
            let known = try writer.dropTokens()
            if let same = known.first(where: { NormalizedName(token.name)?.isKey(of: $0.name) ?? false }) {
                throw HexlistError(
                    .badRequest, "There is a drop token \(TerminalText.clean(same.name, columns: 80)) already.",
                    hint: "Use another name, or remove it first: `hexlist drop rm`.")
            }
            guard known.count < DropToken.limit else {
                throw HexlistError(
                    .badRequest, "There are \(DropToken.limit) drop tokens, which is the maximum.", hint: "`hexlist drop rm` removes one.")
            }
            _ = try writer.change {
                try writer.run(
                    "INSERT INTO dropToken (peer, name, sha256, createdAt) VALUES (?, ?, ?, ?)", token.peer.uuid, token.name, token.sha256,
                    token.createdAt)
            }
        }
    }

    /// Removes a drop token. Its hexes stay.
    /// - Returns: whether there was such a token.
    public func removeDropToken(_ peer: PeerID) async throws -> Bool {
        try await write { writer in
            guard try writer.dropTokens().contains(where: { $0.peer == peer }) else { return false }
            _ = try writer.change { try writer.run("DELETE FROM dropToken WHERE peer = ?", peer.uuid) }
            return true
        }
    }

    /// Stores a hex of a drop token in the inbox and pins its files for it, in one transaction, unless the hex was stored before. Blocks
    /// the calling thread.
    /// - Parameters:
    ///   - hex: the hex. It must have a message id, by which a repeated request is recognised.
    ///   - files: the files, which must be among the kept files or in the pool.
    ///   - earlier: another message id under which the same hex may have been stored; `nil` for none.
    ///   - now: milliseconds since 1970.
    ///   - diskReserve: bytes of the file system to leave free.
    /// - Throws: `HexlistError` `storageFull` or `refused`. Nothing is changed then.
    public func finishDrop(
        as hex: IncomingHex, _ files: [ArrivalInPool], earlier: MessageID?, from sender: Sender, at now: Int64, quotas: HeldQuotas,
        diskReserve: Int64
    ) throws -> DropResult {
        try writeSync { writer in
            guard try writer.first("SELECT 1 FROM dropToken WHERE peer = ?", sender.peer.uuid, read: { _ in true }) ?? false else {
                return .removed
            }
            if let earlier, try writer.hasStored(earlier, from: sender.peer) { return .storedBefore }
            return try writer.change {
                let id = writer.counters.nextHex
                let results = try writer.receive([hex], from: sender, at: now, policy: .everyone, quotas: quotas, diskReserve: diskReserve)
                switch results.first {
                case .stored:
                    for file in files { try writer.keep(file, from: sender.peer, for: id, at: now) }
                    try writer.run("UPDATE dropToken SET usedAt = ? WHERE peer = ?", now, sender.peer.uuid)
                    return .stored(id)
                case .duplicate: return .storedBefore
                case let result:
                    throw result?.isTemporary ?? false
                        ? HexlistError(.storageFull, "There is no space for it at the moment.")
                        : HexlistError(.refused, "This cannot be stored.")
                }
            }
        }
    }
}

extension StoreReader {
    /// Whether a hex with this message id, whose sender proved its key or drop token, is stored or was deleted recently.
    fileprivate func hasStored(_ message: MessageID, from peer: PeerID) throws -> Bool {
        guard let row = try peerRow(peer) else { return false }
        let query = "SELECT 1 FROM hex WHERE peer = ? AND messageID = ? AND isProven = 1"
        if try first(query, row.id, message.uuid, read: { _ in true }) ?? false { return true }
        return try first("SELECT 1 FROM tombstone WHERE peer = ? AND messageID = ?", row.id, message.uuid, read: { _ in true }) ?? false
    }
}
