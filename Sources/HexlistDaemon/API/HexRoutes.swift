import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistStore
import Hummingbird

struct HexRoutes: Sendable {
    let api: APIContext

    /// Maximum number of ids, and maximum number of ranges of ids, in a request.
    private static let idsOfRequest = 10_000
    private static let rangesOfRequest = 1_000

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/hexes", use: list)
        router.patch("/v1/hexes", use: patch)
        router.delete("/v1/hexes") { request, _ in
            let texts = try APIQuery(request, allowing: ["id"]).texts("id")
            let ids = texts.compactMap { Int64($0) }
            guard !ids.isEmpty, ids.count == texts.count else {
                throw HexlistError(.badRequest, "`id` takes ids, as lists print them.")
            }
            return try await delete(.ids(ids))
        }
        router.post("/v1/hexes/delete") { request, _ in
            let isTrial = try APIQuery(request, allowing: ["dryRun"]).flag("dryRun")
            let hexes: HexSelection = try await RequestInput.requiredShape(request)
            return try await isTrial ? deletion(hexes) : delete(hexes)
        }
        router.post("/v1/hexes/accept") { request, _ in
            _ = try APIQuery(request)
            return try await accept(try await RequestInput.requiredShape(request))
        }
        router.get("/v1/hexes/:id") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await shape(of: try RequestInput.id(context)))
        }
        router.patch("/v1/hexes/:id") { request, context in
            _ = try APIQuery(request)
            let id = try RequestInput.id(context)
            let wanted: UnreadPatch = try await RequestInput.requiredShape(request)
            guard wanted.hexes == nil, wanted.links == nil else {
                throw HexlistError(.badRequest, "The path names the hex: leave out hexes in the body.")
            }
            _ = try await mark(.ids([id]), unread: wanted.unread)
            return APIReply.json(try await shape(of: id))
        }
        router.delete("/v1/hexes/:id") { request, context in
            _ = try APIQuery(request)
            return try await delete(.ids([try RequestInput.id(context)]))
        }
    }

    private func list(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["location", "unread", "from", "limit", "after", "files"])
        var filter = HexFilter(location: try query.choice("location", HexLocation.inbox), unread: try query.flag("unread"))
        if let from = try query.text("from") { filter.peer = try await api.sender(from) }
        let (limit, cursor, wanted, countsFiles) = (try query.limit(), try query.hexCursor(), filter, try query.flag("files"))
        let (page, files, dead, sharing) = try await api.store.read { reader in
            let page = try reader.hexPage(wanted, limit: limit, after: cursor)
            let ids = page.items.map(\.id)
            return (
                page, try countsFiles ? reader.fileTotals(of: page.items) : [:], try reader.deadLinks(of: ids),
                try wanted.location == .mine ? reader.sharing(of: ids) : [:]
            )
        }
        let labels = await api.labels(page.items)
        let owners = await api.node.peers.labels(of: sharing.values.compactMap(\.owner))
        return APIReply.page(page.items, next: page.next, cursor: \.cursor) { hex in
            var shape = HexJSON(hex, labels)
            (shape.files, shape.fileBytes) = (files[hex.id]?.count, files[hex.id]?.bytes)
            shape.deadLinks = dead[hex.id]?.count
            shape.shared = sharing[hex.id].map { HexSharingJSON($0, owners) }
            return shape
        }
    }

    private func patch(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: UnreadPatch = try await RequestInput.requiredShape(request)
        if let links = wanted.links {
            guard links.count <= Self.idsOfRequest else {
                throw HexlistError(
                    .badRequest, "\(links.count) links are too many for one request; the maximum is \(Self.idsOfRequest).",
                    hint: "Split them.")
            }
            let positions = links.map { LinkPosition(hex: $0.hex, position: Int(clamping: $0.number - 1)) }
            return APIReply.json(ChangeCountJSON(changed: try await api.store.markLinks(positions, unread: wanted.unread)))
        }
        guard let hexes = wanted.hexes else {
            throw HexlistError(.badRequest, "Name some hexes with `ids`, `ranges` or `from`, all of the inbox with `all`, or `links`.")
        }
        if case .list = hexes, wanted.unread { throw HexlistError(.badRequest, "A whole list can be marked read, but not unread.") }
        return try await mark(hexes, unread: wanted.unread)
    }

    /// Marks hexes read or unread. Hexes that arrive during the request are not marked.
    private func mark(_ hexes: HexSelection, unread: Bool) async throws -> Response {
        try await change(hexes, .read(!unread))
    }

    private func delete(_ hexes: HexSelection) async throws -> Response {
        try await change(hexes, .delete)
    }

    /// Accepts held hexes. Hexes named by id are accepted in the given order, those of ranges and lists in the order of arrival.
    private func accept(_ hexes: HexSelection) async throws -> Response {
        try await change(hexes, .accept)
    }

    // MARK: Changes of several hexes

    /// Applies a change to several hexes. Hexes named by id are changed in one transaction, all or none; ranges and lists in several
    /// transactions. Marking a list as read affects only its unread hexes.
    private func change(_ hexes: HexSelection, _ change: HexChange) async throws -> Response {
        let now = Timestamp.now.milliseconds
        var changed = 0
        for part in try await parts(of: hexes, for: change) {
            switch part {
            case .ids(let ids): changed += try await api.store.change(ids, change, at: now)
            case .group(let group, let start): changed += try await api.store.change(group, from: start, change, at: now)
            }
        }
        return APIReply.json(ChangeCountJSON(changed: changed))
    }

    /// Counts the hexes and links that a deletion would delete, without deleting them.
    private func deletion(_ hexes: HexSelection) async throws -> Response {
        var found = DeletionCounts()
        for part in try await parts(of: hexes, for: .delete) {
            found += try await api.store.read { reader in
                switch part {
                case .ids(let ids): try reader.deletion(of: ids)
                case .group(let group, let start): try reader.deletion(of: group, from: start)
                }
            }
        }
        return APIReply.json(
            ChangeCountJSON(
                changed: found.hexes, links: found.links, hexesInside: found.hexesInside, linksInside: found.linksInside))
    }

    /// A part of a selection of hexes, which one call of the store changes.
    private enum SelectionPart: Sendable {
        case ids([Int64])
        case group(HexSet, from: HexCursor? = nil)
    }

    private func parts(of hexes: HexSelection, for change: HexChange) async throws -> [SelectionPart] {
        switch hexes {
        case .ids(let ids, let ranges):
            try Self.check(ids, ranges)
            // A range may end above the newest id. It is cut at that id, so that hexes that arrive during the request are excluded.
            let newest = ranges.isEmpty ? 0 : try await api.store.read { try $0.newestHex() }
            // Ranges include received hexes only. Hexes of My Hexlist are changed only if their ids are named.
            let positions: [HexLocation] = change.requiredLocation.map { [$0] } ?? [.inbox, .held]
            return (ids.isEmpty ? [] : [.ids(ids)])
                + ranges.filter { $0.lowerBound <= newest }.flatMap { range in
                    positions.map { .group(.ids(range.clamped(to: range.lowerBound...newest), in: $0)) }
                }
        case .list(let from, let location, let newest):
            let location: HexLocation = try location.map { try APIQuery.choice($0, of: "location") } ?? change.requiredLocation ?? .inbox
            guard change.requiredLocation == nil || change.requiredLocation == location else {
                throw HexlistError(.badRequest, "Only hexes in `held` can be accepted.")
            }
            let peer: PeerID? = if let from { try await api.sender(from) } else { nil }
            var start: HexCursor?
            if let newest {
                guard let number = try await api.store.read({ try $0.number(of: newest, in: location) }) else {
                    throw HexlistError(.badRequest, "Hex \(newest) is not in the inbox.")
                }
                // My Hexlist is not ordered by age, so a range is used.
                guard location != .mine else { return newest > 0 ? [.group(.ids(1...newest, in: location, of: peer))] : [] }
                start = HexCursor(number: number + 1)
            }
            guard change == .accept else {
                return [.group(.list(HexFilter(location: location, unread: change != .delete, peer: peer)), from: start)]
            }
            // Hexes are accepted in the order of arrival, by ascending id, so a range is used: a list would be in descending order.
            let last = if let newest { newest } else { try await api.store.read { try $0.newestHex() } }
            return last > 0 ? [.group(.ids(1...last, in: location, of: peer))] : []
        }
    }

    /// - Parameter isChanged: whether the request changed the hex, which is then not indexed again before the reply.
    func shape(of id: Int64, isChanged: Bool = false) async throws -> HexJSON {
        let found = try await api.store.readWithIndex(indexesFirst: !isChanged) { reader in
            try reader.hex(id).map { hex in
                let dead = try reader.deadLinks(of: [id] + hex.childIDs)
                return (
                    hex, try reader.earlierLinks(of: hex), try reader.readLinks(of: hex.summary), dead, try reader.mineLinkIDs(of: id),
                    try hex.summary.location == .mine ? MineSharing(hex, reader) : nil
                )
            }
        }
        guard let (detail, earlier, read, dead, mine, sharing) = found else { throw HexlistError.noHex(id) }
        var shape = HexJSON(detail, await api.labels([detail.summary]), openSchemes: api.openSchemes)
        if !read.isEmpty { shape.addRead(read) }
        if !dead.isEmpty { shape.addDead(dead) }
        if !earlier.isEmpty { shape.addEarlier(earlier) }
        if let sharing { await shape.add(sharing, api) }
        if let mine, mine.ids.count == shape.links?.count {
            shape.version = mine.version
            shape.node = mine.hex.description
            for (index, id) in mine.ids.enumerated() { shape.links?[index].node = id.description }
        }
        return shape
    }

    static func check(_ ids: [Int64], _ ranges: [ClosedRange<Int64>]) throws(HexlistError) {
        guard ids.count <= idsOfRequest else {
            throw HexlistError(
                .badRequest, "\(ids.count) ids are too many for one request; the maximum is \(idsOfRequest).",
                hint: "Split them, or name a range.")
        }
        guard ranges.count <= rangesOfRequest else {
            throw HexlistError(
                .badRequest, "\(ranges.count) ranges are too many for one request; the maximum is \(rangesOfRequest).", hint: "Split them.")
        }
    }
}

extension HexJSON {
    /// - Parameter labels: display names of the peers that hexes claim as their senders.
    init(_ summary: HexSummary, _ labels: [PeerID: PeerDisplayName]) {
        let claimed = PeerID(summary.senderUUID).flatMap { $0 == summary.peer ? nil : labels[$0] }
        self.init(
            id: summary.id, location: summary.location.rawValue, senderUUID: summary.senderUUID, senderName: summary.senderName,
            senderAlias: claimed?.alias, peerUUID: summary.peer, tag: summary.peerLabel.map(PeerSummary.init),
            description: summary.description, subject: summary.subject,
            color: summary.color, linkCount: summary.linkCount, unread: summary.unread,
            receivedAt: Timestamp(milliseconds: summary.receivedAt), messageID: summary.messageID, parent: summary.parent,
            hexesInside: summary.hexesInside == 0 ? nil : summary.hexesInside,
            linksInside: summary.hexesInside == 0 ? nil : summary.linksInside)
    }

    /// Makes the JSON with links, unknown members and inner hexes.
    /// - Parameter schemes: schemes of links that may be opened.
    init(_ detail: HexDetail, _ labels: [PeerID: PeerDisplayName], openSchemes schemes: [String]) {
        self.init(detail.summary, labels)
        let content = detail.content
        let annotations = content.annotations(content.extra)
        tags = annotations.tags.isEmpty ? nil : annotations.tags
        note = annotations.note.isEmpty ? nil : annotations.note
        links = Self.links(content.links[...], of: content, openSchemes: schemes)
        extra = JSONValue { $0.keptMembers(of: content) }
        children = Self.children(content.children(of: nil), of: detail, openSchemes: schemes)
    }

    private static func links(_ links: ArraySlice<LinkContent>, of content: HexContent, openSchemes schemes: [String]) -> [LinkJSON] {
        links.map {
            LinkJSON(
                url: content.string($0.url), linkDescription: content.string($0.linkDescription), service: content.string($0.service),
                annotations: content.annotations($0.extra), openSchemes: schemes)
        }
    }

    /// Makes the JSON of a range of the inner hexes of a hex. Recursive, bounded by `ProtocolLimits.levels`.
    private static func children(_ range: Range<Int>, of detail: HexDetail, openSchemes schemes: [String]) -> [InnerHexJSON]? {
        guard !range.isEmpty else { return nil }
        let content = detail.content
        return range.map { index in
            let child = content.children[index]
            let links = links(content.links(of: index), of: content, openSchemes: schemes)
            let description = content.string(child.hexDescription)
            let annotations = content.annotations(child.extra)
            return InnerHexJSON(
                id: detail.childIDs[index], senderUUID: content.string(child.senderUUID), senderName: content.string(child.senderName),
                description: description,
                subject: HexSubject.of(
                    description: description, linkDescription: links.first?.linkDescription ?? "", url: links.first?.url ?? ""),
                color: content.string(child.hexColor), tags: annotations.tags.isEmpty ? nil : annotations.tags,
                note: annotations.note.isEmpty ? nil : annotations.note, links: links,
                children: children(child.children, of: detail, openSchemes: schemes))
        }
    }
}
