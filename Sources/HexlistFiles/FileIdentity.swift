import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// What tells whether a file is still the one it was, without reading it: device, inode, size, and when its content (`mtime`) and anything
/// of it (`ctime`) last changed. Nobody can set a ctime.
public struct FileIdentity: Hashable, Sendable, CustomStringConvertible {
    public var device: UInt64
    public var inode: UInt64
    /// Bytes.
    public var size: Int64
    /// Nanoseconds since 1970, as near as they fit.
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

    /// Whether all of it is the same: the same file, unchanged.
    public func isSame(as other: FileIdentity) -> Bool { self == other }

    /// Whether it is the same file with the same content, as far as one sees without reading it: perhaps renamed, or on a disk that has another
    /// number since a restart.
    public func hasSameContent(as other: FileIdentity) -> Bool {
        inode == other.inode && size == other.size && modified == other.modified
    }

    /// Five numbers, for a column of the store.
    public var description: String { "\(device) \(inode) \(size) \(modified) \(changed)" }

    /// Reads `description`; `nil` for anything else.
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
