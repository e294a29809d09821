import HTTPTypes
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistStore
import Hummingbird

struct EventRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/events") { request, _ in
            let query = try APIQuery(request, allowing: ["since", "last", "type", "limit"])
            let types = try Self.types(query.texts("type"))
            let (start, count) = try await start(request, query, types)
            if EventStreamReply.isWanted(request) {
                return EventStreamReply.response(EventLogSource(supervisor: api.supervisor, types: types, last: start), api: api)
            }
            let limit = try query.text("limit") == nil ? count ?? query.limit() : query.limit()
            let node = api.node
            let page = try await node.store.read { try $0.eventPage(since: start, limit: limit, of: types) }
            let shapes = try await EventJSON.of(page.items, node)
            return APIReply.page(shapes, next: page.next, cursor: \.number) { $0 }
        }
    }

    /// Returns the number of the event after which the list begins, and the number of newest events that `last` requests, at most one page.
    /// Without parameters the list begins with the oldest stored event. If `since` and `last` are both given, the later beginning counts.
    private func start(_ request: Request, _ query: APIQuery, _ types: [EventType]) async throws -> (Int64, count: Int?) {
        var since = try query.number("since", 0...Int64.max - 1)
        var last = try query.number("last", 0...LocalAPI.lastEvents).map { Int($0) }
        // A browser's EventSource sends this header when it reconnects.
        if let seen = HTTPField.Name("last-event-id").flatMap({ request.headers[$0] }).flatMap({ Int64($0) }),
            (0..<Int64.max).contains(seen)
        {
            (since, last) = (seen, nil)
        }
        let (oldest, newest) = try await api.store.read { [last] reader in
            (try reader.oldestEvent(), try last.map { try reader.eventNumber(beforeLast: $0, of: types) })
        }
        guard since ?? oldest >= oldest - 1 else {
            throw HexlistError(
                .gone, "Events up to \(oldest - 1) were deleted; \((since ?? 0) + 1) to \(oldest - 1) are missing.",
                hint: "Continue with --since \(oldest - 1).")
        }
        return (max(since ?? oldest - 1, newest ?? 0), last.map { min(max(1, $0), LocalAPI.pageLimit) })
    }

    /// Returns the event types with these names. A name is that of a type (`hex.held`), or the prefix of several types (`hex`).
    /// - Throws: `badRequest` for an unknown name.
    private static func types(_ names: [String]) throws(HexlistError) -> [EventType] {
        var types: [EventType] = []
        for name in names {
            let found = EventType.all.filter { $0.rawValue == name || $0.rawValue.hasPrefix(name + ".") }
            guard !found.isEmpty else {
                let known = EventType.all.map(\.rawValue)
                let nearest = NearestName.likely(name, among: known).map { "Did you mean `\($0)`?" }
                throw HexlistError(
                    .badRequest, "There is no event `\(TerminalText.clean(name, columns: 40))`.",
                    hint: nearest ?? "Events are \(known.joined(separator: ", ")).")
            }
            types += found
        }
        return types
    }
}

/// The source of an event stream: the events after the number `last`, then new ones as they occur.
private struct EventLogSource: EventStreamSource {
    let supervisor: NodeSupervisor
    /// The event types to send; empty for all.
    let types: [EventType]
    var last: Int64

    /// Maximum number of events per read of the store.
    private static let batch = 500

    mutating func next() async throws -> (messages: [ServerSentEvent], hasMore: Bool) {
        let (since, types) = (last, types)
        let node = supervisor.node
        let (page, oldest, newest) = try await node.store.read {
            (try $0.eventPage(since: since, limit: Self.batch, of: types), try $0.oldestEvent(), try $0.counts().lastEvent)
        }
        // If a client reads so slowly that its next event was deleted, it gets an error, and has to begin again.
        guard oldest <= since + 1 else { throw HexlistError(.gone, "Events after \(since) are no longer stored.") }
        last = page.next ?? max(since, newest)
        let messages = try await EventJSON.of(page.items, node).map {
            ServerSentEvent(id: "\($0.number)", event: $0.type, data: $0.jsonText)
        }
        return (messages, page.next != nil)
    }
}

extension EventJSON {
    /// Converts event rows. The current display names of their peers and subjects of their hexes are read once for all rows.
    static func of(_ rows: [EventRow], _ node: Node) async throws -> [EventJSON] {
        let labels = await node.peers.labels(of: rows.compactMap(\.peer))
        let hexes = rows.compactMap(\.hex)
        let subjects = hexes.isEmpty ? [:] : try await node.store.read { try $0.subjects(of: hexes) }
        return rows.map { EventJSON($0, labels, subjects) }
    }

    /// - Parameters:
    ///   - labels: display names of the peers of the events.
    ///   - subjects: subjects of the hexes of the events, by id.
    init(_ row: EventRow, _ labels: [PeerID: PeerDisplayName], _ subjects: [Int64: String] = [:]) {
        // Any announcement can claim any UUID, so the event of a ghost does not get the name of the peer with that UUID.
        let tag =
            row.type == .peerGhost
            ? row.peer.map { _ in PeerSummary(trust: .stranger) } : row.peer.flatMap { labels[$0] }.map(PeerSummary.init)
        self.init(
            number: row.number, at: Timestamp(milliseconds: row.at), type: row.type.rawValue, peer: row.peer, tag: tag,
            hex: row.hex, subject: row.hex.flatMap { subjects[$0] }, outboxID: row.outboxID,
            data: row.data.flatMap { try? JSONValue(parsing: $0) })
    }
}
