public import CoreMetrics

/// The metrics of the store. Their names are in `MetricFamily`.
public struct StoreMetrics: Sendable {
    /// Duration of each COMMIT with its fsync.
    let commit: Timer
    /// Number of failed transactions.
    let failures: Counter

    /// - Parameter factory: creates the timer and the counter. The default factory records nothing.
    public init(_ factory: any MetricsFactory = NOOPMetricsHandler.instance) {
        commit = Timer(label: "hexlist_store_commit_seconds", factory: factory)
        failures = Counter(label: "hexlist_store_commit_failures_total", factory: factory)
    }
}
