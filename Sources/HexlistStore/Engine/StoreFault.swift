internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import HexlistModel

/// An error of SQLite, or an invalid value in the store's file.
struct StoreFault: Error, Equatable {
    /// The extended result code of SQLite.
    var code: Int32
    var message: String
    /// The `errno` of the failed system call; 0 if no system call failed.
    var systemError: Int32 = 0

    static let closed = StoreFault(code: SQLITE_MISUSE, message: "the store is closed")
    /// A row is missing that every store has (the counters row) or that this process has just written.
    static let lost = StoreFault(code: SQLITE_CORRUPT, message: "a row is missing")
    /// The next id in `StoreCounters` is out of its valid range.
    static let numbers = StoreFault(code: SQLITE_CORRUPT, message: "the next number is out of range")

    /// The disk has no free space for the files that SQLite creates beside the store.
    static let full = StoreFault(code: SQLITE_FULL, message: "no space is left")

    /// Converts an error of this module's SQLite calls or of GRDB; `nil` for other errors.
    init?(_ error: any Error) {
        if let fault = error as? StoreFault {
            self = fault
        } else if let error = error as? DatabaseError {
            self.init(code: error.extendedResultCode.rawValue, message: error.message ?? "\(error.resultCode)")
        } else {
            return nil
        }
    }

    init(code: Int32, message: String, systemError: Int32 = 0) {
        self.code = code
        self.message = message
        self.systemError = systemError
    }

    /// Whether the operation failed because another program holds a lock on the store.
    var isBusy: Bool { [SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL].contains(code & 0xFF) }

    /// Result codes of failed lock operations of the file system. They do not mean that another program holds the lock.
    static let locking = codes(15, 9, 8, 14, 20)  // LOCK, RDLOCK, UNLOCK, CHECKRESERVEDLOCK, SHMLOCK
    /// Result codes for shared memory that could not be mapped.
    static let mapping = codes(21, 18)  // SHMMAP, SHMOPEN

    /// Returns the extended result codes of SQLITE_IOERR with these numbers (rescode.html). Swift does not import SQLite's macros for them.
    private static func codes(_ numbers: Int32...) -> Set<Int32> { Set(numbers.map { SQLITE_IOERR | $0 << 8 }) }

    /// The description of `systemError` in brackets, for messages; empty if there is none.
    var reason: String { systemError == 0 ? "" : " (\(String(cString: strerror(systemError))))" }

    /// Whether the disk or a disk quota is full, or the database has reached SQLite's maximum size.
    var isFull: Bool {
        switch code & 0xFF {
        case SQLITE_FULL: true
        case SQLITE_IOERR: systemError == ENOSPC || systemError == EDQUOT
        default: false
        }
    }
}

extension HexlistError {
    /// Converts an error of SQLite to a `HexlistError` with a message for users. Returns other errors unchanged.
    ///
    /// - Parameters:
    ///   - path: the store's file.
    ///   - opening: whether the store is being opened. If so, most failures become `.storeUnusable` instead of `.internal`.
    static func of(_ error: any Error, path: String, opening: Bool = false) -> any Error {
        guard let fault = StoreFault(error) else { return error }
        let isUnnamed = [SQLITE_IOERR, SQLITE_CANTOPEN].contains(fault.code & 0xFF) && fault.systemError == 0
        if fault.isFull || (isUnnamed && !FileSystemProbe.hasRoom(beside: path)) {
            return HexlistError(
                .storageFull, "No space is left to write the store \(path).", hint: "Free disk space. Waiting hexes are kept and sent then."
            )
        }
        switch fault.code & 0xFF {
        case _ where fault.isBusy:
            if let error = FileSystemProbe.missingLocks(beside: path) { return withoutLocks(path, error) }
            return HexlistError(
                opening ? .storeUnusable : .internal, "The store \(path) is locked by another program.",
                hint: "Close the program that has it open; try again.")
        case SQLITE_INTERRUPT: return CancellationError()
        case SQLITE_NOTADB, SQLITE_CORRUPT:
            return HexlistError(
                .storeUnusable, "The store \(path) is damaged (\(fault.message)).",
                hint: "Keep a copy of the file, then put a backup in its place, or move it away and run `hexlistd --begin-anew`.")
        case SQLITE_IOERR where StoreFault.locking.contains(fault.code):
            return withoutLocks(path, FileSystemProbe.missingLocks(beside: path) ?? fault.systemError)
        case SQLITE_IOERR where StoreFault.mapping.contains(fault.code):
            return HexlistError(
                opening ? .storeUnusable : .internal,
                "The file system of the store \(path) does not support shared memory between programs\(fault.reason).",
                hint: "Put the state folder on a local file system; --state-dir names another one.")
        case SQLITE_READONLY:
            return HexlistError(
                opening ? .storeUnusable : .internal, "The store \(path) can only be read (\(fault.message)).",
                hint: "Is its file system mounted read-only, or the file or its folder write-protected? Change that; try again.")
        case SQLITE_CANTOPEN where [EMFILE, ENFILE].contains(fault.systemError):
            return HexlistError(
                opening ? .storeUnusable : .internal, "The store \(path) cannot be opened: too many files are open.",
                hint: "Raise the limit of open files (`ulimit -n`), or close other programs.")
        default:
            return HexlistError(
                opening ? .storeUnusable : .internal, "The store \(path) failed: \(fault.message)\(fault.reason).",
                hint: "Check the disk and the permissions of the file and its folder.")
        }
    }

    /// Returns the error for a store on a file system without locks.
    /// - Parameter error: the `errno`; 0 if it is unknown.
    static func withoutLocks(_ path: String, _ error: CInt) -> HexlistError {
        let reason = error == 0 ? "" : " (\(String(cString: strerror(error))))"
        return HexlistError(
            .storeUnusable, "The file system of the store \(path) has no locks\(reason).",
            hint: "Put the state folder on a local file system; --state-dir names another one.")
    }
}
