internal import Foundation
internal import GRDB
internal import HexlistModel

/// The database schema as a list of migrations. A shipped migration is never edited; every change is a new migration at the end of the
/// list.
///
/// Times are in milliseconds. Columns for ages and deadlines (`lived`, `dueAt`, `forgetAt`, `heldSince`, `ends`) have times of
/// `StoreOpenTimeClock`. All other times are since 1970, UTC, for display. UUIDs are blobs of 16 bytes, fingerprints and digests of 32 bytes.
enum StoreSchema {
    /// The `user_version` of a store with all migrations applied. A store with a greater version belongs to a newer Hexlist and is not
    /// changed.
    static let version = migrations.count

    static func newer(_ path: String, version: Int) -> HexlistError {
        HexlistError(
            .storeUnusable, "The store \(path) was made by a newer Hexlist (schema \(version); this version supports \(Self.version)).",
            hint: "Nothing was changed. Update Hexlist, or put a backup of the older version in its place.")
    }

    /// All migrations, in order. The number in a name is the `user_version` after the migration. Each store records the names of its
    /// applied migrations, so a name must never change.
    private static let migrations: [(name: String, apply: @Sendable (Database) throws -> Void)] = [
        ("1 hexes, peers, outbox, events", { db in for sql in [tallyAndPeers, hexes, outbox, events] { try db.execute(sql: sql) } }),
        ("2 aliases of trusted peers", giveAliases),
        ("3 size of the event log", { try $0.execute(sql: eventBytes) }),
        // Rows that were inserted before this migration have no subject.
        ("4 what a row of the outbox is about", { try $0.execute(sql: "ALTER TABLE outbox ADD COLUMN subject TEXT") }),
        ("5 hexes inside hexes", { try $0.execute(sql: hexesInside) }),
        ("6 search", { try $0.execute(sql: search) }),
        ("7 groups and policies of peers", { try $0.execute(sql: groups) }),
        ("8 offers and transfers of files", { try $0.execute(sql: files) }),
        // The index lets imports look up folders by description.
        (
            "9 My Hexlist by description",
            { try $0.execute(sql: "CREATE INDEX hexMine ON hex (substr(description, 1, 64)) WHERE location = 'mine'") }
        ),
        ("10 files by digest", { try $0.execute(sql: pool) }),
        ("11 shares", { try $0.execute(sql: shares) }),
        ("12 files fetched by themselves, ends of offers", { try $0.execute(sql: filesByThemselves) }),
        ("13 runs of the outbox", makeRuns),
        ("14 lived time", { try $0.execute(sql: livedTime) }),
        ("15 reserved bytes of a day, senders of pooled files", { try $0.execute(sql: reservations) }),
        ("16 the outbox by row", { try $0.execute(sql: OutboxRowsView.sql) }),
        ("17 files of outbox rows", { try $0.execute(sql: filesOfRows) }),
        // The destination of automatically fetched files (`AutomaticFetchDestination`); NULL: the cache.
        ("18 download folder of a peer", { try $0.execute(sql: "ALTER TABLE peer ADD COLUMN fetchTo TEXT") }),
        ("19 bin of My Hexlist", { try $0.execute(sql: bin) }),
        // The `PeerKind.number` of a peer; 0 for a Hexlist peer.
        ("20 kinds of peers", { try $0.execute(sql: "ALTER TABLE peer ADD COLUMN kind INTEGER NOT NULL DEFAULT 0") }),
        ("21 files that devices send", { try $0.execute(sql: ArrivalRow.schema) }),
        (
            "22 PINs of devices, delivered rows",
            { try $0.execute(sql: "ALTER TABLE peer ADD COLUMN pin TEXT;\n" + OutboxRowsView.sqlWithDevices) }
        ),
        // Maximum number of links of a hex that are opened in the browser (`PeerChange.openLinks`).
        ("23 links that are opened", { try $0.execute(sql: "ALTER TABLE peer ADD COLUMN openLinks INTEGER NOT NULL DEFAULT 0") }),
        ("24 links read one by one", { try $0.execute(sql: readLinks) }),
        ("25 links that wait for a title", { try $0.execute(sql: wantedTitles) }),
        ("26 drop tokens", { try $0.execute(sql: DropToken.schema) }),
        ("27 dead links", { try $0.execute(sql: DeadLink.schema) }),
        ("28 feed addresses", { try $0.execute(sql: FeedAddress.schema) }),
        ("29 cards and routes of peers", { try $0.execute(sql: cards) }),
        ("30 nodes of My Hexlist", MyHexlistConversion.apply),
        ("31 order and trash of My Hexlist", TopLevelOrder.apply),
        ("32 own machines", { try $0.execute(sql: ListExchangeSchema.sql) }),
        ("33 shared lists", { try $0.execute(sql: SharedListSchema.sql) }),
        (
            "34 unseen links and files of lists",
            { db in for sql in [UnseenLinksSchema.sql, OffersOfLists.schema] { try db.execute(sql: sql) } }
        ),
    ]

    static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        for (index, migration) in migrations.enumerated() {
            migrator.registerMigration(migration.name) { db in
                try migration.apply(db)
                try db.execute(sql: "PRAGMA user_version = \(index + 1)")
            }
        }
        return migrator
    }()

    /// Whether a database has exactly the tables, columns, indexes, triggers and views of its schema version.
    /// - Parameter more: the CREATE TABLE statement of an additional expected table.
    static func isWhole(_ db: Database, with more: String) throws -> Bool {
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        guard migrator.migrations.indices.contains(version - 1) else { return false }
        let fresh = try DatabaseQueue()
        try migrator.migrate(fresh, upTo: migrator.migrations[version - 1])
        let parts = try fresh.write { fresh in
            try fresh.execute(sql: more)
            return try Self.parts(of: fresh)
        }
        return try parts == Self.parts(of: db)
    }

    /// Drops all tables, indexes, triggers and views that are not part of the schema of this version, such as a table that another program
    /// added. `isWhole` would reject a backup that has them.
    static func dropOthers(_ db: Database) throws {
        let names =
            "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC"
        let fresh = try DatabaseQueue()
        try migrator.migrate(fresh)
        let own = Set(try fresh.read { try Row.fetchAll($0, sql: names) })
        for row in try Row.fetchAll(db, sql: names) where !own.contains(row) {
            let (type, name): (String, String) = (row[0], row[1])
            try db.execute(sql: "DROP \(type) IF EXISTS \"\(name.replacing("\"", with: "\"\""))\"")
        }
    }

    /// Returns a description of each table, column, index, trigger and view, for comparison. Tables are compared by their columns and not
    /// by their SQL, because the stored text of CREATE TABLE differs between versions of SQLite and has comments.
    private static func parts(of db: Database) throws -> [String] {
        try String.fetchAll(
            db,
            sql: """
                SELECT type || '|' || name || '|' || tbl_name
                    || CASE WHEN type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%' THEN '|' || sql ELSE '' END AS part
                FROM sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'
                UNION ALL
                SELECT 'column|' || tables.name || '|' || info.name || '|' || info.hidden
                FROM sqlite_schema AS tables JOIN pragma_table_xinfo(tables.name) AS info
                WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite!_%' ESCAPE '!'
                ORDER BY part
                """)
    }

    /// The first tables. `tally` has a single row with the next ids and all counts, so that no query has to count rows.
    private static let tallyAndPeers = """
        CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

        CREATE TABLE tally (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            nextHex INTEGER NOT NULL DEFAULT 1, nextInbox INTEGER NOT NULL DEFAULT 1,
            nextOutbox INTEGER NOT NULL DEFAULT 1, nextEvent INTEGER NOT NULL DEFAULT 1,
            inbox INTEGER NOT NULL DEFAULT 0, unread INTEGER NOT NULL DEFAULT 0,
            held INTEGER NOT NULL DEFAULT 0, heldBytes INTEGER NOT NULL DEFAULT 0, mine INTEGER NOT NULL DEFAULT 0,
            outQueued INTEGER NOT NULL DEFAULT 0, outStored INTEGER NOT NULL DEFAULT 0, outHeld INTEGER NOT NULL DEFAULT 0,
            outRejected INTEGER NOT NULL DEFAULT 0, outExpired INTEGER NOT NULL DEFAULT 0,
            outCancelled INTEGER NOT NULL DEFAULT 0, outFailed INTEGER NOT NULL DEFAULT 0,
            outboxBytes INTEGER NOT NULL DEFAULT 0,
            day INTEGER NOT NULL DEFAULT 0, dayHexes INTEGER NOT NULL DEFAULT 0, dayBytes INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        INSERT INTO tally (id) VALUES (1);

        CREATE TABLE peer (
            id INTEGER PRIMARY KEY,
            uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
            fingerprint BLOB,
            name TEXT NOT NULL DEFAULT '',
            alias TEXT,
            trust TEXT NOT NULL DEFAULT 'stranger' CHECK (trust IN ('stranger', 'trusted', 'blocked')),
            version TEXT,
            boot TEXT,
            lastSeenAt INTEGER,
            hexes INTEGER NOT NULL DEFAULT 0, unread INTEGER NOT NULL DEFAULT 0,
            held INTEGER NOT NULL DEFAULT 0, heldBytes INTEGER NOT NULL DEFAULT 0,
            queued INTEGER NOT NULL DEFAULT 0,
            day INTEGER NOT NULL DEFAULT 0, dayHexes INTEGER NOT NULL DEFAULT 0, dayBytes INTEGER NOT NULL DEFAULT 0,
            CHECK (trust <> 'trusted' OR (fingerprint IS NOT NULL AND length(fingerprint) = 32))
        ) STRICT;
        CREATE UNIQUE INDEX peerAlias ON peer (alias) WHERE alias IS NOT NULL;

        CREATE TABLE endpoint (
            peer INTEGER NOT NULL REFERENCES peer (id) ON DELETE CASCADE,
            host TEXT NOT NULL, port INTEGER NOT NULL, interface TEXT NOT NULL DEFAULT '',
            via TEXT NOT NULL, lastOKAt INTEGER NOT NULL,
            PRIMARY KEY (peer, host, port, interface)
        ) STRICT, WITHOUT ROWID;

        -- Every name a trusted peer ever had: a stranger is not found by one of them.
        CREATE TABLE trustedName (
            peer INTEGER NOT NULL REFERENCES peer (id) ON DELETE CASCADE,
            name TEXT NOT NULL, seenAt INTEGER NOT NULL,
            PRIMARY KEY (peer, name)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX trustedNameName ON trustedName (name);
        """

    // CHECK constraints use OR instead of IN: for IN with more than two values SQLite builds a temporary table for every inserted or
    // changed row, which takes a fifth of the outbox's time.

    private static let hexes = """
        CREATE TABLE hex (
            id INTEGER PRIMARY KEY,                 -- from tally.nextHex, never used twice
            location TEXT NOT NULL CHECK (location = 'inbox' OR location = 'held' OR location = 'mine'),
            inboxNumber INTEGER,                    -- given on arrival in the inbox: its order, whatever the clock did
            peer INTEGER REFERENCES peer (id),      -- the proven sender; none in My Hexlist
            messageID BLOB,
            isProven INTEGER NOT NULL,              -- 1: messageID deduplicates, and trusting its peer takes it in
            unread INTEGER NOT NULL,
            linkCount INTEGER NOT NULL,
            byteCount INTEGER NOT NULL,             -- of its frame
            receivedAt INTEGER NOT NULL,
            inboxAt INTEGER,
            heldSince INTEGER,                      -- where it is held: what its days are counted from
            heldFrom TEXT,                          -- where it is held: the address it came from, IPv6 cut to /64
            senderUUID TEXT NOT NULL, senderName TEXT NOT NULL, description TEXT NOT NULL, color TEXT NOT NULL,
            extra TEXT NOT NULL,                    -- unknown members as one JSON object, or empty
            CHECK ((location = 'inbox') = (inboxNumber IS NOT NULL)),
            CHECK ((location = 'held') = (heldFrom IS NOT NULL))
        ) STRICT;
        CREATE UNIQUE INDEX hexMessage ON hex (peer, messageID) WHERE isProven = 1 AND messageID IS NOT NULL;
        CREATE UNIQUE INDEX hexInbox ON hex (inboxNumber) WHERE inboxNumber IS NOT NULL;
        CREATE INDEX hexPeer ON hex (peer, inboxNumber);
        CREATE INDEX hexUnread ON hex (inboxNumber, peer) WHERE unread = 1 AND inboxNumber IS NOT NULL;
        CREATE INDEX hexBeside ON hex (location, id) WHERE location <> 'inbox';
        CREATE INDEX hexHeldSince ON hex (heldSince) WHERE heldSince IS NOT NULL;

        -- id is hex.id * 8192 + position, so a hex's links lie together at the end of one tree: a third of the insert
        -- rate is that.
        CREATE TABLE link (
            id INTEGER PRIMARY KEY,
            url TEXT NOT NULL, description TEXT NOT NULL, service TEXT NOT NULL,
            extra TEXT NOT NULL
        ) STRICT;
        CREATE TRIGGER hexDeleted AFTER DELETE ON hex BEGIN
            DELETE FROM link WHERE id BETWEEN old.id << 13 AND (old.id << 13) + 8191;
        END;

        -- Message ids of deleted hexes that were in the inbox, so that a late repeat is still one.
        CREATE TABLE tombstone (
            peer INTEGER NOT NULL REFERENCES peer (id),
            messageID BLOB NOT NULL,
            forgetAt INTEGER NOT NULL,
            PRIMARY KEY (peer, messageID)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX tombstoneForget ON tombstone (forgetAt);
        """

    /// Adds inner hexes. An inner hex is a row of `hex` with the location `inside`. Lists omit it, the counts of the hexes that contain it
    /// include it, and it is deleted with its parent. Its links are rows of `link`, like those of any hex.
    ///
    /// The CHECK constraint of `location` is edited in the schema table, as SQLite's documentation of ALTER TABLE describes, so that no row
    /// is rewritten. Copying the table instead would take as long as receiving all hexes again, and as much disk space. The second
    /// `replace` is for the first stores, in which the constraint uses IN.
    private static let hexesInside = """
        ALTER TABLE hex ADD COLUMN parent INTEGER REFERENCES hex (id) ON DELETE CASCADE;
        ALTER TABLE hex ADD COLUMN position INTEGER     -- among the hexes inside the same one; may have gaps
            CHECK ((location = 'inside') = (parent IS NOT NULL AND position IS NOT NULL));
        -- Hexes, and their links, inside at all levels.
        ALTER TABLE hex ADD COLUMN hexesInside INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE hex ADD COLUMN linksInside INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX hexParent ON hex (parent, position) WHERE parent IS NOT NULL;
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(replace(sql, 'location = ''mine''', 'location = ''mine'' OR location = ''inside'''),
                '''held'', ''mine'')', '''held'', ''mine'', ''inside'')')
            WHERE type = 'table' AND name = 'hex';
        PRAGMA writable_schema = RESET;
        """

    private static let outbox = """
        CREATE TABLE outbox (
            id INTEGER PRIMARY KEY,                 -- from tally.nextOutbox, never used twice: the order of delivery
            messageID BLOB NOT NULL,
            peer INTEGER NOT NULL REFERENCES peer (id),
            digest BLOB NOT NULL,                   -- of the body; stays when that is gone
            state TEXT NOT NULL CHECK (state = 'queued' OR state = 'stored' OR state = 'held' OR state = 'rejected'
                OR state = 'expired' OR state = 'cancelled' OR state = 'failed'),
            bytes INTEGER NOT NULL,
            createdAt INTEGER NOT NULL,
            dueAt INTEGER NOT NULL,                 -- undelivered: when it expires; else when it is forgotten
            settledAt INTEGER,
            attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
            nextAttemptAt INTEGER, waitingFor TEXT, lastError TEXT,
            code TEXT, message TEXT,
            UNIQUE (messageID, peer)
        ) STRICT;
        CREATE INDEX outboxPeer ON outbox (peer, id);
        CREATE INDEX outboxQueue ON outbox (peer, id) WHERE state = 'queued';
        CREATE INDEX outboxDue ON outbox (dueAt);
        CREATE INDEX outboxBlamed ON outbox (peer) WHERE failures > 0;
        CREATE INDEX outboxFailed ON outbox (peer, digest) WHERE state = 'failed';

        -- HexJM JSON, while it may still be sent.
        CREATE TABLE outboxBody (
            id INTEGER PRIMARY KEY REFERENCES outbox (id) ON DELETE CASCADE,
            body BLOB NOT NULL
        ) STRICT;
        """

    /// The event log. A row represents `count` events with consecutive numbers, the first of which is `number`. Their hex ids or outbox ids
    /// increase by one too.
    private static let events = """
        CREATE TABLE event (
            number INTEGER PRIMARY KEY,             -- from tally.nextEvent, without gaps
            count INTEGER NOT NULL CHECK (count > 0),
            at INTEGER NOT NULL,
            type TEXT NOT NULL,
            peer BLOB,                              -- a UUID: the log outlives the peer
            hex INTEGER,
            outbox INTEGER,
            data TEXT                               -- a JSON object
        ) STRICT;
        """

    /// Adds settings of peers (`PeerReceiveSetting`, notifications) and groups of peers.
    private static let groups = """
        ALTER TABLE peer ADD COLUMN receive TEXT NOT NULL DEFAULT 'inbox'
            CHECK (receive = 'inbox' OR receive = 'held' OR receive = 'nothing');
        ALTER TABLE peer ADD COLUMN notify INTEGER NOT NULL DEFAULT 1;

        CREATE TABLE peerGroup (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
        CREATE TABLE groupMember (
            peerGroup INTEGER NOT NULL REFERENCES peerGroup (id) ON DELETE CASCADE,
            peer INTEGER NOT NULL REFERENCES peer (id) ON DELETE CASCADE,
            PRIMARY KEY (peerGroup, peer)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX groupMemberPeer ON groupMember (peer);
        """

    /// Adds the search index, an FTS5 table that does not store the texts. The rowid is `hex.id`; the columns are those of
    /// `SearchDocument`. There is an additional index only for prefixes of one letter, because longer prefixes match few words.
    private static let search = """
        CREATE VIRTUAL TABLE search USING fts5(about, sender, link, key, content = '', columnsize = 0, prefix = '1',
            tokenize = 'unicode61 remove_diacritics 2');
        CREATE TABLE reindex (hex INTEGER PRIMARY KEY) STRICT;  -- entries to be made again, of ids up to tally.indexed
        ALTER TABLE tally ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tally ADD COLUMN reindex INTEGER NOT NULL DEFAULT 0;
        """

    /// Adds offers (files of this machine that peers may fetch) and transfers (files that this machine fetches). Peers are referenced by
    /// their UUIDs, because a row of `peer` may be deleted and inserted again with another id.
    private static let files = """
        CREATE TABLE offer (
            id BLOB PRIMARY KEY CHECK (length(id) = 16),
            path TEXT NOT NULL,
            identity TEXT NOT NULL,                 -- device, inode, size, mtime and ctime as they were (`FileIdentity`)
            name TEXT NOT NULL,
            size INTEGER NOT NULL,
            sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
            mediaType TEXT,
            modified INTEGER NOT NULL,
            ends INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX offerPath ON offer (path);
        CREATE INDEX offerEnds ON offer (ends);
        CREATE TABLE offerPeer (
            offer BLOB NOT NULL REFERENCES offer (id) ON DELETE CASCADE,
            peer BLOB NOT NULL CHECK (length(peer) = 16),
            PRIMARY KEY (offer, peer)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE transfer (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            hex INTEGER,                            -- may be deleted since
            url TEXT NOT NULL,
            peer BLOB NOT NULL CHECK (length(peer) = 16),
            folder TEXT NOT NULL,                   -- where the file goes, an absolute path
            mask INTEGER NOT NULL,                  -- the umask of whoever asked
            name TEXT NOT NULL,                     -- the name wanted, cleaned
            part TEXT NOT NULL,                     -- random digits in the name of the partial file
            state TEXT NOT NULL CHECK (state = 'waiting' OR state = 'done' OR state = 'failed' OR state = 'cancelled'),
            reason TEXT,                            -- a word
            error TEXT,
            bytes INTEGER NOT NULL DEFAULT 0,
            size INTEGER,
            sha256 BLOB,
            entityTag TEXT,
            modified INTEGER,
            fileInode TEXT,                         -- device and inode of the part, before its last rename
            finalName TEXT,                         -- the name it is given by that rename
            attempts INTEGER NOT NULL DEFAULT 0,
            createdAt INTEGER NOT NULL,
            endedAt INTEGER
        ) STRICT;
        CREATE INDEX transferWaiting ON transfer (id) WHERE state = 'waiting';
        CREATE INDEX transferEnded ON transfer (endedAt) WHERE endedAt IS NOT NULL;
        """

    /// Adds shares: folders that peers may read. Peers are referenced by their UUIDs, as in `offerPeer`. Deleting a group ends the access
    /// of its members.
    private static let shares = """
        CREATE TABLE share (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            path TEXT NOT NULL,
            showsHidden INTEGER NOT NULL,
            forAll INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE sharePeer (
            share INTEGER NOT NULL REFERENCES share (id) ON DELETE CASCADE,
            peer BLOB NOT NULL CHECK (length(peer) = 16),
            PRIMARY KEY (share, peer)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE shareGroup (
            share INTEGER NOT NULL REFERENCES share (id) ON DELETE CASCADE,
            peerGroup INTEGER NOT NULL REFERENCES peerGroup (id) ON DELETE CASCADE,
            PRIMARY KEY (share, peerGroup)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX shareGroupPeers ON shareGroup (peerGroup);
        """

    /// Adds the pool: fetched files by digest. Files with the place `pool` are evicted if space is needed; files with the place `kept` are
    /// deleted with their hexes.
    private static let pool = """
        ALTER TABLE transfer ADD COLUMN place TEXT CHECK (place = 'pool' OR place = 'kept');  -- NULL: a folder that somebody named
        CREATE TABLE pooled (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            sha256 BLOB NOT NULL UNIQUE CHECK (length(sha256) = 32),
            place TEXT NOT NULL CHECK (place = 'pool' OR place = 'kept'),
            name TEXT NOT NULL,
            size INTEGER NOT NULL,
            identity TEXT NOT NULL,                 -- `FileIdentity` of the whole file
            hex INTEGER,                            -- for which it was fetched last; may be deleted since
            usedAt INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX pooledUsed ON pooled (usedAt) WHERE place = 'pool';
        -- A file is kept as long as one of these hexes is there.
        CREATE TABLE keptFor (
            sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
            hex INTEGER NOT NULL,
            PRIMARY KEY (sha256, hex)
        ) STRICT, WITHOUT ROWID;
        """

    /// Adds the settings and counters of automatic fetching, and lets an offer end at a different time for each peer.
    private static let filesByThemselves = """
        ALTER TABLE peer ADD COLUMN fetchLimit INTEGER;             -- bytes of a hex, and of a day; NULL: nothing is fetched by itself
        ALTER TABLE peer ADD COLUMN fetchAfter INTEGER NOT NULL DEFAULT 0;  -- the last hex.inboxNumber that was looked at
        ALTER TABLE peer ADD COLUMN fetchDay INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE peer ADD COLUMN fetchDayBytes INTEGER NOT NULL DEFAULT 0;

        ALTER TABLE offerPeer ADD COLUMN ends INTEGER;              -- NULL: with the offer
        CREATE INDEX offerPeerEnds ON offerPeer (ends) WHERE ends IS NOT NULL;
        -- The offers that a row of the outbox brings to its peer.
        CREATE TABLE offerRow (
            outbox INTEGER NOT NULL REFERENCES outbox (id) ON DELETE CASCADE,
            offer BLOB NOT NULL REFERENCES offer (id) ON DELETE CASCADE,
            PRIMARY KEY (outbox, offer)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX offerRowOffer ON offerRow (offer);
        """

    /// Adds the bytes of a peer's daily limit that are reserved for an automatically fetched file. Also adds the peers that sent each file
    /// of the pool, which the migration reads from completed transfers.
    private static let reservations = """
        -- Bytes of `fetchDayBytes` of the peer that are reserved for the file and have not arrived; NULL: somebody asked for the file.
        ALTER TABLE transfer ADD COLUMN reservedBytes INTEGER;
        ALTER TABLE transfer ADD COLUMN reservedDay INTEGER NOT NULL DEFAULT 0;     -- a reservation ends with its day, UTC

        CREATE TABLE pooledPeer (
            pooled INTEGER NOT NULL REFERENCES pooled (id) ON DELETE CASCADE,
            peer BLOB NOT NULL CHECK (length(peer) = 16),
            PRIMARY KEY (pooled, peer)
        ) STRICT, WITHOUT ROWID;
        INSERT OR IGNORE INTO pooledPeer
            SELECT pooled.id, transfer.peer FROM transfer JOIN pooled ON pooled.sha256 = transfer.sha256
            WHERE transfer.state = 'done' AND transfer.place IS NOT NULL;
        """

    /// Adds the counts of the files that outbox rows offer, which remain after the offers have ended, and the result of the last request
    /// for each offer.
    private static let filesOfRows = """
        ALTER TABLE offerPeer ADD COLUMN isFetched INTEGER NOT NULL DEFAULT 0;  -- 1: the peer has the file
        ALTER TABLE offerPeer ADD COLUMN problem TEXT;              -- the reason why the last request for the file failed (`OfferProblem`)
        CREATE TABLE outboxFiles (
            outbox INTEGER PRIMARY KEY REFERENCES outbox (id) ON DELETE CASCADE,
            files INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            fetched INTEGER NOT NULL DEFAULT 0,
            failed INTEGER NOT NULL DEFAULT 0,
            failedName TEXT,
            failedReason TEXT,
            isWithdrawn INTEGER NOT NULL DEFAULT 0,
            ends INTEGER                            -- NULL: not delivered
        ) STRICT;
        INSERT INTO outboxFiles (outbox, files, bytes, ends)
            SELECT offerRow.outbox, count(*), CAST(total(offer.size) AS INTEGER), max(offerPeer.ends)
            FROM offerRow JOIN outbox ON outbox.id = offerRow.outbox JOIN peer ON peer.id = outbox.peer
                JOIN offer ON offer.id = offerRow.offer JOIN offerPeer ON offerPeer.offer = offer.id AND offerPeer.peer = peer.uuid
            GROUP BY offerRow.outbox;
        """

    /// Adds the bin: hexes that were deleted from My Hexlist, with their links and inner hexes (`BinnedTree`).
    private static let bin = """
        CREATE TABLE bin (
            number INTEGER PRIMARY KEY,             -- in order of deletion
            hex INTEGER NOT NULL UNIQUE,            -- the id that the hex had
            parent INTEGER,                         -- the hex that it was in; may be deleted since
            subject TEXT NOT NULL,
            hexesInside INTEGER NOT NULL,
            links INTEGER NOT NULL,                 -- at all levels
            deletedAt INTEGER NOT NULL,
            lived INTEGER NOT NULL,                 -- deletedAt
            content BLOB NOT NULL                   -- JSON
        ) STRICT;
        CREATE INDEX binLived ON bin (lived);
        """

    /// Adds the links of unread hexes that were marked read individually (`LinkPosition`).
    private static let readLinks = """
        CREATE TABLE readLink (id INTEGER PRIMARY KEY) STRICT;      -- link.id
        CREATE TRIGGER hexDeletedRead AFTER DELETE ON hex BEGIN
            DELETE FROM readLink WHERE id BETWEEN old.id << 13 AND (old.id << 13) + 8191;
        END;
        """

    /// Adds the queue of links of My Hexlist whose page titles are to be read (`PendingTitle`).
    private static let wantedTitles = """
        CREATE TABLE wantedTitle (
            id INTEGER PRIMARY KEY,
            hex INTEGER NOT NULL,                   -- may be deleted meanwhile
            url TEXT NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            run INTEGER NOT NULL DEFAULT 0,         -- the run of the daemon that made the last attempt
            UNIQUE (hex, url)
        ) STRICT;
        """

    /// Adds the counter of the event log's bytes, as `EventLog` counts them.
    private static let eventBytes = """
        ALTER TABLE tally ADD COLUMN eventBytes INTEGER NOT NULL DEFAULT 0;
        UPDATE tally SET eventBytes = (SELECT coalesce(sum(64 + coalesce(length(CAST(data AS BLOB)), 0)), 0) FROM event);
        """

    /// Replaces the outbox's tables by row ranges and packs (`OutboxRowRange`, `OutboxPack`), so that hexes that are enqueued together are
    /// stored together. Each existing row becomes a range of one row with its own pack.
    @Sendable private static func makeRuns(_ db: Database) throws {
        db.add(
            function: DatabaseFunction("packed", argumentCount: 4, pure: true) { values in
                var hexes = PackedHexes()
                let messageID = Data.fromDatabaseValue(values[0]).flatMap { UUIDBytes(bytes: [UInt8]($0)) }
                hexes.append(
                    messageID: messageID ?? .nil, digest: Data.fromDatabaseValue(values[1]).map { [UInt8]($0) } ?? [],
                    bodyBytes: max(0, Int.fromDatabaseValue(values[2]) ?? 0), subject: String.fromDatabaseValue(values[3]))
                return Data(hexes.bytes)
            })
        try db.execute(sql: runs)
    }

    private static let runs = """
        CREATE TABLE outboxPack (
            id INTEGER PRIMARY KEY,
            first INTEGER NOT NULL,                 -- outbox.id of the first of the count * copies rows that were made with it
            count INTEGER NOT NULL CHECK (count > 0),
            copies INTEGER NOT NULL CHECK (copies > 0),     -- recipients
            isKeyed INTEGER NOT NULL,
            hexes BLOB NOT NULL,                    -- PackedHexes
            bodies BLOB                             -- HexJM JSON, one behind the other, while one of them may still be sent
        ) STRICT;
        INSERT INTO outboxPack (id, first, count, copies, isKeyed, hexes, bodies)
            SELECT outbox.id, outbox.id, 1, 1, 1, packed(messageID, digest, coalesce(length(body), bytes), subject), body
            FROM outbox LEFT JOIN outboxBody ON outboxBody.id = outbox.id;
        -- The packs of hexes that were sent with a key.
        CREATE TABLE outboxKey (
            messageID BLOB NOT NULL CHECK (length(messageID) = 16),
            pack INTEGER NOT NULL,
            PRIMARY KEY (messageID, pack)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO outboxKey (messageID, pack) SELECT messageID, id FROM outbox WHERE length(messageID) = 16;

        CREATE TABLE outboxRun (
            id INTEGER PRIMARY KEY,                 -- of its first row, from tally.nextOutbox, never used twice: the order of delivery
            last INTEGER NOT NULL,                  -- of its last row
            peer INTEGER NOT NULL REFERENCES peer (id),
            pack INTEGER NOT NULL,                  -- outboxPack.id; SQLite would look through the table for a reference
            state TEXT NOT NULL CHECK (state = 'queued' OR state = 'stored' OR state = 'held' OR state = 'rejected'
                OR state = 'expired' OR state = 'cancelled' OR state = 'failed'),
            createdAt INTEGER NOT NULL,
            dueAt INTEGER NOT NULL,                 -- undelivered: when it expires; else when it is forgotten
            settledAt INTEGER,
            attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
            nextAttemptAt INTEGER, waitingFor TEXT, lastError TEXT,
            code TEXT, message TEXT,
            CHECK (last >= id)
        ) STRICT;
        INSERT INTO outboxRun (id, last, peer, pack, state, createdAt, dueAt, settledAt, attempts, failures, nextAttemptAt, waitingFor,
                lastError, code, message)
            SELECT id, id, peer, id, state, createdAt, dueAt, settledAt, attempts, failures, nextAttemptAt, waitingFor, lastError, code, message
            FROM outbox;
        DROP TABLE outboxBody;
        DROP TABLE outbox;
        ALTER TABLE outboxRun RENAME TO outbox;
        CREATE INDEX outboxPeer ON outbox (peer, state, id);
        CREATE INDEX outboxUndelivered ON outbox (id) WHERE state IN ('queued', 'rejected', 'failed');
        CREATE INDEX outboxDue ON outbox (dueAt);
        CREATE INDEX outboxBlamed ON outbox (peer) WHERE failures > 0;
        CREATE INDEX outboxFailed ON outbox (peer, settledAt) WHERE state = 'failed';
        """

    /// Adds the saved time of `StoreOpenTimeClock`, and columns for the ages of rows whose wall times are displayed. The clock starts with the wall
    /// time of the newest rows, so that existing deadlines stay valid.
    private static let livedTime = """
        ALTER TABLE tally ADD COLUMN lived INTEGER NOT NULL DEFAULT 0;
        UPDATE tally SET lived = coalesce(
            (SELECT max(at) FROM (
                SELECT (SELECT at FROM event ORDER BY number DESC LIMIT 1) AS at
                UNION ALL SELECT (SELECT max(createdAt, coalesce(settledAt, createdAt)) FROM outbox ORDER BY id DESC LIMIT 1)
                UNION ALL SELECT (SELECT receivedAt FROM hex ORDER BY id DESC LIMIT 1)
                UNION ALL SELECT (SELECT createdAt FROM transfer ORDER BY id DESC LIMIT 1))),
            1000 * CAST(strftime('%s', 'now') AS INTEGER));
        ALTER TABLE event ADD COLUMN lived INTEGER;                 -- when it was recorded; NULL: `at`
        ALTER TABLE endpoint ADD COLUMN lived INTEGER NOT NULL DEFAULT 0;   -- lastOKAt
        UPDATE endpoint SET lived = lastOKAt;
        ALTER TABLE pooled ADD COLUMN lived INTEGER NOT NULL DEFAULT 0;     -- usedAt
        UPDATE pooled SET lived = usedAt;
        DROP INDEX pooledUsed;
        CREATE INDEX pooledUse ON pooled (lived) WHERE place = 'pool';
        ALTER TABLE transfer ADD COLUMN lived INTEGER;              -- endedAt
        UPDATE transfer SET lived = endedAt;
        DROP INDEX transferEnded;
        CREATE INDEX transferEnd ON transfer (lived) WHERE lived IS NOT NULL;
        """

    private static let cards = """
        ALTER TABLE peer ADD COLUMN card BLOB;                      -- the peer's public keys, only while it is trusted
        ALTER TABLE peer ADD COLUMN cardSerial INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE peer ADD COLUMN routes TEXT;                    -- RouteSelection; NULL: any
        """
}
