/// The definition of one Prometheus metric: its name, its type and its help text. A metric has a series for each set of labels.
struct MetricFamily: Sendable {
    enum Kind: String, Sendable { case counter, gauge, histogram }

    let name: String
    let kind: Kind
    let help: String

    /// All metrics, in the order of the output. Values for other names are ignored.
    static let all = [
        MetricFamily(name: "hexlist_build_info", kind: .gauge, help: "Always 1; the label is the version of hexlistd."),
        MetricFamily(name: "hexlist_peers", kind: .gauge, help: "Known peers and ghosts, by state."),
        MetricFamily(name: "hexlist_sessions", kind: .gauge, help: "Open sessions with peers, by trust."),
        MetricFamily(name: "hexlist_discovery_up", kind: .gauge, help: "Whether peers are found by DNS-SD."),
        MetricFamily(name: "hexlist_hexes", kind: .gauge, help: "Stored hexes, by place."),
        MetricFamily(name: "hexlist_unread_hexes", kind: .gauge, help: "Unread hexes in the inbox."),
        MetricFamily(name: "hexlist_hexes_received_total", kind: .counter, help: "Received hexes that were stored, by location."),
        MetricFamily(
            name: "hexlist_hexes_refused_total", kind: .counter, help: "Hexes that were refused, by the code that the sender got."),
        MetricFamily(
            name: "hexlist_receive_commit_seconds", kind: .histogram,
            help: "Time from passing a batch of received hexes to the store until its commit."),
        MetricFamily(name: "hexlist_outbox_rows", kind: .gauge, help: "Rows of the outbox, by state."),
        MetricFamily(
            name: "hexlist_outbox_oldest_queued_seconds", kind: .gauge,
            help: "Age of the oldest undelivered row; 0 if there is none."),
        MetricFamily(name: "hexlist_hexes_sent_total", kind: .counter, help: "Receipts of peers for sent hexes, by result."),
        MetricFamily(
            name: "hexlist_send_receipt_seconds", kind: .histogram,
            help: "Time from sending a hex to its receipt, measured for one hex at a time per peer."),
        MetricFamily(
            name: "hexlist_probes_total", kind: .counter, help: "Probes of announced or known peers, by result."),
        MetricFamily(
            name: "hexlist_envelopes_posted_total", kind: .counter, help: "Envelopes, with hexes or receipts, that routes accepted."),
        MetricFamily(name: "hexlist_envelopes_received_total", kind: .counter, help: "Envelopes of trusted peers that were opened."),
        MetricFamily(
            name: "hexlist_envelopes_dropped_total", kind: .counter, help: "Envelopes that were removed unopened, by reason."),
        MetricFamily(name: "hexlist_connections_accepted_total", kind: .counter, help: "Incoming connections that became sessions."),
        MetricFamily(
            name: "hexlist_connections_refused_total", kind: .counter, help: "Incoming connections that did not become sessions, by reason."
        ),
        MetricFamily(name: "hexlist_events_total", kind: .counter, help: "Events since the store was created."),
        MetricFamily(
            name: "hexlist_search_unindexed_hexes", kind: .gauge, help: "Maximum number of hexes that are not in the search index yet."),
        MetricFamily(name: "hexlist_store_bytes", kind: .gauge, help: "Bytes of the store on disk, including its WAL."),
        MetricFamily(
            name: "hexlist_store_failing", kind: .gauge, help: "1 if the last transaction failed, so that nothing can be written; else 0."),
        MetricFamily(name: "hexlist_store_commit_seconds", kind: .histogram, help: "Duration of a commit of the store, including fsync."),
        MetricFamily(name: "hexlist_store_commit_failures_total", kind: .counter, help: "Transactions of the store that failed."),
        MetricFamily(name: "process_resident_memory_bytes", kind: .gauge, help: "Resident memory of the process in bytes."),
        MetricFamily(name: "process_start_time_seconds", kind: .gauge, help: "Start of the process, in seconds since 1970."),
    ]
}
