internal import Foundation

/// Tests free space and POSIX locks on a file beside the store. SQLite needs both, but its result codes are misleading: it reports a full
/// disk as an I/O error, and a file system without locks as a lock held by another program.
enum FileSystemProbe {
    /// Bytes that must be free before SQLite opens the store. SQLite maps the index of the WAL (32 KiB for each 16 MiB) into memory, and a
    /// process that touches a mapped page without a disk block is killed (SIGBUS). The remaining bytes are for the first transactions.
    static let neededBytes = 256 << 10

    /// Whether the file system has `neededBytes` free. `false` also if a disk quota is used up. `true` for other errors, because SQLite
    /// will report them itself.
    static func hasRoom(beside path: String) -> Bool {
        let error = onFile(beside: path) { posix_fallocate($0, 0, off_t(neededBytes)) }
        return error != ENOSPC && error != EDQUOT
    }

    /// The `errno` if the file system does not support locks; `nil` if it does.
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

    /// Runs `body` on an empty, already unlinked file in the store's folder. The store's own file cannot be used for the probe: closing any
    /// descriptor of a file drops all locks of the process on that file (fcntl_locking(2)).
    /// - Returns: the `errno` from `body` or from creating the file.
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
