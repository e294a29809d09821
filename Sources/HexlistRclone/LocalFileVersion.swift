#if canImport(Glibc)
    internal import Glibc
#endif

/// Device, inode, size and modification time of a file. A different value means another file or another version of it.
struct LocalFileVersion: Equatable, Sendable {
    private var device: UInt64 = 0
    private var inode: UInt64 = 0
    private var size: Int64 = 0
    private var seconds: Int = 0
    private var nanoseconds: Int = 0

    var exists: Bool { inode != 0 }

    /// Reads the version of the file at a path. If no file exists there, the value is the same for all paths.
    init(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        (device, inode, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}
