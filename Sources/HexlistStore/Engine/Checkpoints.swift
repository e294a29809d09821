internal import GRDB
internal import GRDBSQLite

/// The checkpoints of the writing connection: SQLite moves the WAL's pages into the database once the WAL is long.
///
/// SQLite's own automatic checkpoint runs inside COMMIT, so one caller in some hundreds would wait for it. This one runs on the writer's
/// thread after the callers of a transaction were answered. It is `PASSIVE`: it waits for no reader and no other program, and moves the pages
/// that nobody reads. Only SQLite writes the WAL and the database, under its own locks, so other programs may use the store at any time.
///
/// Touched on the writer's thread only. Must outlive the connection's commits.
final class Checkpoints {
    /// The length of the WAL, in pages of 4 KiB, from which a checkpoint is due: 16 MiB instead of SQLite's 4 MiB, so that a page that
    /// changes often is written to the database less often; worth 10 % of the insert rate.
    static let pages: CInt = 4_000

    /// The length of the WAL after the last commit of this connection, with the commits of other programs before it.
    private var length: CInt = 0

    /// - Parameter db: the writing connection. Its commit hook for the WAL replaces the automatic checkpoint.
    init(on db: Database) {
        let own = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_wal_hook(
            db.sqliteConnection,
            { own, _, _, pages in
                if let own { Unmanaged<Checkpoints>.fromOpaque(own).takeUnretainedValue().length = pages }
                return SQLITE_OK
            }, own)
    }

    /// Runs a checkpoint if one is due. Outside a transaction. A failure leaves the WAL as it is; the next commit tries again.
    func run(on db: Database) {
        guard length >= Self.pages else { return }
        sqlite3_wal_checkpoint_v2(db.sqliteConnection, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
    }
}
