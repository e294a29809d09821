import HexlistModel
import HexlistStore
import HexlistSystem
import HexlistWire

/// The hexes of My Hexlist in a file.
struct MyHexlistBackup: Sendable {
    /// `nil` if My Hexlist is empty.
    var file: NewFile?
    /// The number of the last row in the file.
    var sequence: Int64

    var path: String? { file?.path }
}

extension HexStore {
    /// Writes the hexes of My Hexlist to a new file, as one HexJM per line. Without hexes there is no file. Blocks.
    /// - Parameter diskReserve: bytes of the file system to leave free.
    fileprivate func writeMine(to path: String, for peer: PeerID, diskReserve: Int64) throws -> MyHexlistBackup {
        var backup = MyHexlistBackup(sequence: 0)
        do {
            try readSync { reader in
                guard let sequence = try reader.localListState(with: peer).lists.first(where: \.isCollection)?.sequence else {
                    throw ListFault.outdated
                }
                backup.sequence = sequence
                guard try reader.mineSize().hexes > 0 else { return }
                let file = try NewFile(path: path)
                backup.file = file
                var after: HexCursor?
                repeat {
                    if diskReserve > 0, let free = file.freeBytes, free < diskReserve { throw ListFault.diskFull }
                    let page = try reader.hexIDs(.list(HexFilter(location: .mine)), after: after)
                    for id in page.items {
                        guard let hex = try reader.hex(id) else { continue }
                        try file.append(HexEncoder.encode(hex.content) + [UInt8(ascii: "\n")])
                    }
                    after = page.next
                } while after != nil
            }
            try backup.file?.synchronize()
        } catch {
            backup.file?.remove()
            throw error
        }
        return backup
    }
}

extension Node {
    /// Writes the hexes of My Hexlist to a new file `before-join-TIME.ndjson` beside the store, unless it is empty, and calls `body`. The file
    /// is deleted if that fails.
    func withBackup<Result: Sendable>(for peer: PeerID, _ body: (MyHexlistBackup) async throws -> Result) async throws -> Result {
        let (store, reserve) = (store, diskReserve)
        let folder = store.path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        let path = "\(folder)/before-join-\(clocks.milliseconds).ndjson"
        let backup = try await transfers.onFileThread { try store.writeMine(to: path, for: peer, diskReserve: reserve) }
        do {
            return try await body(backup)
        } catch {
            backup.file?.remove()
            throw error
        }
    }
}
