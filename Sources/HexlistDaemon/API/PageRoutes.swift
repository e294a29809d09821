import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import Hummingbird

struct PageRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/web") { request, _ in
            _ = try APIQuery(request)
            let overview = { @Sendable [api] in try await Self.overview(api) }
            guard EventStreamReply.isWanted(request) else { return APIReply.json(try await overview()) }
            return EventStreamReply.response(PageEventSource(api: api, overview: overview), api: api)
        }
        router.post("/v1/web") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(try await api.page.invite())
        }
    }

    private static func overview(_ api: APIContext) async throws -> PageOverview {
        let node = await api.node.status()
        let (counts, change, new) = try await api.store.read { (try $0.counts(), try $0.lastMineChange(), try $0.newLinkCount()) }
        let outbox = OutboxState.allCases.map { ($0, Int(clamping: counts.outbox[$0])) }
        let uploadRequests = await api.node.uploadRequests.all()
        let isFinding = node.discovery.state.known == .running || node.discovery.state.known == .starting
        // The text of `storeFault` is fixed, because the store's own message contains its path, which the page must not get.
        return PageOverview(
            version: ProtocolLimits.appVersion, name: node.name, uuid: node.uuid, fingerprint: node.fingerprint,
            inbox: Int(clamping: counts.inbox), unread: Int(clamping: counts.unread), held: Int(clamping: counts.held),
            mine: Int(clamping: counts.mine), mineChange: change, newLinks: new,
            outbox: Dictionary(uniqueKeysWithValues: outbox), lastEvent: counts.lastEvent,
            uploadRequests: uploadRequests.isEmpty ? nil : uploadRequests, discoveryFault: isFinding ? nil : node.discovery.message,
            storeFault: api.store.fault == nil ? nil : "Nothing can be stored at the moment. `hexlist status` shows the reason.")
    }
}

/// The source of the page's event stream. All events are in one stream, because browsers open few connections per origin.
private struct PageEventSource: EventStreamSource {
    /// Maximum number of unfinished transfers in an event.
    private static let maximumTransfers = 100
    private static let openStages: Set<TransferStage> = [.waiting, .running, .paused]

    private var overview: ChangedValueSource<PageOverview>
    private var peers: ChangedValueSource<Page<PeerView>>
    private var own: ChangedValueSource<Page<OwnMachineView>>
    private var pairings: ChangedValueSource<PairingOverview>
    private var transfers: ChangedValueSource<Page<TransferView>>

    init(api: APIContext, overview read: @escaping @Sendable () async throws -> PageOverview) {
        let supervisor = api.supervisor
        overview = ChangedValueSource(event: "overview", read: read)
        peers = ChangedValueSource(event: "peers") { Page(items: try await supervisor.node.peers.all()) }
        own = ChangedValueSource(event: "own") { Page(items: try await supervisor.node.ownMachines.all()) }
        pairings = ChangedValueSource(event: "pairings") { await supervisor.node.pairing.overview() }
        transfers = ChangedValueSource(event: "transfers") {
            Page(items: try await supervisor.node.transfers.page(Self.openStages, before: nil, limit: Self.maximumTransfers).rows)
        }
    }

    mutating func next() async throws -> (messages: [ServerSentEvent], hasMore: Bool) {
        let messages =
            try await overview.next().messages + peers.next().messages + own.next().messages + pairings.next().messages
            + transfers.next().messages
        return (messages, false)
    }
}
