internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

/// An open file or folder, closed with the object.
final class Descriptor: Sendable {
    private let number: CInt

    init(_ number: CInt) { self.number = number }
    deinit { close(number) }

    /// Opens a path; programs that are started from here do not inherit it.
    /// - Parameter folder: where a relative path begins; `nil` for the working directory.
    static func open(_ path: String, _ flags: CInt, mode: mode_t = 0, in folder: Descriptor? = nil) throws(FileFault) -> Descriptor {
        // Swift would hand over what stands before a NUL.
        guard !path.utf8.contains(0) else { throw .notFound }
        while true {
            let number = folder.use { openat($0 ?? AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY, mode) }
            if number >= 0 { return Descriptor(number) }
            guard errno == EINTR else { throw .last }
        }
    }

    /// Calls `body` with the number, which is open meanwhile.
    func use<Result>(_ body: (CInt) -> Result) -> Result { withExtendedLifetime(self) { body(number) } }

    func status() throws(FileFault) -> stat {
        var status = stat()
        guard use({ fstat($0, &status) }) == 0 else { throw .last }
        return status
    }

    /// The status of an entry of this folder, a symbolic link's own; `nil` if there is none.
    func status(of name: String) throws(FileFault) -> stat? {
        var status = stat()
        if use({ fstatat($0, name, &status, AT_SYMLINK_NOFOLLOW) }) == 0 { return status }
        guard errno == ENOENT else { throw .last }
        return nil
    }

    /// Reads until the buffer is full or the file ends.
    /// - Returns: the bytes read.
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

    /// Writes all of it at the place where the file is.
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

    /// Makes what was written survive a power cut, as far as reading it needs.
    func synchronizeData() throws(FileFault) {
        guard use({ fdatasync($0) }) == 0 else { throw .last }
    }

    /// The same for all of it; of a folder, its entries.
    func synchronize() throws(FileFault) {
        guard use({ fsync($0) }) == 0 else { throw .last }
    }

    /// Makes everything of the file system it is on survive a power cut. Since Linux 5.8 a write that failed since this was opened is a fault.
    func synchronizeFileSystem() throws(FileFault) {
        guard use({ hexlist_sync_file_system($0) }) == 0 else { throw .last }
    }

    /// Renames an entry of this folder, and replaces nothing.
    /// - Returns: whether the name was free.
    /// - Throws: `partLost` where there is no such entry.
    func renameNew(_ old: String, to new: String) throws(FileFault) -> Bool {
        if use({ hexlist_rename_new($0, old, new) }) == 0 { return true }
        if errno == EINVAL || errno == ENOSYS {
            // A file system without such a rename: both names are there for a moment.
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

    /// Bytes that this user can still write to the file system.
    func freeBytes() throws(FileFault) -> Int64 {
        var status = statvfs()
        guard use({ fstatvfs($0, &status) }) == 0 else { throw .last }
        let (bytes, isOver) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
        return isOver ? .max : bytes
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
