import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// Identifies a file and its version without reading it: device, inode, size, time of the last change of its content (`mtime`), and time of
/// the last change of content or metadata (`ctime`). Programs can set a file's mtime, but not its ctime.
public struct FileIdentity: Hashable, Sendable, CustomStringConvertible {
    public var device: UInt64
    public var inode: UInt64
    /// Size in bytes.
    public var size: Int64
    /// Time of the last change of content (mtime), in nanoseconds since 1970, clamped to `Int64`. The same unit applies to `changed`, the
    /// ctime.
    public var modified: Int64
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

    /// Whether both identify the same, unchanged file.
    public func isSame(as other: FileIdentity) -> Bool { self == other }

    /// Whether both are probably the same file with the same content. Ignores the ctime, which a rename changes, and the device number,
    /// which a restart can change.
    public func hasSameContent(as other: FileIdentity) -> Bool {
        inode == other.inode && size == other.size && modified == other.modified
    }

    /// The five numbers, separated by spaces, for a column of the store.
    public var description: String { "\(device) \(inode) \(size) \(modified) \(changed)" }

    /// Parses `description`; `nil` for any other text.
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
