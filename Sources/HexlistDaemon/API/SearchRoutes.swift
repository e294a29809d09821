import HexlistAPI
import HexlistModel
import HexlistStore
import Hummingbird

/// `/v1/search` and `/v1/links`
struct SearchRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/search", use: search)
        router.get("/v1/links", use: links)
    }

    private func search(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let names = ["text", "location", "unread", "from", "since", "until", "best", "limit", "after"]
        let query = try APIQuery(request, allowing: names)
        var filter = SearchFilter(try SearchTerm.parse(try query.text("text") ?? ""), unread: try query.flag("unread"))
        if try query.text("location") != nil { filter.location = try query.choice("location", HexLocation.inbox) }
        filter.since = try query.time("since")?.milliseconds
        filter.until = try query.time("until")?.milliseconds
        if let from = try query.text("from") { filter.peer = try await api.sender(from) }
        let (limit, cursor, isBest, wanted) = (try query.limit(), try query.cursor(), try query.flag("best"), filter)
        guard !isBest || cursor == nil else { throw HexlistError(.badRequest, "The best have one page: `after` does not go with `best`.") }
        let page = try await api.store.readWithIndex {
            isBest ? try $0.best(wanted, limit: limit) : try $0.search(wanted, limit: limit, after: cursor)
        }
        let labels = await api.labels(page.hits.map(\.summary))
        return APIReply.page(page.hits, next: page.next, behind: page.behind, cursor: { $0.summary.id }) { hit in
            var shape = HexJSON(hit.summary, labels)
            shape.match = hit.match.map {
                MatchJSON(
                    field: $0.field.rawValue, link: $0.link.map { $0 + 1 }, before: $0.before, found: $0.found, after: $0.after)
            }
            shape.top = hit.top.map { TopJSON(id: $0.id, subject: $0.subject) }
            return shape
        }
    }

    private func links(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["location", "unread", "from", "unique", "limit", "after"])
        var filter = HexFilter(location: try query.choice("location", HexLocation.inbox), unread: try query.flag("unread"))
        if let from = try query.text("from") { filter.peer = try await api.sender(from) }
        let (limit, cursor, isUnique, wanted) = (try query.limit(), try query.cursor(), try query.flag("unique"), filter)
        let (page, behind) = try await api.store.readWithIndex {
            (try $0.linkPage(wanted, unique: isUnique, limit: limit, after: cursor), try $0.counts().unindexed)
        }
        let schemes = api.openSchemes
        return APIReply.page(page.items, next: page.next, behind: isUnique ? behind : nil, cursor: \.cursor) { link in
            ListedLinkJSON(
                LinkJSON(
                    url: String(decoding: link.url, as: UTF8.self), linkDescription: String(decoding: link.description, as: UTF8.self),
                    service: String(decoding: link.service, as: UTF8.self), openSchemes: schemes),
                hex: link.id, number: link.position + 1, unread: link.hex.unread,
                receivedAt: Timestamp(milliseconds: link.hex.receivedAt), peer: link.hex.peer, tag: link.hex.peerLabel.map(PeerSummary.init)
            )
        }
    }
}

extension APIContext {
    /// Returns the UUID of the sender named by a PEER argument. A whole UUID need not belong to a known peer: hexes of a forgotten peer may
    /// be left.
    func sender(_ text: String) async throws -> PeerID? {
        if let id = PeerID(text) { return id }
        return try await node.peers.resolve(text).uuid
    }

    /// Returns the display names of the peers that hexes claim as their senders.
    func labels(_ hexes: [HexSummary]) async -> [PeerID: PeerDisplayName] {
        await node.peers.labels(of: hexes.compactMap { PeerID($0.senderUUID) })
    }
}

extension LinkJSON {
    /// - Parameter schemes: schemes of links that may be opened.
    init(url: String, linkDescription: String, service: String, openSchemes schemes: [String]) {
        self.init(url: url, linkDescription: linkDescription, service: service)
        do throws(LinkFault) {
            opens = try LinkTarget(url, schemes: schemes).summary
        } catch {
            notOpened = error.description
        }
    }
}

extension HexJSON {
    /// Adds to each link, also in the hexes inside, the earlier hex with the same URL. `earlier` has these hexes by URL.
    mutating func addEarlier(_ earlier: [[UInt8]: EarlierLink]) {
        links = links?.map { $0.with(earlier) }
        children = children?.map { $0.with(earlier) }
    }
}

extension ChildJSON {
    /// Adds earlier hexes to the links. Recursive, bounded by `ProtocolLimits.levels`.
    fileprivate func with(_ earlier: [[UInt8]: EarlierLink]) -> ChildJSON {
        var shape = self
        shape.links = links.map { $0.with(earlier) }
        shape.children = children?.map { $0.with(earlier) }
        return shape
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
