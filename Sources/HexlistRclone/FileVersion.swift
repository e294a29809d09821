#if canImport(Glibc)
    internal import Glibc
#endif

/// The identity, size and time of a file: another mark tells that it is another file, or was written since.
struct FileVersion: Equatable, Sendable {
    private var device: UInt64 = 0
    private var inode: UInt64 = 0
    private var size: Int64 = 0
    private var seconds: Int = 0
    private var nanoseconds: Int = 0

    var isThere: Bool { inode != 0 }

    /// The mark of what is at the path; the same one for every path where there is nothing.
    init(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        (device, inode, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}
