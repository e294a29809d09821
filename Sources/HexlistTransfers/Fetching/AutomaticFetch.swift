import HexlistAPI
import HexlistEventLoop
import HexlistFiles
public import HexlistModel
import HexlistStore
import Logging
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Determines the files of a peer's new hexes that are fetched automatically. Blocks, so it runs on the file threads.
///
/// Only files that the sender of the hex itself offers are fetched, into the cache or the download folder. All files of the hex have to fit
/// into the peer's daily limit; otherwise none is fetched. Automatic fetches may reserve at most half of the cache, so that the user's own
/// requests have space. The last examined hex is recorded in the same transaction as the transfers, so a restart neither repeats nor skips
/// a hex.
struct AutomaticFetch: Sendable {
    let store: HexStore
    let pool: FilePool
    let own: PeerID
    let peer: PeerID
    /// Maximum size of the cache in bytes.
    let maximumPoolBytes: Int64
    /// The absolute path of the download folder; `nil` if there is none.
    let downloads: String?
    /// The current time, in milliseconds since 1970.
    let now: Int64

    /// Maximum number of hexes that one call of `examineNextHexes` examines.
    private static let hexes = 32

    /// Examines the next hexes of the peer, in the order of their arrival.
    /// - Returns: the transfers that were added, and whether there may be more hexes to examine.
    func examineNextHexes() throws -> (added: [TransferRow], hasMore: Bool) {
        guard let allowance = try store.readSync({ try $0.fetchAllowance(of: peer, at: now) }) else { return ([], false) }
        let hexes = try store.readSync { try $0.inboxHexes(of: peer, after: allowance.after, limit: Self.hexes) }
        var added: [TransferRow] = []
        var today = allowance.today
        for hex in hexes {
            let (rows, folders) = try wanted(hex.id, allowance.target)
            let bytes = rows.map(\.counted).clampedSum
            let isAllowed = bytes <= allowance.limit - min(today, allowance.limit)
            let taken = try add(isAllowed ? rows : [], folders, place: hex.place)
            today += taken.reduce(0) { $0 + $1.counted }
            added += taken
        }
        return (added, hexes.count == Self.hexes)
    }

    /// Returns a row for each file of the hex that its sender offers. Files that are already being fetched, or exist at the destination,
    /// are left out.
    /// - Returns: the rows, and the folders to create in the download folder.
    private func wanted(_ id: Int64, _ target: AutomaticFetchDestination) throws -> (rows: [TransferRow], folders: [[String]]) {
        guard let hex = try store.readSync({ try $0.hex(id) }) else { return ([], []) }
        var plan = FetchPlan(own: own)
        plan.addAll(of: hex.content)
        guard !plan.files.isEmpty else { return ([], []) }
        if target == .downloads, let downloads { return (downloaded(plan, of: id, to: downloads), plan.folders) }
        var known = try store.readSync { try $0.digests(from: peer) }
        let rows = plan.files.compactMap { file -> TransferRow? in
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
        return (rows, [])
    }

    /// Returns a row for each file of the hex that its sender offers and that is not in the download folder.
    private func downloaded(_ plan: FetchPlan, of hex: Int64, to downloads: String) -> [TransferRow] {
        plan.files.compactMap { file in
            guard case .offer = file.link.target, file.link.peer == peer, let size = file.size else { return nil }
            let row = TransferRow(
                hex: hex, url: file.link.description, peer: peer,
                folder: ([downloads] + plan.path(of: file.folder)).joined(separator: "/"), mask: Self.mask, name: file.name,
                part: String(BootNonce.random.description), size: size, sha256: file.sha256, modified: file.modified, createdAt: now)
            return row.isThere ? nil : row
        }
    }

    /// The umask for files and folders in the download folder.
    private static let mask = 0o022

    /// Creates the download folder, and folders inside it.
    /// - Returns: `false` if one of the inner folders cannot be created, for example because a file has its name.
    /// - Throws: `HexlistError` if the download folder itself cannot be created. The hex is then examined again later.
    private func makeFolders(_ folders: [[String]], in downloads: String) throws -> Bool {
        _ = mkdir(downloads, 0o755)
        try FolderCreator.make([], in: downloads, mask: Self.mask)
        do {
            try FolderCreator.make(folders, in: downloads, mask: Self.mask)
            return true
        } catch is HexlistError {
            return false
        }
    }

    /// Adds transfers to the store, and records that the hex was examined. If there is no space for all of them, none is added.
    private func add(_ rows: [TransferRow], _ folders: [[String]], place: Int64) throws -> [TransferRow] {
        var rows = rows
        if let downloads, rows.contains(where: { $0.place == nil }), try !makeFolders(folders, in: downloads) { rows = [] }
        for _ in 0..<2 where !rows.isEmpty {
            do {
                return try store.addAutomaticTransfers(rows, of: peer, upTo: place, at: now, poolBytes: maximumPoolBytes)
            } catch let full as PoolFull {
                guard try pool.makeRoom(full) else { break }
            } catch let error as HexlistError where error.code == .badRequest {
                break  // too many transfers are queued, or half of the cache is reserved
            }
        }
        return try store.addAutomaticTransfers([], of: peer, upTo: place, at: now, poolBytes: maximumPoolBytes)
    }
}

extension FileTransfers {
    /// Examines the new hexes of a peer, and starts transfers of their files, if files of this peer are to be fetched automatically. At
    /// most one examination runs per peer.
    public nonisolated func fetchAutomatically(from peer: PeerID) { assumeIsolated { $0.lookForFiles(of: peer) } }

    private func lookForFiles(of peer: PeerID) {
        guard !isStopping, fetching.beginScan(peer) else { return }
        let fetch = AutomaticFetch(
            store: store, pool: pool, own: id, peer: peer, maximumPoolBytes: configuration.cacheBytes,
            downloads: configuration.downloads, now: clocks.milliseconds)
        transport.fileThreads.run(on: eventLoop) { try fetch.examineNextHexes() }.whenComplete { [weak self] result in
            guard let self else { return }
            assumeIsolated { transfers in
                var isMore = transfers.fetching.endScan(peer)
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
