import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// Identifies a version of a file without reading its content: device, inode, size, mtime (last change of the content) and ctime (last
/// change of content or metadata). Programs can set the mtime of a file, but not its ctime.
public struct FileIdentity: Hashable, Sendable, CustomStringConvertible {
    public var device: UInt64
    public var inode: UInt64
    /// Size in bytes.
    public var size: Int64
    /// The mtime in nanoseconds since 1970, clamped to `Int64`.
    public var modified: Int64
    /// The ctime in nanoseconds since 1970, clamped to `Int64`.
    public var changed: Int64

    public init(device: UInt64, inode: UInt64, size: Int64, modified: Int64, changed: Int64) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
        self.changed = changed
    }

    init(_ status: stat) {
        self.init(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
            modified: Self.nanoseconds(status.st_mtim), changed: Self.nanoseconds(status.st_ctim))
    }

    /// Whether both identify the same version of one file.
    public func isSame(as other: FileIdentity) -> Bool { self == other }

    /// Whether both are probably the same content of one file. Ignores the ctime, which changes when the file is renamed, and the device
    /// number, which may change at a restart.
    public func hasSameContent(as other: FileIdentity) -> Bool {
        inode == other.inode && size == other.size && modified == other.modified
    }

    /// The five numbers, separated by spaces, as stored in the database.
    public var description: String { "\(device) \(inode) \(size) \(modified) \(changed)" }

    /// Parses the five numbers of `description`; `nil` for any other text.
    public init?(_ text: some StringProtocol) {
        let parts = text.utf8.split(separator: 0x20, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        guard parts.count == 5, let device = UInt64(parts[0]), let inode = UInt64(parts[1]), let size = Int64(parts[2]),
            let modified = Int64(parts[3]), let changed = Int64(parts[4])
        else { return nil }
        self.init(device: device, inode: inode, size: size, modified: modified, changed: changed)
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
        let (seconds, isOver) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isMore) = seconds.addingReportingOverflow(Int64(time.tv_nsec))
        return isOver || isMore ? (time.tv_sec < 0 ? .min : .max) : sum
    }
}
