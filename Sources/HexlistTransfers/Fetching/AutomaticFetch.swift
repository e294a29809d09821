import HexlistAPI
import HexlistEventLoop
import HexlistFiles
public import HexlistModel
import HexlistStore
import Logging
import NIOCore

/// Examines the new hexes of a peer whose files are fetched automatically. Blocks; runs on the file threads.
///
/// Only files that the proven sender itself offers are fetched, into the pool, and only if all files of the hex fit within the peer's daily
/// limit. At most half of the pool is reserved for automatic fetches; the rest is for files that the user requests. The position of the
/// last examined hex is stored in one transaction with the transfers, so a restart neither repeats nor skips a hex.
struct AutomaticFetch: Sendable {
    let store: HexStore
    let pool: FilePool
    let own: PeerID
    let peer: PeerID
    /// Maximum size of the pool in bytes.
    let most: Int64
    /// The current time, in milliseconds since 1970.
    let now: Int64

    /// Maximum number of hexes that one call of `look` examines.
    private static let hexes = 32

    /// - Returns: the transfers that were added, and whether more hexes are left to examine.
    func look() throws -> (added: [TransferRow], hasMore: Bool) {
        guard let allowance = try store.readSync({ try $0.fetchAllowance(of: peer, at: now) }) else { return ([], false) }
        let hexes = try store.readSync { try $0.inboxHexes(of: peer, after: allowance.after, limit: Self.hexes) }
        var added: [TransferRow] = []
        var today = allowance.today
        for hex in hexes {
            let rows = try wanted(hex.id)
            let bytes = rows.map(\.counted).clampedSum
            let isAllowed = bytes <= allowance.limit - min(today, allowance.limit)
            let taken = try add(isAllowed ? rows : [], place: hex.place)
            today += taken.reduce(0) { $0 + $1.counted }
            added += taken
        }
        return (added, hexes.count == Self.hexes)
    }

    /// Returns a row for each file of the hex that its sender offers, except files that are being fetched or are in the pool.
    private func wanted(_ id: Int64) throws -> [TransferRow] {
        guard let hex = try store.readSync({ try $0.hex(id) }) else { return [] }
        var plan = FetchPlan(own: own)
        plan.addAll(of: hex.content)
        guard !plan.files.isEmpty else { return [] }
        var known = try store.readSync { try $0.digests(from: peer) }
        return plan.files.compactMap { file in
            guard case .offer = file.link.target, file.link.peer == peer, let digest = file.sha256, let size = file.size,
                known.insert(digest).inserted
            else { return nil }
            var row = TransferRow(
                hex: id, url: file.link.description, peer: peer, folder: pool.folder(.pool).folder(of: digest), mask: 0o177,
                name: file.name,
                part: String(BootNonce.random.description), size: size, sha256: digest, modified: file.modified, createdAt: now)
            row.place = .pool
            return row
        }
    }

    /// Adds the transfers after making room for them. Adds none of them if there is no room.
    private func add(_ rows: [TransferRow], place: Int64) throws -> [TransferRow] {
        for _ in 0..<2 where !rows.isEmpty {
            do {
                return try store.addAutomaticTransfers(rows, of: peer, upTo: place, at: now, poolBytes: most)
            } catch let full as PoolFull {
                guard try pool.makeRoom(full) else { break }
            } catch let error as HexlistError where error.code == .badRequest {
                break  // too many transfers wait, or half of the pool is reserved
            }
        }
        return try store.addAutomaticTransfers([], of: peer, upTo: place, at: now, poolBytes: most)
    }
}

extension FileTransfers {
    /// Examines the new hexes of a peer for files to fetch automatically, if the peer has a limit for that. Only one scan runs per peer at
    /// a time.
    public nonisolated func fetchAutomatically(from peer: PeerID) { assumeIsolated { $0.lookForFiles(of: peer) } }

    private func lookForFiles(of peer: PeerID) {
        guard !isStopping, fetching.beginLook(peer) else { return }
        let look = AutomaticFetch(
            store: store, pool: pool, own: id, peer: peer, most: configuration.cacheBytes, now: clocks.milliseconds)
        transport.fileThreads.run(on: eventLoop) { try look.look() }.whenComplete { [weak self] result in
            guard let self else { return }
            assumeIsolated { transfers in
                var isMore = transfers.fetching.endLook(peer)
                switch result {
                case .success(let (added, hasMore)):
                    if !added.isEmpty { transfers.fetching.add(added, force: false, transfers) }
                    isMore = isMore || hasMore
                case .failure(let error):
                    if !transfers.isStopping {
                        transfers.logger.warning("files could not be fetched automatically", metadata: ["error": "\(error)"])
                    }
                    return
                }
                if isMore { transfers.lookForFiles(of: peer) }
            }
        }
    }
}
