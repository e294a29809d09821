import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore
import Logging
import NIOCore

/// One look at the new hexes of a peer of which files are fetched without being asked for. Blocks; for the threads for files.
///
/// Only files that the proven sender itself offers are fetched, into the pool, and only if all files of the hex are within the limit. No more
/// than half of the pool is reserved for them; the rest is for files that somebody asks for. The last hex that was looked at is in the store, in
/// one transaction with the transfers, so a restart neither repeats nor forgets one.
struct FetchingByItself: Sendable {
    let store: HexStore
    let pool: FilePool
    let own: PeerID
    let peer: PeerID
    /// The most bytes of the pool.
    let most: Int64
    /// Milliseconds since 1970.
    let now: Int64

    /// Hexes of one look; another one follows where there are more.
    private static let hexes = 32

    /// - Returns: the transfers that were added, and whether there is more to look at.
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

    /// The files of a hex that its sender offers, and that are neither on their way from it nor here because it sent them.
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

    /// Adds transfers, with room made for them; where there is none, none.
    private func add(_ rows: [TransferRow], place: Int64) throws -> [TransferRow] {
        for _ in 0..<2 where !rows.isEmpty {
            do {
                return try store.fetchByItself(rows, of: peer, upTo: place, at: now, poolBytes: most)
            } catch let full as PoolFull {
                guard try pool.makeRoom(full) else { break }
            } catch let error as HexlistError where error.code == .badRequest {
                break  // too many wait, or half of the pool is reserved
            }
        }
        return try store.fetchByItself([], of: peer, upTo: place, at: now, poolBytes: most)
    }
}

extension Node {
    /// Looks whether files of new hexes of a peer are to be fetched by themselves. Never twice at once for a peer.
    func fetchByItself(_ peer: PeerID) {
        guard !isStopping, known[peer]?.fetchLimit != nil, fetching.beginLook(peer) else { return }
        let look = FetchingByItself(
            store: store, pool: pool, own: id, peer: peer, most: Int64(configuration.files.cacheBytes), now: clocks.milliseconds)
        transport.fileThreads.run(on: eventLoop) { try look.look() }.whenComplete { [weak self] result in
            guard let self else { return }
            assumeIsolated { node in
                var isMore = node.fetching.endLook(peer)
                switch result {
                case .success(let (added, hasMore)):
                    if !added.isEmpty { node.fetching.add(added, force: false, node) }
                    isMore = isMore || hasMore
                case .failure(let error):
                    if !node.isStopping { node.logger.warning("files could not be fetched by themselves", metadata: ["error": "\(error)"]) }
                    return
                }
                if isMore { node.fetchByItself(peer) }
            }
        }
    }
}
