internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

/// An open file or folder. The file descriptor is closed on deinit.
final class Descriptor: Sendable {
    private let number: CInt

    init(_ number: CInt) { self.number = number }
    deinit { close(number) }

    /// Opens a path. The descriptor is closed in child processes (`O_CLOEXEC`).
    /// - Parameter folder: the folder to which a relative path refers; `nil` for the working directory.
    static func open(_ path: String, _ flags: CInt, mode: mode_t = 0, in folder: Descriptor? = nil) throws(FileFault) -> Descriptor {
        // A NUL would end the C string early and open a different path.
        guard !path.utf8.contains(0) else { throw .notFound }
        while true {
            let number = folder.use { openat($0 ?? AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY, mode) }
            if number >= 0 { return Descriptor(number) }
            guard errno == EINTR else { throw .last }
        }
    }

    /// Calls `body` with the file descriptor, which stays open during the call.
    func use<Result>(_ body: (CInt) -> Result) -> Result { withExtendedLifetime(self) { body(number) } }

    func status() throws(FileFault) -> stat {
        var status = stat()
        guard use({ fstat($0, &status) }) == 0 else { throw .last }
        return status
    }

    /// The status of an entry of this folder, without following a symbolic link; `nil` if there is no such entry.
    func status(of name: String) throws(FileFault) -> stat? {
        var status = stat()
        if use({ fstatat($0, name, &status, AT_SYMLINK_NOFOLLOW) }) == 0 { return status }
        guard errno == ENOENT else { throw .last }
        return nil
    }

    /// Reads at an offset, until the buffer is full or the file ends.
    /// - Returns: the number of bytes read.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileFault) -> Int {
        var count = 0
        while count < buffer.count {
            let part = use { pread($0, buffer.baseAddress.map { $0 + count }, buffer.count - count, off_t(offset) + count) }
            if part < 0, errno == EINTR { continue }
            guard part >= 0 else { throw .last }
            guard part > 0 else { break }
            count += part
        }
        return count
    }

    /// Writes all bytes at the current file offset.
    func write(_ bytes: UnsafeRawBufferPointer) throws(FileFault) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = UnsafeRawBufferPointer(rebasing: rest)
            let count = use { Glibc.write($0, piece.baseAddress, piece.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw count < 0 ? .last : .diskFull }
            rest = rest.dropFirst(count)
        }
    }

    /// Makes the data durable, and the metadata that is needed to read it (fdatasync(2)).
    func synchronizeData() throws(FileFault) {
        guard use({ fdatasync($0) }) == 0 else { throw .last }
    }

    /// Makes data and metadata of a file durable, or the entries of a folder (fsync(2)).
    func synchronize() throws(FileFault) {
        guard use({ fsync($0) }) == 0 else { throw .last }
    }

    /// Makes all data of the file system durable (syncfs(2)). Since Linux 5.8, it fails if a write error has occurred since this descriptor
    /// was opened.
    func synchronizeFileSystem() throws(FileFault) {
        guard use({ hexlist_sync_file_system($0) }) == 0 else { throw .last }
    }

    /// Renames an entry of this folder without replacing an existing one.
    /// - Returns: `false` if the new name exists.
    /// - Throws: `partLost` if the old name does not exist.
    func renameNew(_ old: String, to new: String) throws(FileFault) -> Bool {
        if use({ hexlist_rename_new($0, old, new) }) == 0 { return true }
        if errno == EINVAL || errno == ENOSYS {
            // The file system does not support RENAME_NOREPLACE. The fallback uses link(2) and unlink(2), so for a moment the file has both
            // names.
            if use({ linkat($0, old, $0, new, 0) }) == 0 {
                _ = use { unlinkat($0, old, 0) }
                return true
            }
        }
        switch errno {
        case EEXIST: return false
        case ENOENT: throw .partLost
        default: throw .last
        }
    }

    /// Returns the number of bytes on the file system that are free for this user.
    func freeBytes() throws(FileFault) -> Int64 {
        var status = statvfs()
        guard use({ fstatvfs($0, &status) }) == 0 else { throw .last }
        let (bytes, isOver) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
        return isOver ? .max : bytes
    }

    /// Checks whether there is enough free space for a file.
    /// - Parameter free: the free bytes on the file system, from `freeBytes`.
    /// - Throws: `diskFull` if writing `bytes` more bytes would leave less than `minimumFree` free.
    static func checkRoom(_ free: Int64, for bytes: Int64, minimumFree: Int64) throws(FileFault) {
        let (room, isOver) = free.subtractingReportingOverflow(minimumFree)
        guard isOver || room >= bytes else { throw .diskFull }
    }
}

extension Descriptor? {
    fileprivate func use<Result>(_ body: (CInt?) -> Result) -> Result {
        guard let self else { return body(nil) }
        return self.use { body($0) }
    }
}

extension stat {
    var kind: mode_t { st_mode & S_IFMT }
    var isRegular: Bool { kind == S_IFREG }
    var isFolder: Bool { kind == S_IFDIR }
}
