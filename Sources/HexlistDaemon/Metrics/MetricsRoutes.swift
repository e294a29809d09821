import CoreMetrics
import HexlistAPI
import HexlistModel
import HexlistStore
import HexlistSystem
import Hummingbird
import Synchronization

/// `/metrics`: the metrics of the daemon in the Prometheus text format.
struct MetricsRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/metrics") { request, _ in
            _ = try APIQuery(request)
            let text = try await api.metrics.text(api)
            return Response(
                status: .ok, headers: [.contentType: MetricsText.contentType], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
        }
    }
}

/// The metrics of the daemon. Some are recorded continuously, the others are computed for each request.
final class Metrics: Sendable {
    let registry = MetricsRegistry()
    private let startedAt: Timestamp
    /// The number of the newest event that the counter `hexlist_events_total` includes.
    private let countedEvents = Mutex<Int64>(0)

    init(startedAt: Timestamp = .now) { self.startedAt = startedAt }

    func text(_ api: APIContext) async throws -> String {
        let node = try await api.node.gauges()
        let (counts, bytes, oldest) = try await api.store.read {
            (try $0.counts(), $0.storeBytes(), try $0.oldestQueued())
        }
        set("hexlist_build_info", ("version", ProtocolLimits.appVersion), 1)
        for (state, count) in node.peers.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            set("hexlist_peers", ("state", state.rawValue), Int64(count))
        }
        set("hexlist_sessions", ("trust", "trusted"), Int64(node.sessionsOfTrusted))
        set("hexlist_sessions", ("trust", "stranger"), Int64(node.sessionsOfOthers))
        set("hexlist_discovery_up", nil, node.isDiscovering ? 1 : 0)
        for (place, count) in [(HexLocation.inbox, counts.inbox), (.held, counts.held), (.mine, counts.mine)] {
            set("hexlist_hexes", ("place", place.rawValue), count)
        }
        set("hexlist_unread_hexes", nil, counts.unread)
        set("hexlist_search_unindexed_hexes", nil, counts.unindexed)
        for state in OutboxState.allCases where state != .sending {
            set("hexlist_outbox_rows", ("state", state.rawValue), counts.outbox[state])
        }
        set("hexlist_outbox_oldest_queued_seconds", nil, oldest.map { max(0, Timestamp.now.milliseconds - $0) / 1_000 } ?? 0)
        set("hexlist_store_bytes", nil, bytes)
        set("hexlist_store_failing", nil, api.store.fault == nil ? 0 : 1)
        if let resident = ProcessMemory.residentBytes { set("process_resident_memory_bytes", nil, resident) }
        set("process_start_time_seconds", nil, startedAt.milliseconds / 1_000)
        countedEvents.withLock { counted in
            Counter(label: "hexlist_events_total", factory: registry).increment(by: max(0, counts.lastEvent - counted))
            counted = max(counted, counts.lastEvent)
        }
        return registry.text()
    }

    private func set(_ name: String, _ label: (String, String)?, _ value: Int64) {
        Meter(label: name, dimensions: label.map { [$0] } ?? [], factory: registry).set(value)
    }
}
