internal import CSQLite
internal import GRDB
internal import GRDBSQLite

/// Work on the log that is due once transactions are committed and told of, so that nobody waits for it (`Docs/Decisions/0018`).
enum LogUpkeep: Equatable {
    /// Moving its pages into the file.
    case checkpoint
    /// Making its file longer: a sync of bytes behind the file's end also writes down its new length, which takes the disk two to three times as
    /// long as a sync of bytes that are replaced.
    case lengthening(by: Int32)

    /// The pages of log that are moved into the file: 16 MiB instead of SQLite's 4 MiB, so that a page that changes often is written to the file
    /// less often; worth 10 % of the insert rate.
    static let checkpointPages = 4_000
    /// The bytes by which the file grows while something is written: no more than a disk takes within the time of one hex.
    private static let growth: Int32 = 256 << 10
    /// The bytes to have left in the file: some transactions of one hex.
    private static let room: Int64 = 128 << 10
    /// The most bytes of transactions for which the file is made longer. For others its length is a small part of what is synced.
    private static let few: Int64 = 64 << 10
    /// A page in the log (fileformat2.html, "The WAL File Format").
    private static let frameBytes: Int64 = 24 + 4_096

    /// - Parameter before: the size of the log before the transactions.
    static func due(since before: LogSize, _ now: LogSize) -> LogUpkeep? {
        if now.written >= Int64(checkpointPages) * frameBytes { return .checkpoint }
        let isSmall = now.written > before.written && now.written - before.written <= few
        return isSmall && now.length - now.written < room ? .lengthening(by: growth) : nil
    }

    /// The work that is due while nothing is written, so that no hex after a quiet time waits for it: the file gets the length that it has at a
    /// checkpoint, and the log is moved at SQLite's 4 MiB.
    /// - Parameter hasRoom: whether the file may take room before it is needed.
    static func dueInQuiet(_ size: LogSize, hasRoom: Bool) -> LogUpkeep? {
        if size.length < Int64(checkpointPages) * frameBytes, hasRoom { return .lengthening(by: Quiet.growth) }
        return size.written >= Int64(Quiet.checkpointPages) * frameBytes ? .checkpoint : nil
    }

    /// Does it, as well as it can be done: the log is as good without.
    func perform(on db: Database) {
        switch self {
        case .checkpoint: sqlite3_wal_checkpoint_v2(db.sqliteConnection, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        case .lengthening(let count): _ = hexlist_sqlite3_lengthen_log(db.sqliteConnection, count)
        }
    }
}

extension LogUpkeep {
    /// The times and sizes of the work while nothing is written.
    enum Quiet {
        /// The time without a write after which the store counts as quiet.
        static let time = Duration.milliseconds(50)
        /// The pause between two pieces of work, in which others have the disk.
        static let pause = Duration.milliseconds(50)
        fileprivate static let growth: Int32 = 1 << 20
        /// The pages of log that are moved.
        fileprivate static let checkpointPages = 1_000
        /// The bytes to be free besides the reserve.
        private static let freeBytes: Int64 = 1 << 30

        static func hasRoom(_ path: String, reserve: Int64) -> Bool {
            StoreFile.freeBytes(path).map { $0 >= freeBytes.addingClamped(reserve) } ?? false
        }
    }
}

/// The log of the writing connection, in bytes.
struct LogSize: Equatable {
    /// The end of what was written last.
    var written: Int64 = 0
    /// The length of the file.
    var length: Int64 = 0

    init(written: Int64, length: Int64) {
        self.written = written
        self.length = length
    }

    /// Asks nothing of the file system: it gives a file whose times were asked for new ones with the next write, and a sync has to write these
    /// down as well.
    init(of db: Database) {
        let result = hexlist_sqlite3_log_size(db.sqliteConnection, &written, &length)
        assert(result == SQLITE_OK, "the log is not gathered")
    }
}
