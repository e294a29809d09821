internal import GRDB
internal import GRDBSQLite

/// The checkpoints of the writing connection, which copy pages of the WAL into the database.
///
/// Replaces SQLite's automatic checkpoint, which runs inside COMMIT and would delay the caller. This checkpoint runs on the writer's thread
/// after the callers of the transaction got their results. It is `PASSIVE`: it never waits for readers or other programs, and copies only
/// as many pages as their snapshots permit.
///
/// Required by two benchmark bounds (Docs/Decisions/0027-optimisations-pay-rent.md), which compare Hexlist with two plain C++ processes
/// that do the same work. With SQLite's automatic checkpoint the rate of a bulk send is 0.78 times the rate of those processes (minimum
/// 0.8). Without the checkpoint of an idle writer the median latency of one hex in flight is at least 3.8 times theirs (maximum 3).
///
/// Not thread-safe: use it on the writer's thread only. Must outlive the connection.
final class Checkpoints {
    /// Minimum length of the WAL, in pages of 4 KiB, for a checkpoint while writes wait: 16 MiB. SQLite's default is 4 MiB. With a longer
    /// WAL, pages that change often are copied less often, which raises the insert rate by 10 %.
    static let busyPages: CInt = 4_000
    /// Minimum length of the WAL, in pages, for a checkpoint while no write waits: 4 MiB. After a checkpoint SQLite overwrites the WAL from
    /// its beginning, and syncing overwritten pages is faster than syncing a growing file.
    private static let idlePages: CInt = 1_000
    /// A checkpoint runs at `idlePages` only if the commits in the WAL have at most this many pages on average. A commit of a single hex
    /// has about 10. Commits of bulk sends have more: their queue is often empty for a moment, and more checkpoints would slow them down.
    private static let smallCommitPages: CInt = 16

    /// Length of the WAL in pages after the last commit of this connection. Includes earlier commits of other programs.
    private var length: CInt = 0
    /// Number of commits of this connection since SQLite last restarted the WAL from its beginning.
    private var commits: CInt = 0

    /// - Parameter db: the writing connection. Setting its WAL hook disables SQLite's automatic checkpoint.
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
        commits = pages > length ? commits + 1 : 1  // a WAL that did not grow was restarted
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
