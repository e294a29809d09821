import HexlistAPI
import HexlistEnvelope
import HexlistEventLoop
import HexlistModel
import HexlistTransport
import NIOCore

/// The routes for hexes to peers that are away: one reader for each route, and one sender for all of them.
///
/// Confined to the event loop of its node.
final class RouteCoordinator {
    private let times: NodeConfiguration.Routes
    private let coder: EnvelopeCoder
    private let identity: Identity
    private let makeTimer: () -> DeadlineTimer
    private var readers: [RouteReader] = []
    let sender: RouteSender

    init(
        _ times: NodeConfiguration.Routes, _ coder: EnvelopeCoder, _ identity: Identity, startedAt: ContinuousClock.Instant,
        timers: @escaping () -> DeadlineTimer
    ) {
        self.times = times
        self.coder = coder
        self.identity = identity
        makeTimer = timers
        sender = RouteSender(times, startedAt: startedAt, on: timers())
    }

    /// All routes, in the order of the configuration, in which they are used.
    var all: [any Route] { readers.map(\.route) }

    func reader(_ name: String) -> RouteReader? { readers.first { $0.route.name == name } }

    /// The routes that are used for a peer.
    func routes(for peer: PeerID, _ node: isolated Node) -> [any Route] {
        let selection = node.registry[peer]?.routes ?? .any
        return all.filter { selection.contains($0.name) }
    }

    // MARK: Life cycle

    /// Starts the configured routes and the sender.
    /// - Parameter stored: the postings and conflicts that earlier runs of the daemon stored.
    func start(_ stored: RouteSender.Stored, _ node: isolated Node) {
        configure(node.configuration.routes.list, node)
        sender.start(stored, node)
    }

    /// Starts new routes and stops those that are no longer in `list`.
    func configure(_ list: [RouteConfiguration], _ node: isolated Node) {
        let before = readers
        readers = list.map { configuration in
            before.first { $0.route.configuration == configuration } ?? RouteReader(route(configuration), times, on: makeTimer())
        }
        for reader in before where !readers.contains(where: { $0 === reader }) { reader.stop() }
        for reader in readers where !before.contains(where: { $0 === reader }) { reader.start(node) }
        if !before.isEmpty || !list.isEmpty { sender.everyone(at: node.clocks.now, node) }
    }

    func stop() {
        sender.stop()
        for reader in readers { reader.stop() }
        readers = []
    }

    private func route(_ configuration: RouteConfiguration) -> any Route {
        switch configuration.place {
        case .folder(let path): FolderRoute(configuration, path: path, coder)
        case .broker(let address): MQTTRoute(configuration, address, coder, identity, on: makeTimer())
        }
    }

    /// Handles a route that works again.
    func worksAgain(_ route: any Route, _ node: isolated Node) {
        sender.everyone(at: node.clocks.now, node)
        node.notifyWatchers()
    }

    // MARK: For callers

    func views(_ node: isolated Node) -> [RouteView] {
        let times = node.times()
        return readers.map { reader in
            let (route, counters) = (reader.route, reader.counters)
            let waiting = sender.waiting(on: route.name).map { waiting in
                RouteUnconfirmedEnvelopes(
                    peer: waiting.peer, tag: node.peerList.label(of: waiting.peer).map { PeerSummary($0) }, envelopes: waiting.envelopes,
                    bytes: waiting.bytes)
            }
            let dropped = counters.dropped.sorted { $0.key.rawValue < $1.key.rawValue }
            return RouteView(
                name: route.name, place: route.configuration.place.text, state: route.fault == nil ? .working : .failing,
                message: route.fault?.text, nextTryAt: route.fault?.nextTry.map { Timestamp(milliseconds: times.milliseconds(of: $0)) },
                waiting: waiting.sorted { $0.peer < $1.peer }, lastOut: counters.lastOut.map { Timestamp(milliseconds: $0) },
                lastIn: counters.lastIn.map { Timestamp(milliseconds: $0) },
                dropped: dropped.map { RouteDroppedEnvelopes(reason: $0.key.rawValue, count: $0.value) }, problem: problem(reader, node))
        }
    }

    /// The problems of a route as one clause for `status`; `nil` if there are none.
    private func problem(_ reader: RouteReader, _ node: isolated Node) -> String? {
        var parts = reader.route.fault.map { [$0.text] } ?? []
        for peer in sender.conflicts.peers(on: reader.route.name, now: node.clocks.milliseconds) {
            parts.append(
                "two machines post with the identity of \(node.peerList.text(of: peer)), so nothing is posted to it until a day after the "
                    + "last such letter (run `hexlist id rotate` on one of them)")
        }
        if let early = reader.counters.early {
            parts.append(
                "the clock of \(node.peerList.text(of: early.peer)) is \(early.lead / 3_600_000) h ahead of this machine's; its envelopes "
                    + "are not accepted")
        }
        let dropped = reader.counters.dropped
        let count = dropped.values.reduce(0, +)
        if count > 0 {
            let reasons = dropped.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.value) \($0.key.words)" }
            parts.append("\(count) \(count == 1 ? "envelope" : "envelopes") dropped (\(reasons.joined(separator: ", ")))")
        }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }
}

extension EnvelopeFault.Reason {
    /// Words that follow a number of envelopes, as in `2 too old`.
    fileprivate var words: String {
        switch self {
        case .noEnvelope, .damaged, .malformed: "damaged"
        case .notMine: "for another peer"
        case .otherKey: "for an earlier identity"
        case .stranger: "from a stranger"
        case .blocked: "from a blocked peer"
        case .forged: "forged"
        case .early: "from the future"
        case .late: "too old"
        }
    }
}

extension RouteObstacle {
    /// A clause with the reason.
    /// - Parameter peer: the recipient's name.
    func text(of peer: String) -> String {
        switch self {
        case .noMailbox: "\(peer) has no mailbox there (set up this route on \(peer))"
        case .noCard:
            "this machine does not have the card of \(peer) yet (it arrives the next time \(peer) connects; or run `hexlist id --card` on "
                + "\(peer), then `hexlist peer add` here)"
        case .full: "the mailbox of \(peer) is full"
        case .conflict: "two machines post with the identity of \(peer) (run `hexlist id rotate` on one of them)"
        case .fault(let fault): "unreachable (\(fault.text))"
        }
    }
}
