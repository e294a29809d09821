public import CoreMetrics
public import HexlistAPI
import HexlistDiscovery
import HexlistEnvelope
import HexlistModel
import HexlistSession
import HexlistTransport
import HexlistWire

/// The counters and timers of a node, with the names of `MetricFamily`. Labels are values of enumerations, never peers.
public struct NodeMetrics: Sendable {
    private enum ReceivedLabel: String, CaseIterable { case stored, held, duplicate }
    private enum SentLabel: String, CaseIterable { case stored, held, rejected, deferred }
    private enum ProbeLabel: String, CaseIterable {
        case proved, refused, failed
        case noAnswer = "no_answer"
        case otherIdentity = "other_identity"
        case ownIdentity = "own_identity"
    }

    let transport: TransportMetrics
    /// The time to store a batch of received hexes, up to its commit.
    let receive: Timer
    /// The time from sending a hex to its receipt, measured for one hex at a time for each peer.
    let send: Timer
    private let received: [ReceivedLabel: Counter]
    private let refused: [RefusalCode: Counter]
    private let sent: [SentLabel: Counter]
    private let probes: [ProbeLabel: Counter]
    private let posted: Counter
    private let arrived: Counter
    private let dropped: [EnvelopeFault.Reason: Counter]

    /// - Parameter factory: creates the instruments; by default nothing is measured.
    public init(_ factory: any MetricsFactory = NOOPMetricsHandler.instance) {
        transport = TransportMetrics(factory)
        receive = Timer(label: "hexlist_receive_commit_seconds", factory: factory)
        send = Timer(label: "hexlist_send_receipt_seconds", factory: factory)
        received = Self.counters("hexlist_hexes_received_total", "result", factory)
        refused = Self.counters("hexlist_hexes_refused_total", "code", factory)
        sent = Self.counters("hexlist_hexes_sent_total", "result", factory)
        probes = Self.counters("hexlist_probes_total", "result", factory)
        posted = Counter(label: "hexlist_envelopes_posted_total", factory: factory)
        arrived = Counter(label: "hexlist_envelopes_received_total", factory: factory)
        dropped = Self.counters("hexlist_envelopes_dropped_total", "reason", factory)
    }

    private static func counters<Word: CaseIterable & Hashable & RawRepresentable<String>>(
        _ label: String, _ dimension: String, _ factory: any MetricsFactory
    ) -> [Word: Counter] {
        Dictionary(
            uniqueKeysWithValues: Word.allCases.map {
                ($0, Counter(label: label, dimensions: [(dimension, $0.rawValue)], factory: factory))
            })
    }

    /// Counts an envelope that this machine posted on a route.
    func envelopePosted() { posted.increment() }

    /// Counts an envelope of a trusted peer that this machine received.
    func envelopeArrived() { arrived.increment() }

    /// Counts an envelope that was removed unopened.
    func dropped(_ reason: EnvelopeFault.Reason) { dropped[reason]?.increment() }

    /// Counts the accepted hexes of a batch. `refused(in:)` counts the refused ones when their receipt is sent.
    func received(_ results: [DeliveryResult]) {
        var (stored, held, duplicate) = (0, 0, 0)
        for result in results {
            switch result {
            case .stored, .delivered: stored += 1
            case .held: held += 1
            case .duplicate: duplicate += 1
            case .refused, .undelivered: break
            }
        }
        if stored > 0 { received[.stored]?.increment(by: stored) }
        if held > 0 { received[.held]?.increment(by: held) }
        if duplicate > 0 { received[.duplicate]?.increment(by: duplicate) }
    }

    func refused(in receipt: Receipt) {
        for rejection in receipt.rejected { refused[rejection.code]?.increment() }
    }

    func sent(_ results: [RowResult]) {
        var (stored, held, rejected, deferred) = (0, 0, 0, 0)
        for row in results {
            switch row.result.state {
            case .stored: stored += 1
            case .held: held += 1
            case .rejected: rejected += 1
            default: deferred += 1
            }
        }
        if stored > 0 { sent[.stored]?.increment(by: stored) }
        if held > 0 { sent[.held]?.increment(by: held) }
        if rejected > 0 { sent[.rejected]?.increment(by: rejected) }
        if deferred > 0 { sent[.deferred]?.increment(by: deferred) }
    }

    func probed(_ result: ProbeResult) {
        let word: ProbeLabel =
            switch result {
            case .proved, .reached: .proved
            case .refused: .refused
            case .noAnswer: .noAnswer
            case .otherIdentity: .otherIdentity
            case .ownIdentity: .ownIdentity
            case .failed: .failed
            }
        probes[word]?.increment()
    }
}

/// The gauges of a node at one instant.
public struct NodeGauges: Sendable {
    /// The number of peers and ghosts in each state; 0 for a state that none has.
    public var peers: [PeerView.State: Int]
    public var sessionsOfTrusted: Int
    public var sessionsOfOthers: Int
    /// Whether DNS-SD discovery is running.
    public var isDiscovering: Bool
}

extension Node {
    public func gauges() async throws -> NodeGauges {
        var states = Dictionary(uniqueKeysWithValues: PeerView.State.allCases.map { ($0, 0) })
        await registry.reload(self)
        for peer in peerList.views() { states[peer.state, default: 0] += 1 }
        let open = sessions.values.filter(\.machine.isOpen)
        let trusted = open.count(where: \.machine.isTrusted)
        return NodeGauges(
            peers: states, sessionsOfTrusted: trusted, sessionsOfOthers: open.count - trusted,
            isDiscovering: finder.state?.state == .running)
    }
}
