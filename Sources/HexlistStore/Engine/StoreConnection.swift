internal import CSQLite
internal import GRDB
internal import HexlistModel

/// The configurations of the store's SQLite connections.
enum StoreConnection {
    /// `journal_size_limit`: bytes to which SQLite truncates a longer WAL file after a checkpoint. The file is not truncated to 0, because
    /// syncing overwritten bytes takes half as long as syncing appended bytes.
    private static let walBytes = 32 << 20
    /// `cache_size`: maximum kilobytes of pages that the writing connection caches. Further changed pages of a transaction spill into the
    /// WAL. A reader uses SQLite's default of 2 MB.
    static let writerCache: Int64 = 8_000

    /// Disables SQLite's allocation statistics, which Hexlist does not use: their global mutex costs a tenth of the insert rate. Must be
    /// evaluated before SQLite's first use in the process; later it has no effect.
    private static let withoutStatistics: Void = { _ = hexlist_sqlite3_without_memory_statistics() }()

    /// The configuration on which all others in this process are based. Disables SQLite's allocation statistics.
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
        // The write queue begins and ends its transactions itself. Without this option GRDB would trap on a transaction that an error left
        // open.
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

    /// The configuration of a read-only connection. Other connections may be open at the same time.
    static var readOnlyConfiguration: Configuration {
        var configuration = plainConfiguration
        configuration.label = "hexlist.store.read-only"
        configuration.busyMode = .timeout(5)
        configuration.readonly = true
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY") }
        return configuration
    }

    /// The configuration of an exclusive connection that only reads, for a full disk. In exclusive locking mode SQLite keeps the index of
    /// the WAL in memory and so needs no disk space (wal.html, "Use of WAL Without Shared-Memory"). This mode requires opening the file for
    /// writing.
    static var soleConfiguration: Configuration {
        var configuration = readOnlyConfiguration
        configuration.readonly = false
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON") }
        return configuration
    }

    /// Whether a connection has `soleConfiguration`. If so, it must be closed before another connection is opened.
    static func isSole(_ queue: DatabaseQueue) -> Bool { !queue.configuration.readonly }

    /// Sets `synchronous=FULL`, with which COMMIT returns only after fsync, and checks that SQLite accepted it. GRDB sets NORMAL when it
    /// opens a pool; with NORMAL a power cut may lose the last commits.
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
