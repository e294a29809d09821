internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import HexlistModel

/// An error of SQLite.
struct StoreFault: Error, Equatable {
    /// The extended result code.
    var code: Int32
    var message: String
    /// The `errno` of the system call that failed; 0 if none did.
    var systemError: Int32 = 0

    static let closed = StoreFault(code: SQLITE_MISUSE, message: "the store is closed")
    /// A row that was just written, or the counts, which always exist, cannot be read.
    static let lost = StoreFault(code: SQLITE_CORRUPT, message: "a row is missing")
    /// A next number that is damaged (`Tally`).
    static let numbers = StoreFault(code: SQLITE_CORRUPT, message: "the next number is none that can be given")

    /// The fault in an error of SQLite, also one that came through GRDB; `nil` for other errors.
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

    /// Whether the disk, or the bound given to SQLite, is full.
    var isFull: Bool {
        switch code & 0xFF {
        case SQLITE_FULL: true
        case SQLITE_IOERR: systemError == ENOSPC || systemError == EDQUOT
        default: false
        }
    }
}

extension HexlistError {
    /// An error of the store for people; errors that are not SQLite's pass unchanged.
    ///
    /// - Parameters:
    ///   - path: the store's file.
    ///   - opening: whether the store is being opened, so that every failure makes it unusable.
    static func of(_ error: any Error, path: String, opening: Bool = false) -> any Error {
        guard let fault = StoreFault(error) else { return error }
        if fault.isFull {
            return HexlistError(
                .storageFull, "No space is left to write the store \(path).", hint: "Free disk space; what waits is kept and goes on then.")
        }
        switch fault.code & 0xFF {
        case SQLITE_INTERRUPT: return CancellationError()
        case SQLITE_NOTADB, SQLITE_CORRUPT:
            return HexlistError(
                .storeUnusable, "The store \(path) is damaged (\(fault.message)).",
                hint: "Keep a copy of the file, then put a backup in its place, or move it away to start anew.")
        case SQLITE_BUSY, SQLITE_LOCKED:
            return HexlistError(
                opening ? .storeUnusable : .internal, "The store \(path) is locked by another program.",
                hint: "Close the program that has it open; try again.")
        default:
            let reason = fault.systemError == 0 ? "" : " (\(String(cString: strerror(fault.systemError))))"
            return HexlistError(
                opening ? .storeUnusable : .internal, "The store \(path) failed: \(fault.message)\(reason).",
                hint: "Check the disk and the permissions of the file and its folder.")
        }
    }
}
