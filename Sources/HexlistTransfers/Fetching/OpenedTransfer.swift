import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore

/// The result of preparing the file of a transfer. `open` blocks, so it runs on the file threads.
enum OpenedTransfer: Sendable {
    /// The file is complete already. The values are its length, and its identity if it is in the pool.
    case finished(Int64, identity: String?)
    /// The partial file. `unused`: for an automatic fetch, the number of bytes that remain of its reservation after this attempt; otherwise
    /// `nil`. `isCopy`: whether all bytes were copied from a file of the same peer in the pool.
    case part(PartFile, unused: Int64?, isCopy: Bool = false)
    /// Nothing was opened, because the size of the file is unknown until the peer answers.
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
        guard part.length == 0, let digest = row.sha256, let (file, pooled) = pool.open(digest, from: row.peer) else {
            return try reserved(part, row, dependencies)
        }
        // The pool has the same content from the same peer, which is copied instead of fetched.
        do throws(FileFault) {
            try part.fill(from: file)
            if part.digest == digest { return .part(part, unused: nil, isCopy: true) }
            pool.drop(pooled)
        } catch {
            guard case .changed = error else { throw error }
        }
        part.discard()
        return try reserved(try PartFile(folder: row.folder, specification: specification), row, dependencies)
    }

    /// Takes the missing bytes of an automatic fetch from the peer's daily limit.
    /// - Throws: `DailyLimitReached` if they exceed it.
    private static func reserved(_ part: PartFile, _ row: TransferRow, _ dependencies: FetchDependencies) throws -> OpenedTransfer {
        guard row.reservedBytes != nil else { return .part(part, unused: nil) }
        let unused = try dependencies.store.reserveFetch(
            row.id, of: row.peer, bytes: part.specification.size - part.length, at: dependencies.clocks.milliseconds)
        guard let unused else { throw DailyLimitReached() }
        return .part(part, unused: unused)
    }
}

/// The peer's daily limit for automatic fetches is reached.
struct DailyLimitReached: Error {}
