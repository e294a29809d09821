internal import CSQLite
internal import GRDB
internal import HexlistModel

/// The configuration of connections.
enum StoreConnection {
    /// The length to which SQLite cuts the WAL's file when it begins the WAL anew, in bytes. A shorter file stays as long as it is: a sync of
    /// bytes that are replaced takes a disk half as long as one of bytes behind the end.
    private static let logBytes = 32 << 20
    /// The kilobytes of pages cached by the writing connection, which spills what is more into the log. A reader caches at most SQLite's 2 MB.
    static let writerCache: Int64 = 8_000

    /// Turns off SQLite's statistics of allocations, which nothing reads: their global mutex costs a tenth of the insert rate. Has an
    /// effect only before SQLite's first use in the process.
    private static let withoutStatistics: Void = { _ = hexlist_sqlite3_without_memory_statistics() }()

    /// What every configuration of this process is made from, that of a connection that makes a new file too: SQLite has no statistics then.
    static var plainConfiguration: Configuration {
        withoutStatistics
        return Configuration()
    }

    static var configuration: Configuration {
        var configuration = plainConfiguration
        configuration.label = "hexlist.store"
        configuration.foreignKeysEnabled = true
        configuration.busyMode = .timeout(5)
        configuration.maximumReaderCount = 4
        // The write queue controls its transactions itself; GRDB would trap on one that an error left open.
        configuration.allowsUnsafeTransactions = true
        configuration.prepareDatabase { db in
            // The schema in the file, whatever it is, must not run a function that does harm.
            try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY")
            guard !db.configuration.readonly else { return }
            try db.execute(
                sql: """
                    -- Until `Checkpoints` replaces it: migrations are long transactions.
                    PRAGMA wal_autocheckpoint = \(Checkpoints.pages);
                    PRAGMA journal_size_limit = \(logBytes);
                    PRAGMA cache_size = -\(writerCache);
                    PRAGMA secure_delete = FAST;
                    """)
        }
        return configuration
    }

    /// The configuration of a connection that only reads, beside other programs.
    static var readOnlyConfiguration: Configuration {
        var configuration = plainConfiguration
        configuration.label = "hexlist.store.read-only"
        configuration.busyMode = .timeout(5)
        configuration.readonly = true
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY") }
        return configuration
    }

    /// The same of a connection that has the store for itself. In exclusive locking mode SQLite has the index of the WAL in memory, and needs
    /// no room on the disk (wal.html, "Use of WAL Without Shared-Memory"); it has to open the file for writing.
    static var soleConfiguration: Configuration {
        var configuration = readOnlyConfiguration
        configuration.readonly = false
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON") }
        return configuration
    }

    /// Whether a connection has the store for itself, so that it has to be closed before another is opened.
    static func isSole(_ queue: DatabaseQueue) -> Bool { !queue.configuration.readonly }

    /// Sets `synchronous=FULL`, with which COMMIT returns after fsync. GRDB sets NORMAL when it opens a pool, which loses the last commits
    /// in a power cut. Checks the result.
    static func makeDurable(_ db: Database, path: String) throws {
        try db.execute(sql: "PRAGMA synchronous = FULL")
        guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2,
            try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal",
            try Int.fetchOne(db, sql: "PRAGMA foreign_keys") == 1
        else {
            throw HexlistError(
                .storeUnusable, "SQLite does not promise to keep what it commits to \(path).",
                hint: "Put the store on a local file system.")
        }
    }
}
