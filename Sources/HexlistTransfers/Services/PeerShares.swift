import HexlistAPI
import HexlistFiles
import HexlistModel

/// The shares of a trusted peer that this machine may read, as a service.
struct PeerShares: ContentService {
    let transfers: FileTransfers
    let peer: PeerID
    let view: ServiceView

    /// Creates the service of a peer; `nil` if the peer's UUID is not known.
    init?(_ peer: PeerView, _ transfers: FileTransfers) {
        guard let uuid = peer.uuid else { return nil }
        (self.transfers, self.peer) = (transfers, uuid)
        let obstacle = peer.state == .verified ? nil : HexlistError(.gone, peer.why ?? "It is away.")
        view = ServiceView(name: peer.alias ?? peer.name, kind: .peer, uuid: uuid, obstacle: obstacle)
    }

    func page(of path: SharePath, by order: FolderSortOrder, after: String?, limit: Int) async throws -> FilePage {
        guard let share = path.names.first else {
            return try ShareList.page(try await list(.shares, by: .name, after: nil), by: order, after: after, limit: limit)
        }
        if let after, !FolderCursor.isCursor(after, order) { throw ShareList.noCursor }
        let target = FileRequestTarget.entry(share: share, path: path.withoutFirst, .list(order, after: after))
        do {
            var listing = try await list(target, by: order, after: after)
            listing.cut(to: limit, by: order)
            return FilePage(listing)
        } catch let error as HexlistError where error.code == .notFound {
            // The path may lead to a file, which cannot be listed.
            guard try await entry(at: path).kind.known == .folder else { throw ShareFault.isFile(path) }
            throw error
        }
    }

    func entry(at path: SharePath) async throws -> FileEntry {
        guard let share = path.names.first else { return FileEntry(name: "", kind: .folder) }
        let listing = try await list(.entry(share: share, path: path.withoutFirst, .about), by: .name, after: nil)
        guard let entry = listing.entries.first else { throw Self.notUnderstood }
        return FileEntry(entry, named: path.names.last)
    }

    func links(to paths: [SharePath], _ wish: LinkOptions, each: @escaping @Sendable (ServiceLinkResult) -> Void) async throws {
        try await ShareList.links(self, peer, paths, wish, each)
    }

    func source(of path: SharePath) throws -> FetchSource {
        guard let share = path.names.first else {
            throw HexlistError(.badRequest, "Which share of the peer? Give its name, or a path in it.")
        }
        return .peer(FileLink(peer: peer, target: .share(name: share, path: path.withoutFirst)))
    }

    private func list(_ target: FileRequestTarget, by order: FolderSortOrder, after: String?) async throws -> FolderListing {
        let bytes: [UInt8]
        do {
            bytes = try await transfers.list(peer, target)
        } catch var error as HexlistError where error.code == .notFound {
            error.hint = "`hexlist files \(peer.shortID):` lists what \(TerminalText.clean(view.name, columns: 60)) shares."
            throw error
        }
        guard let listing = FolderListing(jsonBytes: bytes, by: order, after: after) else { throw Self.notUnderstood }
        return listing
    }

    private static let notUnderstood = HexlistError(.refused, "The peer's list is invalid.")
}
