import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistStore
import Hummingbird

/// `/v1/hexes`
struct HexRoutes: Sendable {
    let api: APIContext

    /// Hexes one request may name, and ranges of them.
    private static let idsOfRequest = 10_000
    private static let rangesOfRequest = 1_000

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/hexes", use: list)
        router.patch("/v1/hexes", use: patch)
        router.delete("/v1/hexes") { request, _ in
            let texts = try APIQuery(request, allowing: ["id"]).texts("id")
            let ids = texts.compactMap { Int64($0) }
            guard !ids.isEmpty, ids.count == texts.count else {
                throw HexlistError(.badRequest, "`id` takes ids, as the lists print them.")
            }
            return try await delete(.ids(ids))
        }
        router.post("/v1/hexes/delete") { request, _ in
            _ = try APIQuery(request)
            return try await delete(try await APIInput.requiredShape(request))
        }
        router.post("/v1/hexes/accept") { request, _ in
            _ = try APIQuery(request)
            return try await accept(try await APIInput.requiredShape(request))
        }
        router.get("/v1/hexes/:id") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await shape(of: try APIInput.id(context)))
        }
        router.patch("/v1/hexes/:id") { request, context in
            _ = try APIQuery(request)
            let id = try APIInput.id(context)
            let wanted: HexPatch = try await APIInput.requiredShape(request)
            guard wanted.hexes == nil else { throw HexlistError(.badRequest, "The path names the hex: name no hexes in the body.") }
            _ = try await mark(.ids([id]), unread: wanted.unread)
            return APIReply.json(try await shape(of: id))
        }
        router.delete("/v1/hexes/:id") { request, context in
            _ = try APIQuery(request)
            return try await delete(.ids([try APIInput.id(context)]))
        }
    }

    private func list(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["location", "unread", "from", "limit", "after"])
        var filter = HexFilter(location: try query.choice("location", HexLocation.inbox), unread: try query.flag("unread"))
        if let from = try query.text("from") { filter.peer = try await sender(from) }
        let (limit, cursor, wanted) = (try query.limit(), try query.cursor(), filter)
        let page = try await api.store.read { try $0.hexPage(wanted, limit: limit, after: cursor) }
        let labels = await labels(page.items)
        return APIReply.page(page.items, next: page.next, cursor: { $0.inboxNumber ?? $0.id }) { HexShape($0, labels) }
    }

    /// Returns the sender that `text` names. A whole UUID is enough: a sender that left may be known by nothing but its hexes.
    private func sender(_ text: String) async throws -> PeerID? {
        if let id = PeerID(text) { return id }
        return try await api.node.resolve(text).uuid
    }

    private func patch(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: HexPatch = try await APIInput.requiredShape(request)
        guard let hexes = wanted.hexes else {
            throw HexlistError(.badRequest, "Name some hexes with `ids`, `ranges` or `from`, or all of the inbox with `all`.")
        }
        if case .list = hexes, wanted.unread { throw HexlistError(.badRequest, "All of a list can be marked read, not unread.") }
        return try await mark(hexes, unread: wanted.unread)
    }

    /// Marks hexes read or unread. Hexes that arrive meanwhile stay unread.
    private func mark(_ hexes: HexSelection, unread: Bool) async throws -> Response {
        try await change(hexes, onlyUnread: true) { try $0.setRead($1, !unread) }
    }

    private func delete(_ hexes: HexSelection) async throws -> Response {
        try await change(hexes, makesRoom: true) { try $0.delete($1, at: Timestamp.now.milliseconds) }
    }

    /// Named ones in the order given, others in that of their arrival (of one peer: of each 1 000 the first).
    private func accept(_ hexes: HexSelection) async throws -> Response {
        let isNamed = if case .ids = hexes { true } else { false }
        return try await change(hexes, in: .held, makesRoom: true) { writer, ids in
            try writer.accept(isNamed ? ids : ids.sorted(), at: Timestamp.now.milliseconds).count
        }
    }

    // MARK: Changes of many

    private typealias Work = @Sendable (StoreWriter, [Int64]) throws -> Int

    /// Named hexes are changed in one transaction, all or none; ranges and lists in as many as it takes, each of a bounded size, so that
    /// what arrives meanwhile is not held up.
    /// - Parameters:
    ///   - place: where all of them have to be; `nil` for anywhere.
    ///   - onlyUnread: whether of a list only what is unread is changed; named hexes and ranges are changed as they are.
    ///   - makesRoom: whether it frees room for hexes that were refused.
    private func change(
        _ hexes: HexSelection, in place: HexLocation? = nil, onlyUnread: Bool = false, makesRoom: Bool = false, _ work: @escaping Work
    ) async throws -> Response {
        var changed = 0
        switch hexes {
        case .ids(let ids, let ranges):
            try Self.check(ids, ranges)
            if !ids.isEmpty {
                changed = try await api.store.write(rows: ids.count) { writer in
                    try Self.checkAll(ids, in: place, among: writer.locations(of: ids))
                    return try work(writer, ids)
                }
                await api.node.storeChanged(makesRoom: makesRoom)
            }
            // Hexes that arrive meanwhile are not meant, however high a range goes.
            let newest = ranges.isEmpty ? 0 : try await api.store.read { try $0.newestHex() }
            for range in ranges where range.lowerBound <= newest {
                changed += try await change(.ids(range.clamped(to: range.lowerBound...newest), in: place), makesRoom, work)
            }
        case .list(let from, let location, let newest):
            let location: HexLocation = try location.map { try APIQuery.choice($0, of: "location") } ?? place ?? .inbox
            guard place == nil || place == location else { throw HexlistError(.badRequest, "What is accepted is `held`.") }
            var filter = HexFilter(location: location, unread: onlyUnread)
            if let from { filter.peer = try await sender(from) }
            var start: Int64?
            if let newest {
                guard let hex = try await api.store.read({ try $0.hex(newest) })?.summary else { throw Self.noHex(newest) }
                // The inbox has an order of its own; other places are in that of ids.
                guard let place = location == .inbox ? hex.inboxNumber : hex.id else {
                    throw HexlistError(.badRequest, "Hex \(newest) is not in the inbox.")
                }
                start = place + 1
            }
            if place == .held, filter.peer == nil {
                // The lowest id first: the order of arrival, which a list has the other way round.
                let last = if let newest { newest } else { try await api.store.read { try $0.newestHex() } }
                if last > 0 { changed = try await change(.ids(1...last, in: .held), makesRoom, work) }
                break
            }
            changed = try await change(.list(filter), from: start, makesRoom, work)
        }
        return APIReply.json(ChangedShape(changed: changed))
    }

    private func change(_ group: HexGroup, from start: Int64? = nil, _ makesRoom: Bool, _ work: @escaping Work) async throws -> Int {
        var changed = 0
        var cursor = start
        repeat {
            let after = cursor
            // The cost counts as that of 1 000 rows, the most a page has, so that few others share the transaction.
            let (count, next) = try await api.store.write(rows: 1_000) { writer in
                let page = try writer.hexIDs(group, after: after)
                return (try work(writer, page.items), page.next)
            }
            changed += count
            cursor = next
            await api.node.storeChanged(makesRoom: makesRoom)
        } while cursor != nil
        return changed
    }

    private func shape(of id: Int64) async throws -> HexShape {
        guard let detail = try await api.store.read({ try $0.hex(id) }) else { throw Self.noHex(id) }
        return HexShape(detail, await labels([detail.summary]), openSchemes: api.openSchemes)
    }

    /// Returns labels of the peers that hexes say they are from.
    private func labels(_ hexes: [HexSummary]) async -> [PeerID: PeerLabel] {
        await api.node.labels(of: hexes.compactMap { PeerID($0.senderUUID) })
    }

    private static func check(_ ids: [Int64], _ ranges: [ClosedRange<Int64>]) throws(HexlistError) {
        guard ids.count <= idsOfRequest else {
            throw HexlistError(
                .badRequest, "\(ids.count) ids are too many for one request; \(idsOfRequest) fit.", hint: "Split them, or name a range.")
        }
        guard ranges.count <= rangesOfRequest else {
            throw HexlistError(
                .badRequest, "\(ranges.count) ranges are too many for one request; \(rangesOfRequest) fit.", hint: "Split them.")
        }
    }

    private static func checkAll(_ ids: [Int64], in place: HexLocation?, among present: [Int64: HexLocation]) throws(HexlistError) {
        if let missing = ids.first(where: { present[$0] == nil }) { throw noHex(missing) }
        if let place, let other = ids.first(where: { present[$0] != place }) {
            throw HexlistError(.badRequest, "Hex \(other) is not \(place.rawValue).", hint: "`hexlist inbox --held` lists those that are.")
        }
    }

    private static func noHex(_ id: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no hex \(id).", hint: "`hexlist inbox` and `hexlist inbox --held` list those there are.")
    }
}

extension HexShape {
    /// - Parameter labels: of the peers that hexes say they are from.
    init(_ summary: HexSummary, _ labels: [PeerID: PeerLabel]) {
        let claimed = PeerID(summary.senderUUID).flatMap { $0 == summary.peer ? nil : labels[$0] }
        self.init(
            id: summary.id, location: summary.location.rawValue, senderUUID: summary.senderUUID, senderName: summary.senderName,
            senderAlias: claimed?.alias, peerUUID: summary.peer, tag: summary.peerLabel.map(PeerTag.init),
            description: summary.description, subject: summary.subject,
            color: summary.color, linkCount: summary.linkCount, unread: summary.unread,
            receivedAt: Timestamp(milliseconds: summary.receivedAt), messageID: summary.messageID)
    }

    /// Makes the shape with links and unknown members.
    /// - Parameter schemes: the schemes of links that are offered for opening.
    init(_ detail: HexDetail, _ labels: [PeerID: PeerLabel], openSchemes schemes: [String]) {
        self.init(detail.summary, labels)
        let content = detail.content
        links = content.links.map {
            var link = LinkShape(
                url: content.string($0.url), linkDescription: content.string($0.linkDescription), service: content.string($0.service))
            do throws(LinkFault) {
                link.opens = try LinkTarget(link.url, schemes: schemes).summary
            } catch {
                link.notOpened = error.description
            }
            return link
        }
        extra = JSONValue { $0.keptMembers(of: content) }
    }
}
