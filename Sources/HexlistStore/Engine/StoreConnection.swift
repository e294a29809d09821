internal import CSQLite
internal import GRDB
internal import HexlistModel

/// Configurations of connections.
enum StoreConnection {
    /// Bytes to which SQLite truncates the WAL file after a checkpoint. A shorter file keeps its length: syncing overwritten bytes takes a
    /// disk half as long as syncing appended bytes.
    private static let walBytes = 32 << 20
    /// Kilobytes of pages that the writing connection caches; more spill into the WAL. A reader caches at most SQLite's default of 2 MB.
    static let writerCache: Int64 = 8_000

    /// Disables SQLite's allocation statistics, which nothing reads: their global mutex costs a tenth of the insert rate. Takes effect only
    /// before SQLite's first use in the process.
    private static let withoutStatistics: Void = { _ = hexlist_sqlite3_without_memory_statistics() }()

    /// The base of every configuration in this process. Disables the statistics.
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
        // The write queue controls its transactions itself. GRDB would trap on a transaction that an error left open.
        configuration.allowsUnsafeTransactions = true
        configuration.prepareDatabase { db in
            // A forged schema must not call functions with side effects.
            try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY")
            guard !db.configuration.readonly else { return }
            try db.execute(
                sql: """
                    -- Until `Checkpoints` replaces it: migrations are long transactions.
                    PRAGMA wal_autocheckpoint = \(Checkpoints.busyPages);
                    PRAGMA journal_size_limit = \(walBytes);
                    PRAGMA cache_size = -\(writerCache);
                    PRAGMA secure_delete = FAST;
                    """)
        }
        return configuration
    }

    /// The configuration of a read-only connection that coexists with other connections.
    static var readOnlyConfiguration: Configuration {
        var configuration = plainConfiguration
        configuration.label = "hexlist.store.read-only"
        configuration.busyMode = .timeout(5)
        configuration.readonly = true
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY") }
        return configuration
    }

    /// The configuration of an exclusive connection that only reads. In exclusive locking mode SQLite keeps the index of the WAL in memory
    /// and needs no disk space (wal.html, "Use of WAL Without Shared-Memory"), but it has to open the file for writing.
    static var soleConfiguration: Configuration {
        var configuration = readOnlyConfiguration
        configuration.readonly = false
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON") }
        return configuration
    }

    /// Whether a connection is exclusive, so that it must be closed before another one is opened.
    static func isSole(_ queue: DatabaseQueue) -> Bool { !queue.configuration.readonly }

    /// Sets `synchronous=FULL`, with which COMMIT returns after fsync, and checks the result. GRDB sets NORMAL when it opens a pool, which
    /// loses the last commits in a power cut.
    static func makeDurable(_ db: Database, path: String) throws {
        try db.execute(sql: "PRAGMA synchronous = FULL")
        guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2,
            try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal",
            try Int.fetchOne(db, sql: "PRAGMA foreign_keys") == 1
        else {
            throw HexlistError(
                .storeUnusable, "SQLite cannot guarantee durable commits to \(path).",
                hint: "Put the store on a local file system.")
        }
    }
}
