import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistStore

#if canImport(Glibc)
    import Glibc
#endif

/// Finds files on this machine that are copies of the files to which the links of a hex lead. Links with the same URL lead to the same
/// file.
struct LocalCopies: Sendable {
    private let wanted: [FetchPlan.File]
    /// For each link, the index in `wanted`; `nil` if the link does not lead to a file. The links of the outermost hex come first, then
    /// those of its inner hexes.
    private let places: [Int?]
    private let store: HexStore
    private let pool: FilePool
    private let copies: OfferCopies
    private let own: PeerID
    private let protected: ProtectedFolders

    init(of content: HexContent, store: HexStore, pool: FilePool, copies: OfferCopies, own: PeerID, protecting folders: [String]) {
        (self.store, self.pool, self.copies, self.own) = (store, pool, copies, own)
        protected = ProtectedFolders(folders)
        // No machine's files are skipped, so links to files of this machine are included.
        var plan = FetchPlan(own: nil)
        var places: [Int?] = []
        var known: [[UInt8]: Int] = [:]
        var wanted: [FetchPlan.File] = []
        for link in content.links + content.childLinks {
            let before = plan.files.count
            plan.add(link, of: content, in: nil)
            guard plan.files.count > before, let file = plan.files.last else {
                places.append(nil)
                continue
            }
            let key = Array(file.link.description.utf8)
            if known[key] == nil {
                known[key] = wanted.count
                wanted.append(file)
            }
            places.append(known[key])
        }
        (self.wanted, self.places) = (wanted, places)
    }

    var isEmpty: Bool { wanted.isEmpty }

    /// Returns the files on this machine, in the order of `wanted`. A missing file has an empty path. `nil` if all are missing. Blocks.
    func plan() throws -> OfferPlan? {
        let found = try zip(wanted, localFiles()).map { file, found in
            found ?? OfferPlan.Found(path: "", name: file.name, digest: file.sha256, isTemporary: false)
        }
        return found.allSatisfy(\.path.isEmpty) ? nil : try OfferPlan(found)
    }

    /// Returns the file on this machine for each link; `nil` for a link without one. The links of the outermost hex come first, then those
    /// of its inner hexes. Blocks.
    func filesOfLinks() throws -> [OfferPlan.Found?] {
        let files = try localFiles()
        return places.map { $0.flatMap { files[$0] } }
    }

    private func localFiles() throws -> [OfferPlan.Found?] {
        let urls = Set(wanted.map { Array($0.link.description.utf8) })
        let fetched = Dictionary(grouping: try store.readSync { try $0.doneTransfers(of: urls) }) { Array($0.url.utf8) }
        return try wanted.map { try found($0, fetched[Array($0.link.description.utf8)] ?? []) }
    }

    private func found(_ file: FetchPlan.File, _ fetched: [TransferRow]) throws -> OfferPlan.Found? {
        if file.link.peer == own, case .offer(let id, _) = file.link.target,
            let row = try store.readSync({ try $0.offer(id.bytes) })
        {
            return OfferPlan.Found(path: row.path, name: row.name, digest: row.sha256, isTemporary: row.path.hasPrefix(copies.path + "/"))
        }
        for row in fetched {
            guard let name = row.finalName, case let path = HexlistPaths.join(row.folder, name), isSame(path, row),
                (try? protected.check(path)) != nil
            else { continue }
            return OfferPlan.Found(path: path, name: file.name, digest: file.sha256 ?? row.sha256, isTemporary: false)
        }
        guard let digest = file.sha256, let (_, pooled) = pool.open(digest, from: file.link.peer) else { return nil }
        return OfferPlan.Found(path: pool.path(of: pooled), name: file.name, digest: digest, isTemporary: true)
    }

    /// Whether the file that a transfer has saved still exists, with the same device, inode and size.
    private func isSame(_ path: String, _ row: TransferRow) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, Int64(status.st_size) == row.bytes else { return false }
        return PeerTextComparison.areEqual(row.fileInode, "\(status.st_dev) \(status.st_ino)")
    }

    /// Replaces links by links to the offers of this machine.
    /// - Returns: the number of links to files that are not offered.
    func replaceLinks(of content: inout HexContent, _ plan: OfferPlan) -> Int {
        var left = 0
        let rows = plan.foundRows
        for (index, place) in places.enumerated() {
            guard let place else { continue }
            guard let row = rows[place], let link = OfferPlan.link(to: row, own, &content) else {
                left += 1
                continue
            }
            let isOwn = index < content.links.count
            let child = index - content.links.count
            var old = isOwn ? content.links[index] : content.childLinks[child]
            (old.url, old.extra) = (link.url, link.extra)
            if isOwn { content.links[index] = old } else { content.childLinks[child] = old }
        }
        return left
    }
}
