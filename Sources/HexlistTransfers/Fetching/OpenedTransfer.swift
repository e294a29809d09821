import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore

/// The partial file of a transfer, opened to fetch the rest. Blocks; for the threads for files.
enum OpenedTransfer: Sendable {
    /// The length, and the identity of a file that is under its digest.
    case finished(Int64, identity: String?)
    /// - unused: bytes reserved in addition to those of this attempt, for an automatic fetch; else `nil`.
    case part(PartFile, unused: Int64?)
    /// The size is not known before the answer.
    case nothing

    static func open(_ row: TransferRow, _ dependencies: FetchDependencies) throws -> OpenedTransfer {
        let pool = dependencies.pool
        guard let specification = PartFile.Specification(row, dependencies.minimumFree) else { return .nothing }
        if let place = row.place, let digest = row.sha256 { try pool.folder(place).make(digest) }
        if let placement = PartFile.Placement(row),
            try PartFile.recover(folder: row.folder, specification: specification, placement: placement) == .finished
        {
            return .finished(specification.size, identity: row.place == nil ? nil : pool.identity(of: row, name: placement.name))
        }
        let part = try PartFile(folder: row.folder, specification: specification, knownGood: row.bytes)
        guard part.length == 0, specification.size > 0, let digest = row.sha256, let (file, pooled) = pool.open(digest, from: row.peer)
        else {
            return try reserved(part, row, dependencies)
        }
        // The pool has the same bytes from the same peer.
        do throws(FileFault) {
            try part.fill(from: file)
            if part.digest == digest { return .part(part, unused: nil) }
            pool.drop(pooled)
        } catch {
            guard case .changed = error else { throw error }
        }
        part.discard()
        return try reserved(try PartFile(folder: row.folder, specification: specification), row, dependencies)
    }

    /// Reserves the missing bytes of a file that is fetched automatically.
    /// - Throws: `DailyLimitReached`.
    private static func reserved(_ part: PartFile, _ row: TransferRow, _ dependencies: FetchDependencies) throws -> OpenedTransfer {
        guard row.reservedBytes != nil else { return .part(part, unused: nil) }
        let unused = try dependencies.store.reserveFetch(
            row.id, of: row.peer, bytes: part.specification.size - part.length, at: dependencies.clocks.milliseconds)
        guard let unused else { throw DailyLimitReached() }
        return .part(part, unused: unused)
    }
}

/// Thrown if the peer's daily limit for automatic fetches is used up.
struct DailyLimitReached: Error {}
