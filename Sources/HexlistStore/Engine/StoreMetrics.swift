public import CoreMetrics

/// The metrics of the store. Their names are in `MetricFamily`.
public struct StoreMetrics: Sendable {
    /// Duration of each COMMIT with its fsync.
    let commit: Timer
    /// Failed transactions.
    let failures: Counter

    /// - Parameter factory: makes the instruments. The default one measures nothing.
    public init(_ factory: any MetricsFactory = NOOPMetricsHandler.instance) {
        commit = Timer(label: "hexlist_store_commit_seconds", factory: factory)
        failures = Counter(label: "hexlist_store_commit_failures_total", factory: factory)
    }
}
