public import CoreMetrics

/// Counters of accepted and refused connections.
public struct TransportMetrics: Sendable {
    /// The reason why an accepted connection was closed.
    enum Refusal: String, CaseIterable {
        case connections
        case perAddress = "per_address"
        case unidentified
        /// The handshake was not completed in time.
        case timeout
        /// The first byte is not that of TLS or of another protocol that is accepted at the time.
        case notHexlist = "not_hexlist"
        case handshake
    }

    let accepted: Counter
    private let refused: [Refusal: Counter]

    /// - Parameter factory: creates the counters. The default one counts nothing.
    public init(_ factory: any MetricsFactory = NOOPMetricsHandler.instance) {
        accepted = Counter(label: "hexlist_connections_accepted_total", factory: factory)
        refused = Dictionary(
            uniqueKeysWithValues: Refusal.allCases.map {
                ($0, Counter(label: "hexlist_connections_refused_total", dimensions: [("reason", $0.rawValue)], factory: factory))
            })
    }

    func refused(_ reason: Refusal) { refused[reason]?.increment() }
}

extension TransportMetrics.Refusal {
    init(_ refusal: Admission.Refusal) {
        switch refusal {
        case .connections: self = .connections
        case .perAddress: self = .perAddress
        case .unidentified: self = .unidentified
        }
    }
}
