import HexlistModel
import HexlistTransport
import HexlistWire

/// The limits of dials that peers request to test whether their ports can be reached (Docs/Protocol.md, "Dialling back").
struct DialBackLimits {
    /// Maximum number of requested dials in progress, for all peers together.
    static let atOnce = 4

    /// Minimum time between two dials requested by one peer. Before another request of its own to the same peer, this node waits 25 %
    /// longer. Tests set a shorter time.
    var pause: Duration = .seconds(10)
    private var inProgress = 0

    /// Begins a dial that a peer requested, if the limit permits it.
    /// - Returns: whether another dial may begin. If so, the caller calls `ended` after that dial.
    mutating func begin() -> Bool {
        guard inProgress < Self.atOnce else { return false }
        inProgress += 1
        return true
    }

    mutating func ended() { inProgress -= 1 }
}

extension DialBack.Result {
    init(_ report: DialReport) {
        switch report.summary {
        case nil: self = .reached
        case .refused?: self = .refused
        case .timeout?: self = .timeout
        case .closed?: self = .closed
        case .otherIdentity?: self = .otherIdentity
        case .notHexlist?: self = .foreign
        case .unreachable?, .nameNotFound?, .cancelled?, .failed?: self = .unreachable
        }
    }
}
