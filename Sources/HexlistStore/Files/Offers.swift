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
    /// Milliseconds since 1970.
    public var modified: Int64
    /// The time by `LivedClock` at which it ends.
    public var ends: Int64

    /// The most offers: a row and its peers take about 400 bytes.
    public static let limit = 200_000
    /// Milliseconds for which an offer stays whose hex is not delivered: 60 days, as long as one waits in the outbox by default, and as long
    /// again.
    public static let waitingTime: Int64 = 60 * 86_400_000

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

    fileprivate static let columns = "offer.id, path, identity, name, size, sha256, mediaType, modified, offer.ends"

    fileprivate init(_ row: SQLStatement) {
        self.init(
            id: row.bytes(0), path: row.text(1), identity: row.text(2), name: row.text(3), size: row.int64(4), sha256: row.bytes(5),
            mediaType: row.optionalText(6), modified: row.int64(7), ends: row.int64(8))
    }
}

extension StoreReader {
    /// The offer with this id, if it was made to this peer and has not ended.
    public func offer(_ id: [UInt8], to peer: PeerID) throws -> OfferRow? {
        try first(
            """
            SELECT \(OfferRow.columns) FROM offer JOIN offerPeer ON offerPeer.offer = offer.id
            WHERE offer.id = ? AND offerPeer.peer = ? AND coalesce(offerPeer.ends, offer.ends) > ?
            """, id, peer.uuid, lived, read: OfferRow.init)
    }

    /// The offer of a file that is what it was, if there is one: it need not be read again.
    public func offer(ofPath path: String, identity: String) throws -> OfferRow? {
        try first(
            "SELECT \(OfferRow.columns) FROM offer WHERE path = ? AND identity = ? AND offer.ends > ?", path, identity, lived,
            read: OfferRow.init)
    }
}

/// What a row of the outbox offers its peer.
public struct OfferedInRow: Sendable, Equatable {
    public var name: String
    public var size: Int64
    /// The absolute path, and the file as it was when it was offered (`FileIdentity`).
    public var path: String
    public var identity: String
    /// The time by `LivedClock`.
    public var ends: Int64
}

extension StoreReader {
    /// The most offers of a row that are read: as many as one hex can have.
    private static let offersOfRow = 3_000

    /// What a row of the outbox offers its peer now, by name.
    public func offers(ofRow row: Int64) throws -> [OfferedInRow] {
        try all(
            """
            SELECT offer.name, offer.size, offer.path, offer.identity, coalesce(offerPeer.ends, offer.ends)
            FROM offerRow JOIN outbox ON outbox.id = offerRow.outbox JOIN peer ON peer.id = outbox.peer
                JOIN offer ON offer.id = offerRow.offer JOIN offerPeer ON offerPeer.offer = offer.id AND offerPeer.peer = peer.uuid
            WHERE offerRow.outbox = ? ORDER BY offer.name, offer.id LIMIT ?
            """, row, Self.offersOfRow
        ) { OfferedInRow(name: $0.text(0), size: $0.int64(1), path: $0.text(2), identity: $0.text(3), ends: $0.int64(4)) }
    }

    /// The newest row of the outbox that brought an offer to a peer; `nil` if it is forgotten.
    public func outboxRow(ofOffer offer: [UInt8], to peer: PeerID) throws -> Int64? {
        try first(
            """
            SELECT offerRow.outbox FROM offerRow JOIN outbox ON outbox.id = offerRow.outbox JOIN peer ON peer.id = outbox.peer
            WHERE offerRow.offer = ? AND peer.uuid = ? ORDER BY offerRow.outbox DESC
            """, offer, peer.uuid
        ) { $0.int64(0) }
    }

    /// An offer, whomever it is for, that has not ended.
    public func offer(_ id: [UInt8]) throws -> OfferRow? {
        try first("SELECT \(OfferRow.columns) FROM offer WHERE id = ? AND offer.ends > ?", id, lived, read: OfferRow.init)
    }

    /// The offers of files in a folder, with their sizes.
    public func offers(in folder: String) throws -> [(id: [UInt8], size: Int64)] {
        // Behind the slash is the 0.
        try all("SELECT id, size FROM offer WHERE path > ? AND path < ?", folder + "/", folder + "0") { ($0.bytes(0), $0.int64(1)) }
    }
}

extension HexStore {
    /// As `offer(_:to:)`; blocks.
    public func offerSync(_ offers: [OfferRow], to peers: [PeerID]) throws { try writeSync { try $0.offer(offers, to: peers) } }

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
                for peer in peers {
                    try run("INSERT INTO offerPeer (offer, peer) VALUES (?, ?) ON CONFLICT DO UPDATE SET ends = NULL", offer.id, peer.uuid)
                }
            }
            guard try first("SELECT count(*) FROM offer", read: { $0.int(0) }) ?? 0 <= OfferRow.limit else {
                throw HexlistError(
                    .badRequest, "There are \(OfferRow.limit) files on offer, and no more can be.", hint: "Offers end by themselves.")
            }
        }
    }

    // MARK: - Inside `change`

    /// Days for which an offer stays after its hex was delivered.
    private static let daysDelivered: Int64 = 30

    /// Notes which offers a row of the outbox brings to its peer; they stay as long as it may wait.
    func note(offers: [[UInt8]], of row: Int64, to peer: PeerID) throws {
        for offer in offers {
            try run(
                "INSERT OR IGNORE INTO offerRow (outbox, offer) SELECT ?, offer FROM offerPeer WHERE offer = ? AND peer = ?", row, offer,
                peer.uuid)
            try run(
                "UPDATE offer SET ends = max(ends, ?1) WHERE id = ?2 AND EXISTS (SELECT 1 FROM offerRow WHERE outbox = ?3 AND offer = ?2)",
                lived &+ OfferRow.waitingTime, offer, row)
        }
    }

    /// Rows of the outbox were delivered: what they offer ends some days from now.
    func endOffers(deliveredBy rows: ClosedRange<Int64>, to peer: UUIDBytes) throws {
        try run(
            "UPDATE offerPeer SET ends = ? WHERE peer = ? AND offer IN (SELECT offer FROM offerRow WHERE outbox BETWEEN ? AND ?)",
            lived &+ Self.daysDelivered * 86_400_000, peer, rows.lowerBound, rows.upperBound)
    }

    /// Rows of the outbox came to an end without being delivered, or what they brought is taken back: their peer may no longer fetch what they
    /// offer, unless another row brings the same.
    /// - Parameters:
    ///   - rows: of one peer.
    ///   - peer: the row of the peer.
    ///   - forGood: whether they cannot be tried again; otherwise the offers stay, for nobody, until then.
    func endOffers(with rows: ClosedRange<Int64>, of peer: Int64, forGood: Bool) throws {
        try run(
            """
            DELETE FROM offerPeer WHERE peer = (SELECT uuid FROM peer WHERE id = ?3)
                AND offer IN (SELECT offer FROM offerRow WHERE outbox BETWEEN ?1 AND ?2)
                AND NOT EXISTS (
                    SELECT 1 FROM offerRow AS other JOIN outbox ON outbox.id = other.outbox
                    WHERE other.offer = offerPeer.offer AND other.outbox NOT BETWEEN ?1 AND ?2
                        AND outbox.peer = ?3 AND outbox.state IN ('queued', 'stored', 'held'))
            """, rows.lowerBound, rows.upperBound, peer)
        guard forGood else { return }
        try run(
            """
            DELETE FROM offer WHERE id IN (SELECT offer FROM offerRow WHERE outbox BETWEEN ?1 AND ?2)
                AND NOT EXISTS (SELECT 1 FROM offerPeer WHERE offerPeer.offer = offer.id)
                AND NOT EXISTS (
                    SELECT 1 FROM offerRow AS other JOIN outbox ON outbox.id = other.outbox
                    WHERE other.offer = offer.id AND other.outbox NOT BETWEEN ?1 AND ?2
                        AND outbox.state IN ('queued', 'failed', 'rejected'))
            """, rows.lowerBound, rows.upperBound)
    }

    /// A row of the outbox is tried again: its peer may fetch what it offers, as before.
    func renewOffers(of row: Int64, to peer: Int64) throws {
        try run(
            """
            INSERT OR IGNORE INTO offerPeer (offer, peer)
            SELECT offerRow.offer, peer.uuid FROM offerRow JOIN peer ON peer.id = ? WHERE offerRow.outbox = ?
            """, peer, row)
    }

    /// - Returns: the offers that ended for a peer.
    func letGoOfOffers(_ chunk: Int) throws -> Int {
        let due = try all("SELECT offer, peer FROM offerPeer WHERE ends <= ? ORDER BY ends LIMIT ?", lived, chunk) {
            (offer: $0.bytes(0), peer: $0.bytes(1))
        }
        for (offer, peer) in due {
            try run("DELETE FROM offerPeer WHERE offer = ? AND peer = ?", offer, peer)
            try run("DELETE FROM offer WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM offerPeer WHERE offer = ?1)", offer)
        }
        return due.count
    }
}
