internal import Foundation

/// The two things SQLite needs of the store's file system, room and POSIX locks, tried on a file beside the store. SQLite reports each of
/// them with the code of another cause: a full disk as an I/O error, a file system without locks as a lock of another program.
enum FileSystemProbe {
    /// The bytes to be free before SQLite opens the store: the index of its WAL (32 KiB for each 16 MiB) is mapped into memory, and a process
    /// that touches a mapped page for which the disk has no block is killed (SIGBUS). The rest is for the first transactions.
    static let room = 256 << 10

    /// Whether the disk gives `room` bytes now; `false` also if a quota is used up. Other errors are left to SQLite, which meets them too.
    static func hasRoom(beside path: String) -> Bool {
        let error = onFile(beside: path) { posix_fallocate($0, 0, off_t(room)) }
        return error != ENOSPC && error != EDQUOT
    }

    /// The `errno` of a lock that the file system refuses to every program; `nil` if it gives locks.
    static func missingLocks(beside path: String) -> CInt? {
        let error = onFile(beside: path) { descriptor in
            var lock = flock()
            lock.l_type = Int16(F_WRLCK)
            lock.l_whence = Int16(SEEK_SET)
            lock.l_len = 1
            return fcntl(descriptor, F_SETLK, &lock) == 0 ? 0 : errno
        }
        return [ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL].contains(error) ? error : nil
    }

    /// Runs `body` on an empty, already unlinked file in the store's folder. Not on the store itself: closing any descriptor of it drops this
    /// process's locks (fcntl_locking(2)).
    /// - Returns: the result of `body`, an `errno`, or that of making the file.
    private static func onFile(beside path: String, _ body: (CInt) -> CInt) -> CInt {
        let name = StoreFile.resolved(path) + ".probe"
        unlink(name)
        let descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        unlink(name)
        return body(descriptor)
    }
}
