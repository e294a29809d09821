import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird

/// `/v1/cache`: lists, counts and deletes the files of the cache, and marks some of them as kept.
struct CacheRoutes: Sendable {
    let api: APIContext

    /// Maximum number of files that one request marks as kept.
    private static let files = 1_000

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/cache") { request, _ in
            let query = try APIQuery(request, allowing: ["limit", "after"])
            let page = try await api.node.transfers.cache.page(before: try query.cursor(), limit: try query.limit())
            return APIReply.page(page.rows, next: page.next, cursor: { $0.id }) { $0.file }
        }
        router.get("/v1/cache/summary") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.transfers.cache.summary())
        }
        router.post("/v1/cache/clear") { request, _ in
            let query = try APIQuery(request, allowing: ["olderThanSeconds"])
            return APIReply.json(try await api.node.transfers.cache.clear(olderThan: try query.number("olderThanSeconds", 0...1 << 40)))
        }
        router.post("/v1/cache/keep") { request, _ in
            _ = try APIQuery(request)
            let wanted: CacheKeepRequest = try await RequestInput.requiredShape(request)
            guard (1...Self.files).contains(wanted.files.count) else {
                throw HexlistError(.badRequest, "One request keeps 1 to \(Self.files) files; \(wanted.files.count) were named.")
            }
            return APIReply.json(CacheKeepReply(items: try await api.node.transfers.cache.keep(wanted.files)))
        }
    }
}
