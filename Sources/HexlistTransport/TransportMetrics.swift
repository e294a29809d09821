public import CoreMetrics

/// The counts of connections that came in.
public struct TransportMetrics: Sendable {
    /// The reason why a connection that came in became no session.
    enum Refusal: String, CaseIterable {
        case connections
        case perAddress = "per_address"
        case unidentified
        /// No handshake in time.
        case timeout
        /// The first byte is neither TLS's nor a frame's.
        case notHexlist = "not_hexlist"
        case handshake
    }

    let accepted: Counter
    private let refused: [Refusal: Counter]

    /// - Parameter factory: makes the instruments; by itself nothing is counted.
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
