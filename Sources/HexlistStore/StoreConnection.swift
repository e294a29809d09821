internal import CSQLite
internal import GRDB
internal import HexlistModel

/// How connections are set up.
enum StoreConnection {
    /// Pages of log before a commit moves them into the file: 16 MiB. Fewer moves than SQLite's 4 MiB, so a page that
    /// changes often is written to the file less often: 10 % of the insert rate.
    private static let checkpointPages = 4_000
    /// Bytes the log keeps after a burst.
    private static let logBytes = 32 << 20
    /// Kilobytes of pages the writing connection remembers. A reader keeps SQLite's 2 MB at most.
    private static let writerCache = 8_000

    /// SQLite counts what it allocates, under a mutex of the process, and nobody asks: a tenth of the insert rate. Only
    /// before its first use in the process; later it changes nothing.
    private static let withoutStatistics: Void = { _ = hexlist_sqlite3_without_memory_statistics() }()

    static var configuration: Configuration {
        withoutStatistics
        var configuration = Configuration()
        configuration.label = "hexlist.store"
        configuration.foreignKeysEnabled = true
        configuration.busyMode = .timeout(5)
        configuration.maximumReaderCount = 4
        // The write queue sees to its transactions itself; GRDB would trap on one that an error left open.
        configuration.allowsUnsafeTransactions = true
        configuration.prepareDatabase { db in
            // Whatever is in the file, its schema runs no function that could do harm.
            try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY")
            guard !db.configuration.readonly else { return }
            try db.execute(
                sql: """
                    PRAGMA wal_autocheckpoint = \(checkpointPages);
                    PRAGMA journal_size_limit = \(logBytes);
                    PRAGMA cache_size = -\(writerCache);
                    PRAGMA secure_delete = FAST;
                    """)
        }
        return configuration
    }

    /// `synchronous=FULL`: COMMIT returns after fsync. GRDB sets NORMAL when it opens a pool, which loses the last
    /// commits in a power cut; what is asked for here is looked at afterwards.
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
