import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistWire
import Hummingbird

/// `/v1/mine`: adds, edits, moves and restores hexes of My Hexlist. `/v1/hexes` lists and deletes them.
struct MyHexlistRoutes: Sendable {
    let api: APIContext

    /// Maximum number of hexes that one request copies to My Hexlist.
    private static let idsOfRequest = 1_000

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/mine", use: make)
        router.post("/v1/mine/save", use: save)
        router.post("/v1/mine/check", use: check)
        router.post("/v1/mine/tidy", use: tidy)
        router.patch("/v1/mine/:id", use: edit)
        router.post("/v1/mine/:id/move", use: move)
        router.get("/v1/mine/bin", use: bin)
        router.post("/v1/mine/bin/:id/restore") { request, context in
            _ = try APIQuery(request)
            return try await shape(of: api.store.restoreMine(try RequestInput.id(context), at: now))
        }
        router.delete("/v1/mine/bin") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(ChangeCountJSON(changed: try await api.store.emptyTrash().hexes))
        }
        router.get("/v1/mine/log", use: log)
        router.post("/v1/mine/undo", use: undo)
        router.get("/v1/mine/trash", use: trash)
        router.delete("/v1/mine/trash") { request, _ in
            let isTrial = try APIQuery(request, allowing: ["dryRun"]).flag("dryRun")
            guard isTrial else {
                let removed = try await api.store.emptyTrash()
                return APIReply.json(ChangeCountJSON(changed: removed.hexes + removed.links))
            }
            let count = try await api.store.read { try $0.trashCount() }
            return APIReply.json(ChangeCountJSON(changed: count.hexes + count.links, links: count.links))
        }
        router.post("/v1/mine/restore", use: restore)
    }

    /// Merges duplicates, or with `dryRun` only reports them.
    private func tidy(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let isTrial = try APIQuery(request, allowing: ["dryRun"]).flag("dryRun")
        let wanted: MineTidyRequest = try await RequestInput.shape(request) ?? MineTidyRequest()
        let includesHexes = !(wanted.linksOnly ?? false)
        let result =
            try await isTrial
            ? api.store.read { try $0.mineDuplicates(in: wanted.hex, includingHexes: includesHexes) }
            : api.store.mergeMineDuplicates(in: wanted.hex, includingHexes: includesHexes, at: now)
        return APIReply.json(
            MineTidyResult(
                hexes: result.hexes, links: result.links, different: result.different,
                items: result.items.map {
                    MineTidyItem(hex: $0.hex, subject: $0.subject, others: $0.others.isEmpty ? nil : $0.others, links: $0.links)
                },
                changes: result.changes.isEmpty ? nil : result.changes))
    }

    // MARK: - Change log and trash

    /// Lists the change log, newest first.
    private func log(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["hex", "since", "from", "limit", "after"])
        let (limit, cursor) = (try query.limit(), try query.cursor())
        let (hex, since) = (try query.number("hex", 1...Int64.max), try query.time("since")?.milliseconds)
        var source: MyHexlistChange.Source?
        if let from = try query.text("from") { source = try await self.source(from) }
        let page = try await api.store.read { [source] in
            try $0.mineChanges(limit: limit, before: cursor, hex: hex, since: since, from: source)
        }
        let labels = await api.node.peers.labels(of: page.items.compactMap(\.author))
        return APIReply.page(page.items, next: page.next, cursor: \.number) { change in
            MineChangeJSON(
                number: change.number, at: Timestamp(milliseconds: change.at), hexes: MineChangeCounts(change.hexes),
                links: MineChangeCounts(change.links), hex: change.hex, subject: change.subject, others: change.others,
                by: change.author, tag: change.author.flatMap { labels[$0] }.map { PeerSummary($0) }, joined: change.kind == .joined,
                undo: change.kind == .undo, undoneBy: change.undoneBy, undoable: change.isUndoable,
                values: change.values.map { MineChangedValue(link: $0.link, name: $0.name, before: $0.before, after: $0.after) })
        }
    }

    /// Returns the machine that the parameter `from` of the change log names: a peer, or `here`, the name or the UUID of this machine.
    private func source(_ text: String) async throws -> MyHexlistChange.Source {
        guard !text.utf8.elementsEqual("here".utf8), !api.node.id.begins(with: text) else { return .here }
        do {
            guard let peer = try await api.sender(text), peer != api.node.id else { return .here }
            return .machine(peer)
        } catch let error as HexlistError where error.code == .notFound {
            guard NormalizedName(text)?.isKey(of: await api.node.status().name) ?? false else { throw error }
            return .here
        }
    }

    private func undo(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: MineUndoRequest = try await RequestInput.requiredShape(request)
        guard (1...Self.idsOfRequest).contains(wanted.changes.count) else {
            throw HexlistError(.badRequest, "One request undoes 1 to \(Self.idsOfRequest) changes; \(wanted.changes.count) were named.")
        }
        let undone = try await api.store.undoMine(wanted.changes, at: now)
        return APIReply.json(
            MineUndoResult(
                number: undone.number, undone: undone.undone, hexes: MineChangeCounts(undone.hexes), links: MineChangeCounts(undone.links),
                kept: undone.kept.map { MineKeptValue(change: $0.change, hex: $0.hex, link: $0.link, name: $0.name) },
                keptCount: undone.keptCount))
    }

    /// Lists the trash: the deleted hexes and links that can be restored.
    private func trash(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["limit", "after"])
        let (limit, cursor) = (try query.limit(), try query.cursor())
        let page = try await api.store.read { try $0.trashPage(limit: limit, before: cursor) }
        return APIReply.page(page.items, next: page.next, cursor: \.number) { item in
            TrashedItemJSON(
                number: item.number, hex: item.hex, subject: item.subject, url: item.url, parent: item.container,
                parentSubject: item.containerSubject, hexesInside: item.hexesInside, links: item.links,
                deletedAt: Timestamp(milliseconds: item.deletedAt), ends: Self.end(item))
        }
    }

    private static func end(_ item: TrashedItem) -> Timestamp {
        Timestamp(milliseconds: item.deletedAt + Int64(TrashedItem.days) * 86_400_000)
    }

    private func restore(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: MineRestoreRequest = try await RequestInput.requiredShape(request)
        guard wanted.numbers == nil || wanted.hexes == nil else {
            throw HexlistError(.badRequest, "`numbers` and `hexes` do not go together.")
        }
        let count = wanted.numbers?.count ?? wanted.hexes?.count ?? 0
        guard (1...Self.idsOfRequest).contains(count) else {
            throw HexlistError(.badRequest, "One request restores 1 to \(Self.idsOfRequest) hexes and links; \(count) were named.")
        }
        let restored: [RestoredItem] =
            if let hexes = wanted.hexes {
                try await api.store.restoreMine(hexes: hexes, at: now)
            } else {
                try await api.store.restoreMine(numbers: wanted.numbers ?? [], at: now)
            }
        return APIReply.json(
            MineRestoreResult(
                restored: restored.map {
                    RestoredItemJSON(
                        number: $0.number, hex: $0.hex, link: $0.link.map { $0 + 1 }, parent: $0.container, hexRestored: $0.isHexRestored,
                        around: $0.around, otherHexes: $0.otherHexes, otherLinks: $0.otherLinks)
                }))
    }

    /// Lists the deleted hexes that can be restored, without single links.
    private func bin(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["limit", "after"])
        let (limit, cursor) = (try query.limit(), try query.cursor())
        let page = try await api.store.read { try $0.trashPage(limit: limit, before: cursor, hexesOnly: true) }
        return APIReply.page(page.items, next: page.next, cursor: \.number) { item in
            BinnedHexJSON(
                id: item.hex ?? 0, subject: item.subject, hexesInside: item.hexesInside, links: item.links,
                deletedAt: Timestamp(milliseconds: item.deletedAt), ends: Self.end(item))
        }
    }

    private func make(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let parent = try APIQuery(request, allowing: ["in"]).number("in", 1...Int64.max)
        let body = try await RequestInput.body(request)
        guard !body.isEmpty else { throw HexlistError(.badRequest, "The request has no hex.", hint: "Give one as JSON.") }
        var decoder = WrapperDecoder()
        switch decoder.decodeHex(body, acceptsLocalNames: true) {
        case .success(let hex):
            let wantsTitles = api.configuration.readsTitles
            let id = try await api.store.addMine(hex.content, into: parent, wantsTitles: wantsTitles, at: now)
            if wantsTitles { api.titles.send() }
            return try await shape(of: id)
        case .failure(let refusal):
            throw HexlistError(.badRequest, "The hex cannot be kept: \(refusal.message) (\(refusal.code.rawValue)).")
        }
    }

    private func save(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: MineCopyRequest = try await RequestInput.requiredShape(request)
        guard (1...Self.idsOfRequest).contains(wanted.ids.count) else {
            throw HexlistError(.badRequest, "One request saves 1 to \(Self.idsOfRequest) hexes; \(wanted.ids.count) were named.")
        }
        let saved = try await api.store.saveMine(wanted.ids, into: wanted.parent, at: now)
        return APIReply.json(MineSaveResult(ids: saved.ids, hexes: saved.hexes, links: saved.links))
    }

    /// Checks whether the pages of links exist. The reply is a stream of progress lines that ends with the result.
    private func check(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: MineCheckRequest = try await RequestInput.shape(request) ?? MineCheckRequest()
        guard let slot = api.checks.acquireIfFree() else {
            throw HexlistError(.alreadyRunning, "Another check of links is running.", hint: "Try again when it is done.")
        }
        return LinkCheckReply(api: api, source: try await MineLinkSource(wanted, in: api.store), slot: slot).response
    }

    private func edit(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let id = try RequestInput.id(context)
        let wanted: MineEditRequest = try await RequestInput.requiredShape(request)
        let wantsTitles = api.configuration.readsTitles
        if let edit = try MineNodeEdit(wanted) {
            let change = try await api.store.editMine(id, by: edit, wantsTitles: wantsTitles, at: now)
            if wantsTitles { api.titles.send() }
            return try await shape(of: id, after: change)
        }
        let links = try wanted.links?.map { link in
            if let from = link.from, from < 1 { throw HexlistError(.badRequest, "`from` counts links from 1.") }
            return MineEdit.Link(
                from: link.from.map { $0 - 1 }, url: link.url, linkDescription: link.linkDescription, service: link.service,
                tags: link.tags, wantsTitle: link.title ?? true)
        }
        let change = try await api.store.editMine(
            id,
            MineEdit(
                description: wanted.description, color: wanted.color, tags: wanted.tags, links: links, version: wanted.version),
            wantsTitles: wantsTitles, at: now)
        if wantsTitles { api.titles.send() }
        return try await shape(of: id, after: change)
    }

    private func move(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let id = try RequestInput.id(context)
        let wanted: MineMoveRequest = try await RequestInput.requiredShape(request)
        guard wanted.before == nil || wanted.after == nil else {
            throw HexlistError(.badRequest, "`before` and `after` do not go together.")
        }
        let sibling = wanted.before.map(SiblingPosition.before) ?? wanted.after.map(SiblingPosition.after)
        let change = try await api.store.moveMine(id, into: wanted.parent, beside: sibling, at: now)
        return try await shape(of: id, after: change)
    }

    /// - Parameter change: the number of the change that was made; `nil` if nothing was changed.
    private func shape(of id: Int64, after change: Int64? = nil) async throws -> Response {
        var shape = try await HexRoutes(api: api).shape(of: id, isChanged: true)
        shape.change = change
        return APIReply.json(shape)
    }

    private var now: Int64 { Timestamp.now.milliseconds }
}

extension MineChangeCounts {
    /// - Returns: `nil` if nothing changed.
    fileprivate init?(_ counts: MyHexlistChange.Counts) {
        guard !counts.isEmpty else { return nil }
        self.init(
            added: counts.added, deleted: counts.deleted, restored: counts.restored, moved: counts.moved, changed: counts.changed)
    }
}
