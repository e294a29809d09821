import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistStore
import Hummingbird

struct SearchRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/search", use: search)
        router.get("/v1/links", use: links)
    }

    private func search(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let names = ["text", "location", "unread", "from", "since", "until", "best", "limit", "after"]
        let query = try APIQuery(request, allowing: names)
        let wanted = try await filter(query, text: try query.text("text") ?? "")
        let (limit, cursor, isBest) = (try query.limit(), try query.cursor(), try best(query))
        let page = try await api.store.readWithIndex {
            isBest ? try $0.best(wanted, limit: limit) : try $0.search(wanted, limit: limit, after: cursor)
        }
        let labels = await api.labels(page.hits.map(\.summary))
        return APIReply.page(page.hits, next: page.next, behind: page.behind, cursor: { $0.summary.id }) { hit in
            var shape = HexJSON(hit.summary, labels)
            shape.match = hit.match.map(SearchMatchJSON.init)
            shape.top = hit.top.map { OutermostHexJSON(id: $0.id, subject: $0.subject) }
            return shape
        }
    }

    /// Returns the filter of a search: the terms of its text, with the peers of `from:` terms, and the query parameters.
    private func filter(_ query: APIQuery, text: String) async throws -> SearchFilter {
        var filter = try await api.searchFilter(text)
        if try query.flag("unread") {
            guard filter.unread != false else { throw HexlistError(.badRequest, "`unread` does not go with `is:read`.") }
            filter.unread = true
        }
        if try query.text("location") != nil { filter.location = try query.choice("location", HexLocation.inbox) }
        filter.since = try query.time("since")?.milliseconds
        filter.until = try query.time("until")?.milliseconds
        if let from = try query.text("from") { filter.peer = try await api.sender(from) }
        return filter
    }

    private func best(_ query: APIQuery) throws -> Bool {
        let isBest = try query.flag("best")
        guard try !isBest || query.cursor() == nil else {
            throw HexlistError(.badRequest, "The best have one page: `after` does not go with `best`.")
        }
        return isBest
    }

    private func links(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let names = ["text", "location", "unread", "from", "since", "until", "best", "unique", "limit", "after"]
        let query = try APIQuery(request, allowing: names)
        if let text = try query.text("text") { return try await foundLinks(query, text: text) }
        for name in ["since", "until", "best"] {
            if try query.text(name) != nil { throw HexlistError(.badRequest, "`\(name)` needs `text`.") }
        }
        var filter = HexFilter(location: try query.choice("location", HexLocation.inbox), unread: try query.flag("unread"))
        if let from = try query.text("from") { filter.peer = try await api.sender(from) }
        let (limit, cursor, isUnique, wanted) = (try query.limit(), try query.hexCursor(), try query.flag("unique"), filter)
        let (page, behind) = try await api.store.readWithIndex {
            (try $0.linkPage(wanted, unique: isUnique, limit: limit, after: cursor), try $0.counts().unindexed)
        }
        let schemes = api.openSchemes
        return APIReply.page(page.items, next: page.next, behind: isUnique ? behind : nil, cursor: \.cursor) { link in
            ListedLinkJSON(link, openSchemes: schemes)
        }
    }

    /// Returns a page of the links that match a search.
    private func foundLinks(_ query: APIQuery, text: String) async throws -> Response {
        guard try !query.flag("unique") else { throw HexlistError(.badRequest, "`unique` does not go with `text`.") }
        let wanted = try await filter(query, text: text)
        let (limit, cursor, isBest) = (try query.limit(), try query.cursor(), try best(query))
        let page = try await api.store.readWithIndex {
            isBest ? try $0.bestLinks(wanted, limit: limit) : try $0.searchLinks(wanted, limit: limit, after: cursor)
        }
        let schemes = api.openSchemes
        return APIReply.page(page.hits, next: page.next, behind: page.behind, cursor: \.link.number) { hit in
            var shape = ListedLinkJSON(hit.link, openSchemes: schemes)
            shape.location = hit.link.hex.location.rawValue
            shape.folders = hit.folders
            shape.match = hit.match.map(SearchMatchJSON.init)
            return shape
        }
    }
}

extension ListedLinkJSON {
    /// - Parameter schemes: schemes of links that may be opened.
    init(_ link: ListedLink, openSchemes schemes: [String]) {
        var shape = LinkJSON(
            url: String(decoding: link.url, as: UTF8.self), linkDescription: String(decoding: link.description, as: UTF8.self),
            service: String(decoding: link.service, as: UTF8.self), annotations: link.annotations, openSchemes: schemes)
        shape.dead = link.dead.map(DeadLinkJSON.init)
        self.init(
            shape, hex: link.id, number: link.position + 1, unread: link.unread,
            receivedAt: Timestamp(milliseconds: link.hex.receivedAt), peer: link.hex.peer, tag: link.hex.peerLabel.map(PeerSummary.init))
    }
}

extension SearchMatchJSON {
    init(_ match: SearchExcerpt) {
        self.init(
            field: match.field.rawValue, link: match.link.map { $0 + 1 }, before: match.before, found: match.found, after: match.after)
    }
}

extension APIContext {
    /// Parses the text of a search, and resolves the peers of its `from:` terms.
    func searchFilter(_ text: String) async throws -> SearchFilter {
        let expression = try SearchExpression(parsing: text)
        var filter = SearchFilter(expression)
        for case .from(let name) in expression.terms { filter.senders[name] = try await sender(name) }
        return filter
    }

    /// Returns the UUID of the sender that a PEER argument names. A whole UUID is accepted even if no such peer is known, because the store
    /// may have hexes of a forgotten peer.
    func sender(_ text: String) async throws -> PeerID? {
        try await node.peers.sender(named: text)
    }

    /// Returns the display names of the peers that hexes claim as their senders.
    func labels(_ hexes: [HexSummary]) async -> [PeerID: PeerDisplayName] {
        await node.peers.labels(of: hexes.compactMap { PeerID($0.senderUUID) })
    }
}

extension LinkJSON {
    /// - Parameter schemes: schemes of links that may be opened.
    init(url: String, linkDescription: String, service: String, annotations: Annotations, openSchemes schemes: [String]) {
        self.init(
            url: url, linkDescription: linkDescription, service: service, tags: annotations.tags.isEmpty ? nil : annotations.tags,
            note: annotations.note.isEmpty ? nil : annotations.note)
        do throws(LinkFault) {
            opens = try LinkTarget(url, schemes: schemes).summary
        } catch {
            notOpened = error.description
        }
    }
}

extension HexJSON {
    /// Sets the earlier hex with an equal address for each link, also in inner hexes.
    /// - Parameter earlier: the earlier hexes by URL.
    mutating func addEarlier(_ earlier: [[UInt8]: EarlierLink]) {
        links = links?.map { $0.with(earlier) }
        children = children?.map { $0.with(earlier) }
    }
}

extension DeadLinkJSON {
    init(_ dead: DeadLink) { self.init(status: dead.status, since: Timestamp(milliseconds: dead.since)) }
}

extension HexJSON {
    /// Sets the marks of dead links, also in inner hexes.
    mutating func addDead(_ dead: DeadLinks) {
        links = links?.marked(dead[id])
        children = children?.map { $0.marked(dead) }
    }
}

extension InnerHexJSON {
    /// Returns the hex with marks of its dead links. Recursive, bounded by `ProtocolLimits.levels`.
    fileprivate func marked(_ dead: DeadLinks) -> InnerHexJSON {
        var shape = self
        shape.links = links.marked(dead[id])
        shape.children = children?.map { $0.marked(dead) }
        return shape
    }
}

extension [LinkJSON] {
    fileprivate func marked(_ dead: [[UInt8]: DeadLink]?) -> [LinkJSON] {
        guard let dead else { return self }
        return map { link in
            var link = link
            link.dead = dead[[UInt8](link.url.utf8)].map(DeadLinkJSON.init)
            return link
        }
    }
}

extension HexJSON {
    /// Sets the marks of links that were read although their hex is unread.
    mutating func addRead(_ read: Set<LinkPosition>) {
        links = links?.marked(read, in: id)
        children = children?.map { $0.marked(read) }
    }
}

extension InnerHexJSON {
    /// Returns the hex with marks of its read links. Recursive, bounded by `ProtocolLimits.levels`.
    fileprivate func marked(_ read: Set<LinkPosition>) -> InnerHexJSON {
        var shape = self
        shape.links = links.marked(read, in: id)
        shape.children = children?.map { $0.marked(read) }
        return shape
    }

    /// Returns the hex with the earlier hexes of its links. Recursive, bounded by `ProtocolLimits.levels`.
    fileprivate func with(_ earlier: [[UInt8]: EarlierLink]) -> InnerHexJSON {
        var shape = self
        shape.links = links.map { $0.with(earlier) }
        shape.children = children?.map { $0.with(earlier) }
        return shape
    }
}

extension [LinkJSON] {
    fileprivate func marked(_ read: Set<LinkPosition>, in hex: Int64) -> [LinkJSON] {
        var links = self
        for position in indices where read.contains(LinkPosition(hex: hex, position: position)) { links[position].unread = false }
        return links
    }
}

extension LinkJSON {
    fileprivate func with(_ earlier: [[UInt8]: EarlierLink]) -> LinkJSON {
        var shape = self
        shape.before = earlier[Array(url.utf8)].map { link in
            EarlierLinkJSON(
                hex: link.hex, receivedAt: Timestamp(milliseconds: link.receivedAt), peer: link.peer?.uuid.flatMap { PeerID($0) },
                tag: link.peer.map(PeerSummary.init))
        }
        return shape
    }
}
