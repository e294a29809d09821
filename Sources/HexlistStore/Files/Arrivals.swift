internal import GRDB
public import HexlistModel

/// The record of a complete file that a device sent. It exists until the hex of the file is stored. The file is in the `ArrivalFolder` or
/// in the folder of kept files.
public struct ArrivalRow: Sendable, Equatable {
    public var id: Int64
    /// The session in which the device sent the file. The files of one session become one hex.
    public var session: String
    /// The UUID of the device.
    public var peer: PeerID
    /// The certificate that the device proved.
    public var fingerprint: Fingerprint
    /// The name that the device gives itself. Untrusted text.
    public var sender: String
    /// The name of the file in the `ArrivalFolder`.
    public var file: String
    /// The name that the device gave the file, possibly with folders. Untrusted text.
    public var name: String
    public var size: Int64
    /// The SHA-256 of the content, 32 bytes.
    public var sha256: [UInt8]
    public var mediaType: String?
    /// The time of modification that the device announced, in milliseconds since 1970.
    public var modified: Int64?

    public init(
        id: Int64 = 0, session: String, peer: PeerID, fingerprint: Fingerprint, sender: String, file: String, name: String, size: Int64,
        sha256: [UInt8], mediaType: String?, modified: Int64?
    ) {
        self.id = id
        self.session = session
        self.peer = peer
        self.fingerprint = fingerprint
        self.sender = sender
        self.file = file
        self.name = name
        self.size = size
        self.sha256 = sha256
        self.mediaType = mediaType
        self.modified = modified
    }

    static let schema = """
        CREATE TABLE arrival (
            id INTEGER PRIMARY KEY,
            session TEXT NOT NULL,
            peer BLOB NOT NULL CHECK (length(peer) = 16),
            fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
            sender TEXT NOT NULL,
            file TEXT NOT NULL,
            name TEXT NOT NULL,
            size INTEGER NOT NULL,
            sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
            mediaType TEXT,
            modified INTEGER,
            at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX arrivalSession ON arrival (session, id);
        """
}

/// A complete file from a device or a guest whose hex is not stored yet. It is in the `ArrivalFolder` or in the folder of kept files.
public struct ArrivedFile: Sendable {
    /// The name of the subfolder of the `ArrivalFolder` that contains the file.
    public var session: String
    /// The name of the file in the subfolder.
    public var file: String
    /// The announced name, possibly with folders. Untrusted text.
    public var name: String
    public var size: Int64
    /// The SHA-256 of the content, 32 bytes.
    public var sha256: [UInt8]

    public init(session: String, file: String, name: String, size: Int64, sha256: [UInt8]) {
        (self.session, self.file, self.name, self.size, self.sha256) = (session, file, name, size, sha256)
    }

    public init(_ row: ArrivalRow) {
        self.init(session: row.session, file: row.file, name: row.name, size: row.size, sha256: row.sha256)
    }
}

/// A file that is already in the pool, and is pinned when its hex is stored.
public struct ArrivalInPool: Sendable {
    /// The SHA-256 of the content, 32 bytes.
    public var sha256: [UInt8]
    /// The name of the file in the pool's folder for the digest.
    public var name: String
    public var size: Int64
    /// The `FileIdentity` of the file; `nil` if the pool had the file before.
    public var identity: String?

    public init(sha256: [UInt8], name: String, size: Int64, identity: String?) {
        (self.sha256, self.name, self.size, self.identity) = (sha256, name, size, identity)
    }
}

extension StoreReader {
    /// Returns the files whose hex is not stored yet, in the order of their arrival.
    /// - Parameter session: `nil` for all sessions.
    public func arrivals(of session: String? = nil) throws -> [ArrivalRow] {
        try all(
            """
            SELECT id, session, peer, fingerprint, sender, file, name, size, sha256, mediaType, modified FROM arrival
            WHERE ?1 IS NULL OR session = ?1 ORDER BY id
            """, session
        ) { row in
            guard let peer = row.uuid(2), let fingerprint = Fingerprint(bytes: row.bytes(3)) else { return nil as ArrivalRow? }
            return ArrivalRow(
                id: row.int64(0), session: row.text(1), peer: PeerID(peer), fingerprint: fingerprint, sender: row.text(4),
                file: row.text(5),
                name: row.text(6), size: row.int64(7), sha256: row.bytes(8), mediaType: row.optionalText(9), modified: row.optionalInt64(10)
            )
        }.compactMap(\.self)
    }
}

extension HexStore {
    /// Records a complete and durable file of a session.
    /// - Parameter completion: called on the writer's thread once the record is durable.
    public func add(_ arrival: ArrivalRow, at now: Int64, completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        submit(
            { writer in
                _ = try writer.change {
                    try writer.run(
                        """
                        INSERT INTO arrival (session, peer, fingerprint, sender, file, name, size, sha256, mediaType, modified, at)
                        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                        """, arrival.session, arrival.peer.uuid, arrival.fingerprint.bytes, arrival.sender, arrival.file, arrival.name,
                        arrival.size, arrival.sha256, arrival.mediaType, arrival.modified, now)
                }
            }, completion: completion)
    }

    /// Deletes the records of a session. Blocks the calling thread.
    public func dropArrivals(of session: String) throws {
        try writeSync { writer in _ = try writer.change { try writer.run("DELETE FROM arrival WHERE session = ?", session) } }
    }

    /// Stores the hex of a session, pins its files for the hex, and deletes the records of the session, in one transaction. If the hex is
    /// refused temporarily (`RefusalCode.isTemporary`), for example because the disk is full, the records stay. If it is refused
    /// permanently, for example because the user has blocked the device, they are deleted. Blocks the calling thread.
    /// - Parameters:
    ///   - session: the session of a device; `nil` for a guest, whose files have no records.
    ///   - files: the files, which must be among the kept files or in the pool.
    ///   - diskReserve: bytes of the file system to leave free.
    /// - Returns: the id of the hex; `nil` if it was refused permanently.
    /// - Throws: `HexlistError` `storageFull` after a temporary refusal. Nothing is changed then.
    public func finishArrivals(
        of session: String?, as hex: IncomingHex, _ files: [ArrivalInPool], from sender: Sender, at now: Int64, policy: StrangerHexPolicy,
        quotas: HeldQuotas, diskReserve: Int64
    ) throws -> Int64? {
        try writeSync { writer in
            try writer.change {
                let id = writer.counters.nextHex
                let results = try writer.receive([hex], from: sender, at: now, policy: policy, quotas: quotas, diskReserve: diskReserve)
                if results.first?.isTemporary ?? false { throw HexlistError(.storageFull, "There is no space for it at the moment.") }
                let isStored = results.first?.isDelivered ?? false
                if isStored { for file in files { try writer.keep(file, from: sender.peer, for: id, at: now) } }
                if let session { try writer.run("DELETE FROM arrival WHERE session = ?", session) }
                return isStored ? id : nil
            }
        }
    }
}

extension StoreWriter {
    func keep(_ file: ArrivalInPool, from peer: PeerID, for hex: Int64, at now: Int64) throws {
        if let identity = file.identity {
            try run(
                """
                INSERT INTO pooled (sha256, place, name, size, identity, hex, usedAt, lived) VALUES (?, 'kept', ?, ?, ?, ?, ?, ?)
                ON CONFLICT (sha256) DO UPDATE SET place = excluded.place, name = excluded.name, size = excluded.size,
                    identity = excluded.identity
                """, file.sha256, file.name, file.size, identity, hex, now, lived)
        }
        try run("INSERT OR IGNORE INTO pooledPeer SELECT id, ? FROM pooled WHERE sha256 = ?", peer.uuid, file.sha256)
        try run("INSERT OR IGNORE INTO keptFor (sha256, hex) VALUES (?, ?)", file.sha256, hex)
    }
}
