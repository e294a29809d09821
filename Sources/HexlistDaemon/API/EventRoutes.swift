import HTTPTypes
import HexlistAPI
import HexlistModel
import HexlistStore
import Hummingbird

/// `/v1/events`
struct EventRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/events") { request, _ in
            let query = try APIQuery(request, allowing: ["since", "limit"])
            let last = try await start(request, query)
            if EventStreamReply.isWanted(request) {
                return EventStreamReply.response(EventSource(keeper: api.keeper, last: last), api: api)
            }
            let limit = try query.limit()
            let node = api.node
            let page = try await node.store.read { try $0.eventPage(since: last, limit: limit) }
            let labels = await node.labels(of: page.items.compactMap(\.peer))
            return APIReply.page(page.items, next: page.next, cursor: \.number) { EventShape($0, labels) }
        }
    }

    /// The number behind which to begin: that of the caller, or the one before the oldest kept.
    private func start(_ request: Request, _ query: APIQuery) async throws -> Int64 {
        let oldest = try await api.store.read { try $0.oldestEvent() }
        var since = try query.number("since", 0...Int64.max - 1)
        // A browser's EventSource says so when it connects again.
        if let text = HTTPField.Name("last-event-id").flatMap({ request.headers[$0] }) { since = Int64(text) ?? since }
        guard let since else { return oldest - 1 }
        guard since >= oldest - 1 else {
            throw HexlistError(
                .gone, "Events up to \(oldest - 1) are kept no longer; \(since + 1) to \(oldest - 1) are lost.",
                hint: "Go on with --since \(oldest - 1).")
        }
        return since
    }
}

/// Events behind one number, as they come.
private struct EventSource: StreamSource {
    let keeper: NodeKeeper
    var last: Int64

    /// Events of one piece.
    private static let batch = 500

    mutating func next() async throws -> (messages: [StreamMessage], hasMore: Bool) {
        let since = last
        let node = keeper.node
        let page = try await node.store.read { try $0.eventPage(since: since, limit: Self.batch) }
        guard let newest = page.items.last else { return ([], false) }
        // Who reads slower than events are kept begins anew and is told what is gone.
        guard page.items.first?.number == since + 1 else { throw HexlistError(.gone, "Events behind \(since) are kept no longer.") }
        last = newest.number
        let labels = await node.labels(of: page.items.compactMap(\.peer))
        let messages = page.items.map { row in
            StreamMessage(id: "\(row.number)", event: row.type.rawValue, data: EventShape(row, labels).jsonText)
        }
        return (messages, page.next != nil)
    }
}
