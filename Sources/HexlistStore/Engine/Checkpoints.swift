internal import GRDB
internal import GRDBSQLite

/// The checkpoints of the writing connection, which copy pages of the WAL into the database.
///
/// SQLite's automatic checkpoint runs inside COMMIT and would delay the caller. This one runs on the writer's thread after the callers of
/// the transaction got their results. It is `PASSIVE`: it waits for no reader and no other program, and copies only pages that no reader
/// needs.
///
/// Stays because of two bounds (Docs/Decisions/0027-optimisations-pay-rent.md): with SQLite's automatic checkpoint a bulk send falls to
/// 0.78 of the floor (at least 0.8), and without the idle checkpoint one hex in flight takes 3.8 floors or more at p50 (at most 3).
///
/// Used on the writer's thread only. Must outlive the connection.
final class Checkpoints {
    /// Length of the WAL from which a checkpoint runs while writes wait: 16 MiB, in pages of 4 KiB. SQLite's default is 4 MiB; a longer WAL
    /// copies a page that changes often less often, worth 10 % of the insert rate.
    static let busyPages: CInt = 4_000
    /// Length of the WAL from which a checkpoint runs while no write waits: 4 MiB, in pages. After a checkpoint SQLite overwrites the WAL
    /// from its start, and syncing overwritten pages is faster than syncing a file that grows.
    private static let idlePages: CInt = 1_000
    /// Maximum average number of pages of the commits in the WAL for an idle checkpoint: a single hex has about 10. During a bulk send the
    /// queue is often empty for a moment, and more checkpoints would slow it down.
    private static let smallCommitPages: CInt = 16

    /// Length of the WAL in pages after the last commit of this connection, with the commits of other programs before it.
    private var length: CInt = 0
    /// Commits of this connection since the WAL was restarted.
    private var commits: CInt = 0

    /// - Parameter db: the writing connection. Its commit hook for the WAL replaces the automatic checkpoint.
    init(on db: Database) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_wal_hook(
            db.sqliteConnection,
            { context, _, _, pages in
                if let context { Unmanaged<Checkpoints>.fromOpaque(context).takeUnretainedValue().committed(length: pages) }
                return SQLITE_OK
            }, context)
    }

    private func committed(length pages: CInt) {
        commits = pages > length ? commits + 1 : 1  // a shorter WAL was restarted
        length = pages
    }

    /// Runs a checkpoint if one is due. Call outside a transaction. A failure leaves the WAL unchanged; the next commit tries again.
    /// - Parameter isIdle: whether no write waits.
    func run(on db: Database, isIdle: Bool) {
        let isEarly = isIdle && length / Self.smallCommitPages <= commits
        guard length >= (isEarly ? Self.idlePages : Self.busyPages) else { return }
        sqlite3_wal_checkpoint_v2(db.sqliteConnection, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
    }
}
