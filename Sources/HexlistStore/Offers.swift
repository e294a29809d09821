internal import GRDB
public import HexlistModel

/// A file of this machine that some peers may fetch.
public struct OfferRow: Sendable, Equatable {
    /// 16 random bytes.
    public var id: [UInt8]
    /// The absolute path.
    public var path: String
    /// The file as it was when it was offered, as `FileIdentity` writes it.
    public var identity: String
    public var name: String
    public var size: Int64
    /// 32 bytes.
    public var sha256: [UInt8]
    public var mediaType: String?
    /// Milliseconds since 1970, as are all times.
    public var modified: Int64
    public var ends: Int64

    /// The most offers: a row and its peers take about 400 bytes.
    public static let limit = 200_000

    public init(
        id: [UInt8], path: String, identity: String, name: String, size: Int64, sha256: [UInt8], mediaType: String?, modified: Int64,
        ends: Int64
    ) {
        self.id = id
        self.path = path
        self.identity = identity
        self.name = name
        self.size = size
        self.sha256 = sha256
        self.mediaType = mediaType
        self.modified = modified
        self.ends = ends
    }

    fileprivate static let columns = "offer.id, path, identity, name, size, sha256, mediaType, modified, ends"

    fileprivate init(_ row: SQLStatement) {
        self.init(
            id: row.bytes(0), path: row.text(1), identity: row.text(2), name: row.text(3), size: row.int64(4), sha256: row.bytes(5),
            mediaType: row.optionalText(6), modified: row.int64(7), ends: row.int64(8))
    }
}

extension StoreReader {
    /// The offer with this id, if it was made to this peer and has not ended.
    public func offer(_ id: [UInt8], to peer: PeerID, at now: Int64) throws -> OfferRow? {
        try first(
            """
            SELECT \(OfferRow.columns) FROM offer JOIN offerPeer ON offerPeer.offer = offer.id
            WHERE offer.id = ? AND offerPeer.peer = ? AND ends > ?
            """, id, peer.uuid, now, read: OfferRow.init)
    }

    /// The offer of a file that is what it was, if there is one: it need not be read again.
    public func offer(ofPath path: String, identity: String, at now: Int64) throws -> OfferRow? {
        try first(
            "SELECT \(OfferRow.columns) FROM offer WHERE path = ? AND identity = ? AND ends > ?", path, identity, now, read: OfferRow.init)
    }
}

extension HexStore {
    /// Offers files to peers, in one transaction. An offer that is there already ends later and is for more peers from now on.
    /// - Throws: `.badRequest` if there are too many; then none is made.
    public func offer(_ offers: [OfferRow], to peers: [PeerID]) async throws {
        try await write(rows: offers.count * (1 + peers.count)) { try $0.offer(offers, to: peers) }
    }
}

extension StoreWriter {
    func offer(_ offers: [OfferRow], to peers: [PeerID]) throws {
        try change {
            for offer in offers {
                try run(
                    """
                    INSERT INTO offer (id, path, identity, name, size, sha256, mediaType, modified, ends) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT DO UPDATE SET ends = max(ends, excluded.ends)
                    """, offer.id, offer.path, offer.identity, offer.name, offer.size, offer.sha256, offer.mediaType, offer.modified,
                    offer.ends)
                for peer in peers { try run("INSERT OR IGNORE INTO offerPeer (offer, peer) VALUES (?, ?)", offer.id, peer.uuid) }
            }
            guard try first("SELECT count(*) FROM offer", read: { $0.int(0) }) ?? 0 <= OfferRow.limit else {
                throw HexlistError(
                    .badRequest, "There are \(OfferRow.limit) files on offer, and no more can be.", hint: "Offers end by themselves.")
            }
        }
    }
}
