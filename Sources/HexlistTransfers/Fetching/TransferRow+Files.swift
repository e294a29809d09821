import HexlistFiles
import HexlistStore
import HexlistTransport

extension PartFile.Specification {
    /// Creates the specification of the partial file for a row; `nil` if the size is not known yet.
    init?(_ row: TransferRow, _ minimumFree: Int64) {
        guard let size = row.size else { return nil }
        let (modified, isOver) = (row.modified ?? 0).multipliedReportingOverflow(by: 1_000_000)
        self.init(
            name: FileName(row.name), id: row.part, size: size, digest: row.sha256,
            modified: row.modified == nil || isOver ? nil : modified,
            umask: UInt16(clamping: row.mask), minimumFree: minimumFree)
        hidesName = RemoteLink(row.url) != nil
    }
}

extension PartFile.Placement {
    /// Device and inode of the file, in the form of `TransferRow.fileInode`.
    var fileInode: String { "\(device) \(inode)" }

    /// Reads the placement from a row; `nil` if none is recorded.
    init?(_ row: TransferRow) {
        let parts = (row.fileInode ?? "").utf8.split(separator: 0x20).map { String(decoding: $0, as: UTF8.self) }
        guard parts.count == 2, let device = UInt64(parts[0]), let inode = UInt64(parts[1]), let name = row.finalName else { return nil }
        self.init(name: name, device: device, inode: inode)
    }
}

extension TransferRow {
    /// Whether the link announces at most `FileLimits.sharedBytes`, and no placement is recorded.
    var isSmallAndNew: Bool { fileInode == nil && size.map { $0 <= FileLimits.sharedBytes } ?? false }
}
