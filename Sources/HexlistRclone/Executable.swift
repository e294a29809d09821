#if canImport(Glibc)
    internal import Glibc
#endif

/// Files as the system sees them.
enum Executable {
    static func isThere(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }
}

/// What tells that a file is another one, or was written since.
struct FileMark: Equatable, Sendable {
    private var device: UInt64 = 0
    private var inode: UInt64 = 0
    private var size: Int64 = 0
    private var seconds: Int = 0
    private var nanoseconds: Int = 0

    /// The mark of what is at the path; the same one for every path where there is nothing.
    init(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        (device, inode, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}
