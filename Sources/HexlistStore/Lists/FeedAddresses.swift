internal import GRDB
public import HexlistModel

/// An address from which feed readers of this machine read the links of a search, of a hex, or of a place.
public struct FeedAddress: Sendable, Equatable {
    /// The links of a feed.
    public enum Content: Sendable, Equatable {
        /// A hex, with the hexes inside it.
        case hex(Int64)
        case search(String, in: HexLocation?)
        /// The newest links of a place.
        case newest(in: HexLocation)
    }

    /// Maximum number of addresses.
    public static let maximum = 100
    /// The name of the stored value (`setMeta`) that has the port of all addresses. Removed with the last address.
    public static let portKey = "feedPort"
    /// Minimum time in milliseconds between two updates of `usedAt`.
    private static let useInterval: Int64 = 3_600_000

    public var id: Int64
    public var content: Content
    /// Milliseconds since 1970.
    public var createdAt: Int64
    /// The time of a read in the last hour in which the feed was read; `nil` before the first.
    public var usedAt: Int64?

    static let schema = """
        CREATE TABLE feedAddress (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            keyDigest BLOB NOT NULL UNIQUE CHECK (length(keyDigest) = 32),  -- SHA-256 of the key in the address
            hex INTEGER,                            -- may be deleted since
            search TEXT,
            location TEXT,
            createdAt INTEGER NOT NULL,
            usedAt INTEGER,
            CHECK (hex IS NULL OR (search IS NULL AND location IS NULL))
        ) STRICT;
        """

    fileprivate static let columns = "id, hex, search, location, createdAt, usedAt"

    fileprivate init(_ row: SQLStatement) {
        id = row.int64(0)
        let location = HexLocation(rawValue: row.isNull(3) ? "" : row.text(3))
        if let hex = row.optionalInt64(1) {
            content = .hex(hex)
        } else if !row.isNull(2) {
            content = .search(row.text(2), in: location)
        } else {
            content = .newest(in: location ?? .mine)
        }
        createdAt = row.int64(4)
        usedAt = row.optionalInt64(5)
    }

    /// Whether `usedAt` is to be updated for a read.
    fileprivate func needsUse(at now: Int64) -> Bool { usedAt.map { now - $0 >= Self.useInterval || now < $0 } ?? true }
}

extension StoreReader {
    /// Returns all addresses, in the order of their creation.
    public func feedAddresses() throws -> [FeedAddress] {
        try all("SELECT \(FeedAddress.columns) FROM feedAddress ORDER BY id", read: FeedAddress.init)
    }
}

extension HexStore {
    /// Adds an address.
    /// - Parameter keyDigest: SHA-256 of its key.
    /// - Throws: `.badRequest` if there are too many; `.notFound` if the hex does not exist.
    public func addFeedAddress(_ content: FeedAddress.Content, keyDigest: [UInt8], at now: Int64) async throws -> FeedAddress {
        try await write { writer in
            try writer.change {
                let count = try writer.first("SELECT count(*) FROM feedAddress") { $0.int(0) } ?? 0
                guard count < FeedAddress.maximum else {
                    throw HexlistError(
                        .badRequest, "There are \(count) feed addresses, the maximum.", hint: "Remove one: `hexlist feed --list`.")
                }
                var (hex, search, location): (Int64?, String?, String?) = (nil, nil, nil)
                switch content {
                case .hex(let id):
                    guard try writer.summary(ofTop: id) != nil else { throw HexlistError.noHex(id) }
                    hex = id
                case .search(let text, let place): (search, location) = (text, place?.rawValue)
                case .newest(let place): location = place.rawValue
                }
                try writer.run(
                    "INSERT INTO feedAddress (keyDigest, hex, search, location, createdAt) VALUES (?, ?, ?, ?, ?)",
                    keyDigest, hex, search, location, now)
                let added = try writer.first(
                    "SELECT \(FeedAddress.columns) FROM feedAddress ORDER BY id DESC LIMIT 1", read: FeedAddress.init)
                guard let added else { throw HexlistError(.internal, "The feed address was not stored.") }
                return added
            }
        }
    }

    /// Removes an address.
    /// - Throws: `.notFound`.
    public func removeFeedAddress(_ id: Int64) async throws {
        try await write { writer in
            try writer.change {
                guard try writer.run("DELETE FROM feedAddress WHERE id = ?", id) > 0 else {
                    throw HexlistError(.notFound, "There is no feed address \(id).", hint: "`hexlist feed --list` lists them.")
                }
                if try writer.feedAddresses().isEmpty { try writer.setMeta(FeedAddress.portKey, nil) }
            }
        }
    }

    /// Returns the address with a key, and records its use.
    public func useFeedAddress(keyDigest: [UInt8], at now: Int64) async throws -> FeedAddress? {
        let found = try await read { reader in
            try reader.first("SELECT \(FeedAddress.columns) FROM feedAddress WHERE keyDigest = ?", keyDigest, read: FeedAddress.init)
        }
        if let found, found.needsUse(at: now) {
            // A store that cannot be written still serves feeds.
            try? await write { writer in
                _ = try writer.change { try writer.run("UPDATE feedAddress SET usedAt = ? WHERE id = ?", now, found.id) }
            }
        }
        return found
    }
}
