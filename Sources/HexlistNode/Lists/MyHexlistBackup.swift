import HexlistModel
import HexlistStore
import HexlistSystem
import HexlistWire

/// The hexes of My Hexlist in a file.
struct MyHexlistBackup: Sendable {
    /// `nil` if My Hexlist is empty.
    var file: NewFile?
    var path: String?
    /// The number of the last row in the file.
    var sequence: Int64
}

extension HexStore {
    /// Writes the hexes of My Hexlist to a new file, as one HexJM per line. Without hexes there is no file. Blocks.
    /// - Parameter diskReserve: bytes of the file system to leave free.
    fileprivate func writeMine(to path: String, for peer: PeerID, diskReserve: Int64) throws -> MyHexlistBackup {
        try readSync { reader in
            guard let sequence = try reader.listStanding(with: peer)?.sequence else { throw ListFault.outdated }
            guard try reader.mineSize().hexes > 0 else { return MyHexlistBackup(sequence: sequence) }
            let file = try NewFile(path: path)
            do {
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
                try file.synchronize()
            } catch {
                file.remove()
                throw error
            }
            return MyHexlistBackup(file: file, path: path, sequence: sequence)
        }
    }
}

extension Node {
    /// Writes the hexes of My Hexlist to a new file `before-join-TIME.ndjson` beside the store, unless it is empty.
    func writeBackup(for peer: PeerID) async throws -> MyHexlistBackup {
        let (store, reserve) = (store, diskReserve)
        let folder = store.path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        let path = "\(folder)/before-join-\(clocks.milliseconds).ndjson"
        return try await transfers.onFileThread { try store.writeMine(to: path, for: peer, diskReserve: reserve) }
    }
}
