import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import Hummingbird

/// `/v1/hexes`
struct HexRoutes: Sendable {
    let api: APIContext

    /// Hexes one request may name.
    private static let idsOfRequest = 10_000
    /// Hexes marked by one piece of work, so that others get their turn.
    private static let markedAtOnce = 1_000

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/hexes", use: list)
        router.patch("/v1/hexes", use: patch)
        router.delete("/v1/hexes") { request, _ in
            let texts = try APIQuery(request, allowing: ["id"]).texts("id")
            let ids = texts.compactMap { Int64($0) }
            guard !ids.isEmpty, ids.count == texts.count else {
                throw HexlistError(.badRequest, "`id` takes ids, as the lists print them.")
            }
            return try await delete(ids)
        }
        router.post("/v1/hexes/accept") { request, _ in
            _ = try APIQuery(request)
            let wanted: HexIDs = try await APIInput.requiredShape(request)
            return try await accept(wanted.ids)
        }
        router.get("/v1/hexes/:id") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await shape(of: try APIInput.id(context)))
        }
        router.patch("/v1/hexes/:id") { request, context in
            _ = try APIQuery(request)
            let id = try APIInput.id(context)
            let wanted: HexPatch = try await APIInput.requiredShape(request)
            guard wanted.hexes == nil else { throw HexlistError(.badRequest, "The path names the hex: give no `ids` and no `all`.") }
            _ = try await mark([id], unread: wanted.unread)
            return APIReply.json(try await shape(of: id))
        }
        router.delete("/v1/hexes/:id") { request, context in
            _ = try APIQuery(request)
            return try await delete([try APIInput.id(context)])
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

    /// Who sent something may have left and be known by nothing but its hexes: its UUID is enough then.
    private func sender(_ text: String) async throws -> PeerID? {
        if let id = PeerID(text) { return id }
        return try await api.node.resolve(text).uuid
    }

    private func patch(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: HexPatch = try await APIInput.requiredShape(request)
        switch wanted.hexes {
        case .ids(let ids): return APIReply.json(ChangedShape(changed: try await mark(ids, unread: wanted.unread)))
        case .all where wanted.unread: throw HexlistError(.badRequest, "All of the inbox can be marked read, not unread.")
        case .all: return APIReply.json(ChangedShape(changed: try await markAllRead()))
        case nil: throw HexlistError(.badRequest, "Name some hexes with `ids`, or all of the inbox with `all`.")
        }
    }

    private func mark(_ ids: [Int64], unread: Bool) async throws -> Int {
        try Self.checkCount(ids)
        let changed = try await api.store.write { writer in
            try Self.checkAll(ids, among: writer.locations(of: ids))
            return try writer.setRead(ids, !unread)
        }
        await api.node.storeChanged()
        return changed
    }

    /// What arrives meanwhile stays unread.
    private func markAllRead() async throws -> Int {
        guard let newest = try await api.store.read({ try $0.newestInboxNumber() }) else { return 0 }
        var changed = 0
        while true {
            let marked = try await api.store.write { try $0.markRead(upTo: newest, limit: Self.markedAtOnce) }
            changed += marked
            if marked < Self.markedAtOnce { break }
        }
        await api.node.storeChanged()
        return changed
    }

    /// All or none.
    private func delete(_ ids: [Int64]) async throws -> Response {
        try Self.checkCount(ids)
        let unique = Array(Set(ids))
        let deleted = try await api.store.write { writer in
            try Self.checkAll(ids, among: writer.locations(of: unique))
            return try writer.delete(unique, at: Timestamp.now.milliseconds)
        }
        await api.node.storeChanged(makesRoom: true)
        return APIReply.json(ChangedShape(changed: deleted))
    }

    /// All or none, in the order given.
    private func accept(_ ids: [Int64]) async throws -> Response {
        try Self.checkCount(ids)
        let accepted = try await api.store.write { writer in
            let locations = try writer.locations(of: ids)
            try Self.checkAll(ids, among: locations)
            if let other = ids.first(where: { locations[$0] != .held }) {
                throw HexlistError(
                    .badRequest, "Hex \(other) is not held.", hint: "`hexlist inbox --held` lists those that are.")
            }
            return try writer.accept(ids, at: Timestamp.now.milliseconds)
        }
        await api.node.storeChanged(makesRoom: true)
        return APIReply.json(ChangedShape(changed: accepted.count))
    }

    private func shape(of id: Int64) async throws -> HexShape {
        guard let detail = try await api.store.read({ try $0.hex(id) }) else { throw Self.noHex(id) }
        return HexShape(detail, await labels([detail.summary]), openSchemes: api.openSchemes)
    }

    /// Of the peers that hexes say they are from.
    private func labels(_ hexes: [HexSummary]) async -> [PeerID: PeerLabel] {
        await api.node.labels(of: hexes.compactMap { PeerID($0.senderUUID) })
    }

    private static func checkCount(_ ids: [Int64]) throws(HexlistError) {
        guard ids.count <= idsOfRequest else {
            throw HexlistError(.badRequest, "\(ids.count) ids are too many for one request; \(idsOfRequest) fit.", hint: "Split them.")
        }
    }

    private static func checkAll(_ ids: [Int64], among present: [Int64: HexLocation]) throws(HexlistError) {
        if let missing = ids.first(where: { present[$0] == nil }) { throw noHex(missing) }
    }

    private static func noHex(_ id: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no hex \(id).", hint: "`hexlist inbox` and `hexlist inbox --held` list those there are.")
    }
}
