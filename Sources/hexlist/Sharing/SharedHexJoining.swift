import HexlistAPI
import HexlistClient
import HexlistModel

/// The part of `hexlist mine join` after an offer was accepted: waits for the contents.
struct SharedHexJoining {
    let client: HexlistClient
    let offer: SharedHexOffer
    let joined: SharedHexView

    /// Time to wait for the contents of an online peer.
    private static let patience = Duration.seconds(10)

    /// Returns the shared hex, as soon as it has as many hexes and links as offered, or after 10 s. Does not wait if the peer is away.
    func result() async throws -> SharedHexView {
        guard !offer.further, !isComplete(joined), joined.peers.contains(where: { $0.uuid == offer.uuid && $0.online }) else {
            return joined
        }
        return try await withThrowingTaskGroup(of: SharedHexView?.self) { group in
            group.addTask {
                try await Task.sleep(for: Self.patience)
                return nil
            }
            group.addTask {
                var last: SharedHexView?
                try await client.watchSharedHexes { lists in
                    last = found(in: lists)
                    return last.map { !isComplete($0) } ?? false
                }
                return last
            }
            defer { group.cancelAll() }
            if let complete = try await group.next() ?? nil { return complete }
            return found(in: try await client.sharedHexes()) ?? joined
        }
    }

    private func found(in lists: SharedHexes) -> SharedHexView? {
        lists.shared.first { PeerTextComparison.areEqual($0.list, joined.list) }
    }

    private func isComplete(_ shared: SharedHexView) -> Bool {
        shared.hex != nil && shared.hexes + shared.links >= offer.hexes + offer.links
    }
}
