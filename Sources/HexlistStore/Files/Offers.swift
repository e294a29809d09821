internal import GRDB
public import HexlistModel

/// An offer: a file of this machine that chosen peers, or the own machines and members of a list, may fetch.
public struct OfferRow: Sendable, Equatable {
    /// The id of the offer: 16 random bytes.
    public var id: [UInt8]
    /// The absolute path.
    public var path: String
    /// The `FileIdentity` of the file when it was offered.
    public var identity: String
    public var name: String
    public var size: Int64
    /// The SHA-256 of the content, 32 bytes.
    public var sha256: [UInt8]
    public var mediaType: String?
    /// The time of modification in milliseconds since 1970.
    public var modified: Int64
    /// The time of `StoreOpenTimeClock` at which the offer ends. The end for a single peer may differ.
    public var ends: Int64
    /// Whether the peer for which the offer was read already has the file. Set only by `StoreReader.offer(_:to:)`, as is `problem`.
    public var isFetched = false
    /// The reason why the peer's last request for the file failed: a raw value of `OfferProblem`.
    public var problem: String?

    /// Maximum number of offers. An offer with its peers takes about 400 bytes in the store.
    public static let limit = 200_000
    /// Lifetime in milliseconds of an offer whose hex is not delivered: 60 days, twice the default lifetime of an outbox row.
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

    static let columns = "offer.id, path, identity, name, size, sha256, mediaType, modified, offer.ends"

    init(_ row: SQLStatement) {
        self.init(
            id: row.bytes(0), path: row.text(1), identity: row.text(2), name: row.text(3), size: row.int64(4), sha256: row.bytes(5),
            mediaType: row.optionalText(6), modified: row.int64(7), ends: row.int64(8))
    }
}

extension StoreReader {
    /// Returns an offer that a peer may fetch, because it was made for the peer or for a list; `nil` if it does not exist, is not for this
    /// peer, or has ended.
    public func offer(_ id: [UInt8], to peer: PeerID) throws -> OfferRow? {
        try offerOfPeer(id, peer) ?? offerOfList(id, to: peer)
    }

    private func offerOfPeer(_ id: [UInt8], _ peer: PeerID) throws -> OfferRow? {
        try first(
            """
            SELECT \(OfferRow.columns), offerPeer.isFetched, offerPeer.problem FROM offer JOIN offerPeer ON offerPeer.offer = offer.id
            WHERE offer.id = ? AND offerPeer.peer = ? AND coalesce(offerPeer.ends, offer.ends) > ?
            """, id, peer.uuid, lived
        ) { row in
            var offer = OfferRow(row)
            (offer.isFetched, offer.problem) = (row.int64(9) != 0, row.optionalText(10))
            return offer
        }
    }

    /// Returns an offer of the file at this path with the same `FileIdentity`, so that its digest need not be computed again; `nil` if
    /// there is none.
    public func offer(ofPath path: String, identity: String) throws -> OfferRow? {
        try first(
            "SELECT \(OfferRow.columns) FROM offer WHERE path = ? AND identity = ? AND offer.ends > ?", path, identity, lived,
            read: OfferRow.init)
    }
}

/// A file that an outbox row offers to its peer.
public struct OfferedFileOfRow: Sendable, Equatable {
    public var name: String
    public var size: Int64
    /// The absolute path.
    public var path: String
    /// The `FileIdentity` of the file when it was offered.
    public var identity: String
    /// The time of `StoreOpenTimeClock` at which the offer ends for this peer.
    public var ends: Int64
    /// Whether the peer has the file.
    public var isFetched: Bool
}

extension StoreReader {
    /// Maximum number of offers that are read for one outbox row: as many as a hex can have.
    private static let offersOfRow = 3_000

    /// Returns the files that an outbox row currently offers to its peer, ordered by name.
    public func offers(ofRow row: Int64) throws -> [OfferedFileOfRow] {
        try all(
            """
            SELECT offer.name, offer.size, offer.path, offer.identity, coalesce(offerPeer.ends, offer.ends), offerPeer.isFetched
            FROM offerRow JOIN outbox ON outbox.id = offerRow.outbox JOIN peer ON peer.id = outbox.peer
                JOIN offer ON offer.id = offerRow.offer JOIN offerPeer ON offerPeer.offer = offer.id AND offerPeer.peer = peer.uuid
            WHERE offerRow.outbox = ? ORDER BY offer.name, offer.id LIMIT ?
            """, row, Self.offersOfRow
        ) {
            OfferedFileOfRow(
                name: $0.text(0), size: $0.int64(1), path: $0.text(2), identity: $0.text(3), ends: $0.int64(4), isFetched: $0.int64(5) != 0)
        }
    }

    /// Returns the newest outbox row to a peer that contains an offer; `nil` if there is none.
    public func outboxRow(ofOffer offer: [UInt8], to peer: PeerID) throws -> Int64? {
        try first(
            """
            SELECT offerRow.outbox FROM offerRow JOIN outbox ON outbox.id = offerRow.outbox JOIN peer ON peer.id = outbox.peer
            WHERE offerRow.offer = ? AND peer.uuid = ? ORDER BY offerRow.outbox DESC
            """, offer, peer.uuid
        ) { $0.int64(0) }
    }

    /// Returns an offer, for any peer; `nil` if it does not exist or has ended.
    public func offer(_ id: [UInt8]) throws -> OfferRow? {
        try first("SELECT \(OfferRow.columns) FROM offer WHERE id = ? AND offer.ends > ?", id, lived, read: OfferRow.init)
    }

    /// Returns the offers of all files in a folder and its subfolders, with their sizes.
    public func offers(in folder: String) throws -> [(id: [UInt8], size: Int64)] {
        // "0" is the character after "/", so the range contains exactly the paths that begin with the folder and "/".
        try all("SELECT id, size FROM offer WHERE path > ? AND path < ?", folder + "/", folder + "0") { ($0.bytes(0), $0.int64(1)) }
    }
}

extension HexStore {
    /// Offers files to peers, like `offer(_:to:)`, and blocks the calling thread.
    public func offerSync(_ offers: [OfferRow], to peers: [PeerID]) throws { try writeSync { try $0.offer(offers, to: peers) } }

    /// Offers files to peers, in one transaction. If an offer exists already, its end is postponed and these peers are added.
    /// - Throws: `.badRequest` if there would be more than `OfferRow.limit` offers. Then nothing is changed.
    public func offer(_ offers: [OfferRow], to peers: [PeerID]) async throws {
        try await write(rows: offers.count * (1 + peers.count)) { try $0.offer(offers, to: peers) }
    }
}

extension StoreWriter {
    func offer(_ offers: [OfferRow], to peers: [PeerID]) throws {
        try change {
            try insert(offers)
            for offer in offers {
                for peer in peers {
                    try run("INSERT INTO offerPeer (offer, peer) VALUES (?, ?) ON CONFLICT DO UPDATE SET ends = NULL", offer.id, peer.uuid)
                }
            }
        }
    }

    // MARK: - Inside `change`

    /// Adds offers, for nobody yet. If one exists already, its end is postponed.
    /// - Throws: `.badRequest` if there would be more than `OfferRow.limit` offers.
    func insert(_ offers: [OfferRow]) throws {
        for offer in offers {
            try run(
                """
                INSERT INTO offer (id, path, identity, name, size, sha256, mediaType, modified, ends) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET ends = max(ends, excluded.ends)
                """, offer.id, offer.path, offer.identity, offer.name, offer.size, offer.sha256, offer.mediaType, offer.modified, offer.ends
            )
        }
        guard try first("SELECT count(*) FROM offer", read: { $0.int(0) }) ?? 0 <= OfferRow.limit else {
            throw HexlistError(
                .badRequest, "\(OfferRow.limit) files are offered, which is the maximum.",
                hint: "Wait until some offers end, or delete links to files from My Hexlist.")
        }
    }

    /// Number of days from the delivery of a hex to the end of its offers.
    private static let daysDelivered: Int64 = 30

    /// Records which offers an outbox row contains, and postpones their end to at least `OfferRow.waitingTime` from now.
    func note(offers: [[UInt8]], of row: Int64, to peer: PeerID) throws {
        for offer in offers {
            try run(
                "INSERT OR IGNORE INTO offerRow (outbox, offer) SELECT ?, offer FROM offerPeer WHERE offer = ? AND peer = ?", row, offer,
                peer.uuid)
            try run(
                "UPDATE offer SET ends = max(ends, ?1) WHERE id = ?2 AND EXISTS (SELECT 1 FROM offerRow WHERE outbox = ?3 AND offer = ?2)",
                lived &+ OfferRow.waitingTime, offer, row)
        }
        try countFiles(of: row, to: peer)
    }

    /// Sets the end of the offers of delivered outbox rows to `daysDelivered` days from now, for the recipient. The outbox rows stay for
    /// another `time` milliseconds after this end.
    func endOffers(deliveredBy rows: ClosedRange<Int64>, to peer: UUIDBytes, keepingFor time: Int64) throws {
        let ends = lived &+ Self.daysDelivered * 86_400_000
        try run(
            "UPDATE offerPeer SET ends = ? WHERE peer = ? AND offer IN (SELECT offer FROM offerRow WHERE outbox BETWEEN ? AND ?)", ends,
            peer, rows.lowerBound, rows.upperBound)
        try setEndOfFiles(deliveredBy: rows, ends: ends, keptUntil: ends &+ time)
    }

    /// Withdraws the offers of outbox rows from their peer, because the rows are not delivered or were cancelled. Keeps offers that other
    /// queued or delivered rows to the peer contain.
    /// - Parameters:
    ///   - rows: rows of one peer.
    ///   - peer: the row id of the peer.
    ///   - forGood: whether the rows cannot be retried. If `true`, offers without other uses are deleted. If `false`, they are kept without
    ///     the peer, for a retry.
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
                AND NOT EXISTS (SELECT 1 FROM offerList WHERE offerList.offer = offer.id)
                AND NOT EXISTS (
                    SELECT 1 FROM offerRow AS other JOIN outbox ON outbox.id = other.outbox
                    WHERE other.offer = offer.id AND other.outbox NOT BETWEEN ?1 AND ?2
                        AND outbox.state IN ('queued', 'failed', 'rejected'))
            """, rows.lowerBound, rows.upperBound)
    }

    /// Offers the files of an outbox row to its peer again, because the row is queued again.
    func renewOffers(of row: Int64, to peer: Int64) throws {
        try run(
            """
            INSERT OR IGNORE INTO offerPeer (offer, peer)
            SELECT offerRow.offer, peer.uuid FROM offerRow JOIN peer ON peer.id = ? WHERE offerRow.outbox = ?
            """, peer, row)
    }

    /// Deletes ended offers.
    /// - Returns: the number of ended offers. An offer that ended for several peers counts several times.
    func deleteEndedOffers(_ chunk: Int) throws -> Int {
        let due = try all("SELECT offer, peer FROM offerPeer WHERE ends <= ? ORDER BY ends LIMIT ?", lived, chunk) {
            (offer: $0.bytes(0), peer: $0.bytes(1))
        }
        for (offer, peer) in due {
            try run("DELETE FROM offerPeer WHERE offer = ? AND peer = ?", offer, peer)
            try run(
                """
                DELETE FROM offer WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM offerPeer WHERE offer = ?1)
                    AND NOT EXISTS (SELECT 1 FROM offerList WHERE offer = ?1)
                """, offer)
        }
        return due.count
    }
}
