import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistWire
import Hummingbird

struct SendRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/sends", use: send)
        router.get("/v1/outbox", use: list)
        router.get("/v1/outbox/:id") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.outbox.row(try RequestInput.id(context)))
        }
        router.post("/v1/outbox/retry") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(OutboxChange(try await api.node.outbox.retry(try await rows(request))))
        }
        router.post("/v1/outbox/cancel") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(OutboxChange(try await api.node.outbox.cancel(try await rows(request))))
        }
        router.post("/v1/outbox/:id/retry") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.outbox.retry(try RequestInput.id(context)))
        }
        router.post("/v1/outbox/:id/cancel") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.outbox.cancel(try RequestInput.id(context)))
        }
    }

    /// Default of the parameter `timeout`: maximum seconds that a send waits for its outcomes.
    private static let defaultWait = 10.0

    private func send(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        if LocalAPI.isStream(request.headers[.contentType]) { return try await sendBulk(request) }
        let query = try APIQuery(request, allowing: ["to", "toAll", "wait", "timeout", "key", "force", "hex"])
        let wait = try query.choice("wait", SendWaitGoal.stored)
        let seconds = try query.seconds("timeout", fallback: Self.defaultWait)
        let (content, ownKey) = try await content(request, query)
        let wanted = SendRequest(
            content: content, peers: try await targets(query), key: try query.text("key") ?? ownKey, force: try query.flag("force"))
        let deadline = ContinuousClock.now + .seconds(seconds)
        return APIReply.json(Page(items: try await api.node.outbox.send(wanted, until: wait == .stored ? deadline : nil)))
    }

    /// Sends a stream of hexes, one per line. The reply is a stream too.
    private func sendBulk(_ request: Request) async throws -> Response {
        let query = try APIQuery(
            request, allowing: ["to", "toAll", "wait", "timeout", "force", "allowEmpty", "results", "progress"])
        let options = BulkResponder.Options(
            wait: try query.choice("wait", SendWaitGoal.stored), seconds: try query.seconds("timeout", fallback: Self.defaultWait),
            allowsEmpty: try query.flag("allowEmpty"), reportsAll: try query.choice("results", BulkResults.failures) == .all,
            reportsProgress: try query.flag("progress"))
        return try await BulkResponder(api: api, peers: targets(query), force: query.flag("force"), options: options).response(to: request)
    }

    /// The values of `results`: whether only failed hexes or all hexes get a line in the reply.
    private enum BulkResults: String, CaseIterable {
        case failures, all
    }

    /// Returns the hex in the body with its idempotency key, or a reference to the stored hex that the parameter `hex` names.
    private func content(_ request: Request, _ query: APIQuery) async throws -> (SendRequest.Content, key: String?) {
        let body = try await RequestInput.body(request)
        if let id = try query.number("hex", 1...Int64.max) {
            guard body.isEmpty else { throw HexlistError(.badRequest, "`hex` names a stored hex: leave out the body.") }
            return (.forward(hexID: id), nil)
        }
        guard !body.isEmpty else {
            throw HexlistError(.badRequest, "The request has no hex.", hint: "Give one as JSON, or name a stored one with `hex`.")
        }
        var decoder = WrapperDecoder()
        switch decoder.decodeHex(body, acceptsLocalNames: true) {
        case .success(let hex): return (.hex(hex.content), hex.key)
        case .failure(let refusal):
            throw HexlistError(.badRequest, "The hex cannot be sent: \(refusal.message) (\(refusal.code.rawValue)).")
        }
    }

    /// Returns the recipients that the parameters `to` and `toAll` name, without duplicates, in order.
    private func targets(_ query: APIQuery) async throws -> [PeerID] {
        try await targets(named: query.texts("to"), all: query.flag("toAll"))
    }

    func targets(named names: [String], all: Bool) async throws -> [PeerID] {
        guard all else {
            guard !names.isEmpty else { throw HexlistError(.badRequest, "No recipient.", hint: "Give one with `to`.") }
            return try await api.node.groups.recipients(named: names)
        }
        guard names.isEmpty else { throw HexlistError(.badRequest, "`to` and `toAll` do not go together.") }
        let trusted = try await api.node.peers.all().filter { $0.state != .ghost && $0.trust == .trusted }.compactMap(\.uuid)
        guard !trusted.isEmpty else {
            throw HexlistError(.notFound, "There is no trusted peer to send to.", hint: "To pair with a peer: `hexlist pair`.")
        }
        return trusted
    }

    /// The values of the parameter `files`. `offered` adds delivered rows to the list whose files the peer has not fetched yet.
    private enum WantedFiles: String, CaseIterable {
        case offered
    }

    /// The values of the parameter `order`.
    private enum OutboxOrder: String, CaseIterable {
        case oldest, newest
    }

    private func list(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["to", "state", "files", "order", "limit", "after"])
        let order = try query.choice("order", OutboxOrder.oldest)
        let files = try query.choice("files", among: WantedFiles.allCases)
        let states: [OutboxState] = try query.texts("state").map { try APIQuery.choice($0, of: "state") }
        var peer: PeerID?
        if let text = try query.text("to") {
            peer = try await api.node.peers.resolve(text).uuid
        }
        let limit = try query.limit()
        let page = try await api.node.outbox.rows(
            peer: peer, states: states.isEmpty ? nil : Set(states), offered: files == .offered, newestFirst: order == .newest,
            after: try query.cursor(), limit: limit)
        return APIReply.page(page.rows, next: page.next, cursor: \.outboxID) { $0 }
    }

    /// Returns the selection of outbox rows in the body.
    private func rows(_ request: Request) async throws -> OutboxSelection {
        let wanted: OutboxRowsRequest = try await RequestInput.requiredShape(request)
        switch wanted {
        case .ids(let ids):
            guard (1...LocalAPI.pageLimit).contains(ids.count) else {
                throw HexlistError(.badRequest, "One request takes 1 to \(LocalAPI.pageLimit) rows; \(ids.count) were named.")
            }
            return .ids(ids)
        case .peer(let text, let after):
            guard let cursor = Int64(after ?? "0"), cursor >= 0 else {
                throw HexlistError(.badRequest, "`after` needs the `next` of the previous reply.")
            }
            guard let peer = try await api.node.peers.resolve(text).uuid else { throw HexlistError(.notFound, "This peer has no UUID.") }
            return .peer(peer, after: cursor)
        }
    }
}

extension OutboxChange {
    init(_ change: Outbox.OutboxChange) {
        self.init(
            changed: change.changed, mayHaveArrived: change.mayHaveArrived, passedOver: change.passedOver, next: change.next.map { "\($0)" }
        )
    }
}
