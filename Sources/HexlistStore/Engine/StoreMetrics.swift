public import CoreMetrics

/// What the store measures, by names of `MetricFamily`.
public struct StoreMetrics: Sendable {
    /// The time that COMMIT takes, with its fsync; once a transaction.
    let commit: Timer
    /// Transactions that SQLite failed.
    let failures: Counter

    /// - Parameter factory: makes the instruments; by itself nothing is measured.
    public init(_ factory: any MetricsFactory = NOOPMetricsHandler.instance) {
        commit = Timer(label: "hexlist_store_commit_seconds", factory: factory)
        failures = Counter(label: "hexlist_store_commit_failures_total", factory: factory)
    }
}
