import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird
import NIOCore
import Synchronization

/// `/v1/drafts`: files named by `hexlist web --send`, for which the user chooses the recipients on the page.
struct DraftRoutes: Sendable {
    let api: APIContext

    /// Maximum number of paths in a draft.
    private static let paths = 10_000

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/drafts") { request, _ in
            _ = try APIQuery(request)
            let wanted: DraftRequest = try await RequestInput.requiredShape(request)
            guard (1...Self.paths).contains(wanted.paths.count) else {
                throw HexlistError(.badRequest, "A draft has 1 to \(Self.paths) paths; \(wanted.paths.count) were named.")
            }
            guard wanted.paths.allSatisfy({ $0.hasPrefix("/") }) else {
                throw HexlistError(.badRequest, "The paths of a draft are absolute.")
            }
            let id = PageListenerState.random(digits: 32)
            return APIReply.json(api.page.drafts.withLock { $0.add(wanted.paths, id: id, now: .now, time: .now) })
        }
        router.get("/v1/drafts/:draft") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try find(context).draft)
        }
        router.post("/v1/drafts/:draft/offer") { request, context in
            _ = try APIQuery(request)
            let wanted: DraftOfferRequest = try await RequestInput.requiredShape(request)
            return try await OfferAndTransferRoutes(api: api).offer(
                OfferRequest(paths: try find(context).paths, to: wanted.to, copySmall: true), request)
        }
    }

    private func find(_ context: BasicRequestContext) throws(HexlistError) -> (draft: Draft, paths: [String]) {
        let id = try RequestInput.text(context, "draft")
        guard let found = api.page.drafts.withLock({ $0.find(id, now: .now) }) else {
            throw HexlistError(.notFound, "This draft has expired: a draft lasts 10 minutes.", hint: "Choose them again.")
        }
        return found
    }
}
