public import HexlistAPI
import HexlistFiles
public import HexlistModel
import HexlistStore

/// What has files that can be listed and pointed to, as a person names it.
extension Node {
    /// The name of the service of this machine's own shares.
    public static let ownService = "shares"

    /// Own shares first, then trusted peers as `peers` lists them, then remotes.
    public func services() async throws -> [any ContentService] {
        let views = try await peers()
        let friends = views.filter { $0.state != .ghost && $0.trust == .trusted }.compactMap { PeerShares($0, self) }
        return [OwnShares(node: self)] + friends + (try await remotes?.all() ?? [])
    }

    /// A service as a person named it: `shares`, a PEER, or the name of a remote.
    /// - Throws: `HexlistError`: `notFound`; `ambiguous` where several have the name; `badRequest` for a peer that is not trusted.
    public func service(_ name: String) async throws -> any ContentService {
        var found: [any ContentService] = []
        if PeerText.areEqual(name, Node.ownService) { found.append(OwnShares(node: self)) }
        found += (try await remotes?.all() ?? []).filter { PeerText.areEqual($0.view.name, name) }
        let peer: PeerView
        do throws(HexlistError) {
            await known.reload(self)
            peer = try PeerReference(name).resolve(among: peerViews())
        } catch {
            if found.count == 1, error.code == .notFound { return found[0] }
            guard error.code == .notFound else { throw error }
            throw HexlistError(
                .notFound, "There is no service \"\(TerminalText.clean(name, columns: 60))\".", hint: "`hexlist services` lists them.")
        }
        guard found.isEmpty else {
            let kinds = found.map { $0.view.kind.known == .own ? "this machine's shares" : "a remote of rclone" }
            throw HexlistError(
                .ambiguous, "\"\(TerminalText.clean(name, columns: 60))\" is \(kinds.joined(separator: ", ")), and a peer.",
                hint: "Name the peer by its UUID, or give it another alias with `hexlist peer rename`.")
        }
        guard peer.trust == .trusted, let shares = PeerShares(peer, self) else {
            throw HexlistError(
                .badRequest, "\(peer.label.text()) is not trusted: files go between peers that trust each other.",
                hint: "`hexlist pair` makes two peers trust each other.")
        }
        return shares
    }

    /// Asks a peer for a list.
    fileprivate func list(_ peer: PeerID, _ target: FileRequestTarget) async throws -> [UInt8] {
        guard known.isTrusted(peer) else { throw HexlistError(.gone, "The peer is not trusted any more.") }
        return try await fetching.lists.ask(peer, target, self)
    }

    fileprivate func onFileThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await transport.fileThreads.run(on: eventLoop, work).get()
    }
}

/// The shares of this machine, as its user sees them; the first folder has one folder for each.
struct OwnShares: ContentService {
    let node: Node

    var view: ServiceView { ServiceView(name: Node.ownService, kind: .own) }

    func page(of path: SharePath, by order: FileOrder, after: String?, limit: Int) async throws -> FilePage {
        guard let share = path.names.first else { return try ShareList.page(await list(), by: order, after: after, limit: limit) }
        if let after, !FolderPlace.isCursor(after, order) { throw ShareList.noCursor }
        let row = try await row(share)
        return try await node.onFileThread {
            switch try ShareFault.told(path, { () throws(FileFault) in try ShareRoot(row).open(path.withoutFirst) }) {
            case .file: throw ShareFault.isFile(path)
            case .folder(let folder):
                let page = try ShareFault.told(path) { () throws(FileFault) in try folder.page(by: order, after: after, limit: limit) }
                return FilePage(page.listing)
            }
        }
    }

    func entry(at path: SharePath) async throws -> FileEntry {
        guard let share = path.names.first else { return FileEntry(name: "", kind: .folder) }
        let row = try await row(share)
        return try await node.onFileThread {
            FileEntry(
                try ShareFault.told(path) { () throws(FileFault) in try ShareRoot(row).about(path.withoutFirst) }, named: path.names.last)
        }
    }

    func links(to paths: [SharePath], _ wish: LinkWish, each: @escaping @Sendable (LinkReply) -> Void) async throws {
        try await ShareList.links(self, node.id, paths, wish, each)
    }

    func source(of path: SharePath) throws -> FetchSource {
        throw HexlistError(.badRequest, "The files of this machine's own shares are here already.")
    }

    private func row(_ share: String) async throws -> ShareRow {
        guard let row = try await node.store.read({ try $0.share(share) }) else {
            throw HexlistError(
                .notFound, "There is no share \(TerminalText.clean(share, columns: 80)).", hint: "`hexlist share` lists the shares.")
        }
        return row
    }

    private func list() async throws -> FolderListing {
        let rows = try await node.store.read { try $0.shares() }
        return try await node.onFileThread {
            guard case .list(let list) = SharedAnswer.shares(rows) else { return FolderListing() }
            return list
        }
    }
}

/// What a trusted peer shares with this machine.
struct PeerShares: ContentService {
    let node: Node
    let peer: PeerID
    let view: ServiceView

    /// `nil` for an announcement without a UUID.
    init?(_ peer: PeerView, _ node: Node) {
        guard let uuid = peer.uuid else { return nil }
        (self.node, self.peer) = (node, uuid)
        let obstacle = peer.state == .verified ? nil : HexlistError(.gone, peer.why ?? "It is away.")
        view = ServiceView(name: peer.alias ?? peer.name, kind: .peer, uuid: uuid, obstacle: obstacle)
    }

    func page(of path: SharePath, by order: FileOrder, after: String?, limit: Int) async throws -> FilePage {
        guard let share = path.names.first else {
            return try ShareList.page(try await list(.shares, by: .name, after: nil), by: order, after: after, limit: limit)
        }
        if let after, !FolderPlace.isCursor(after, order) { throw ShareList.noCursor }
        let target = FileRequestTarget.entry(share: share, path: path.withoutFirst, .list(order, after: after))
        do {
            var listing = try await list(target, by: order, after: after)
            listing.cut(to: limit, by: order)
            return FilePage(listing)
        } catch let error as HexlistError where error.code == .notFound {
            // A file has no list.
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

    func links(to paths: [SharePath], _ wish: LinkWish, each: @escaping @Sendable (LinkReply) -> Void) async throws {
        try await ShareList.links(self, peer, paths, wish, each)
    }

    func source(of path: SharePath) throws -> FetchSource {
        guard let share = path.names.first else { throw HexlistError(.badRequest, "Name a share of the peer, or something in it.") }
        return .peer(FileLink(peer: peer, target: .share(name: share, path: path.withoutFirst)))
    }

    private func list(_ target: FileRequestTarget, by order: FileOrder, after: String?) async throws -> FolderListing {
        let bytes: [UInt8]
        do {
            bytes = try await node.list(peer, target)
        } catch var error as HexlistError where error.code == .notFound {
            error.hint = "`hexlist files \(peer.shortID):` lists what \(TerminalText.clean(view.name, columns: 60)) shares."
            throw error
        }
        guard let listing = FolderListing(jsonBytes: bytes, by: order, after: after) else { throw Self.notUnderstood }
        return listing
    }

    private static let notUnderstood = HexlistError(.refused, "The peer's list is not understood.")
}

/// What own shares and those of peers have in common.
private enum ShareList {
    static let noCursor = HexlistError(.badRequest, "`after` takes what a list in the same order gave as `next`.")

    /// A page of a list of shares.
    static func page(_ list: FolderListing, by order: FileOrder, after: String?, limit: Int) throws(HexlistError) -> FilePage {
        if let after, !FolderPlace.isCursor(after, order) { throw noCursor }
        return FilePage(list.page(by: order, after: after, limit: limit))
    }

    /// Links to what is there, four at once.
    static func links(
        _ service: some ContentService, _ peer: PeerID, _ paths: [SharePath], _ wish: LinkWish,
        _ each: @escaping @Sendable (LinkReply) -> Void
    ) async throws {
        guard wish.expire == nil, !wish.revokes else {
            throw HexlistError(
                .notSupported, "A link into a share is good as long as the share is.",
                hint: "`hexlist share rm` ends a share of this machine.")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, path) in paths.enumerated() {
                if index >= 4 { try await group.next() }
                group.addTask {
                    do {
                        guard let share = path.names.first else {
                            throw HexlistError(.badRequest, "Name a share, or something in it.")
                        }
                        _ = try await service.entry(at: path)
                        let link = FileLink(peer: peer, target: .share(name: share, path: path.withoutFirst))
                        each(LinkReply(path: path.description, url: link.description))
                    } catch let error as HexlistError {
                        each(LinkReply(path: path.description, error: error))
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

private enum ShareFault {
    static func isFile(_ path: SharePath) -> HexlistError {
        HexlistError(.badRequest, "\(TerminalText.clean(path.description, columns: 200)) is a file.", hint: "`hexlist fetch` fetches it.")
    }

    static func told<Value>(_ path: SharePath, _ body: () throws(FileFault) -> Value) throws(HexlistError) -> Value {
        do throws(FileFault) {
            return try body()
        } catch {
            guard case .system(let fault) = error else {
                throw HexlistError(.notFound, "\(TerminalText.clean(path.description, columns: 200)) is not there, or may not be read.")
            }
            throw HexlistError(.internal, "\(TerminalText.clean(path.description, columns: 200)) cannot be read: \(fault).")
        }
    }
}

extension FilePage {
    fileprivate init(_ listing: FolderListing) {
        self.init(
            items: listing.entries.map { FileEntry($0, named: $0.name) }, next: listing.next, leftOut: listing.unlisted + listing.leftOut)
    }
}

extension FileEntry {
    fileprivate init(_ entry: FolderListing.Entry, named name: String?) {
        self.init(
            name: name ?? "", kind: entry.kind == .folder ? .folder : .file, size: entry.size,
            modified: entry.modified.map { Timestamp(milliseconds: $0) }, mediaType: entry.mediaType)
    }
}
