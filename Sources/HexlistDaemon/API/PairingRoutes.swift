import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird

/// `/v1/pairings`
struct PairingRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/pairings") { request, _ in
            _ = try APIQuery(request)
            if EventStreamReply.isWanted(request) { return EventStreamReply.response(PairingSource(keeper: api.keeper), api: api) }
            return APIReply.json(PairingsShape(await api.node.pairings()))
        }
        router.post("/v1/pairings", use: begin)
        router.delete("/v1/pairings") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(PairingsShape(await api.node.closePairing()))
        }
        router.post("/v1/pairings/:peer/confirm") { request, context in
            _ = try APIQuery(request)
            let wanted: PairingConfirmation = try await APIInput.requiredShape(request)
            let peer = try await peer(context)
            return APIReply.json(
                PairingShape(try await api.node.confirmPairing(with: peer, digits: wanted.digits, number: wanted.id)))
        }
        router.post("/v1/pairings/:peer/reject") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(PairingShape(try await api.node.rejectPairing(with: try await peer(context))))
        }
    }

    private func begin(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: PairingRequest? = try await APIInput.shape(request)
        guard let text = wanted?.peer else { return APIReply.json(PairingsShape(await api.node.openPairing())) }
        let peer = try await api.node.resolve(text).requiredID()
        return APIReply.json(PairingShape(try await api.node.requestPairing(with: peer)))
    }

    private func peer(_ context: BasicRequestContext) async throws -> PeerID {
        try await api.node.resolve(try APIInput.text(context, "peer")).requiredID()
    }
}

/// The pairings, whenever they differ from those told before.
private struct PairingSource: StreamSource {
    let keeper: NodeKeeper
    private var last: PairingsShape?
    private var lookedAt: ContinuousClock.Instant?

    /// Between two looks, however much happens meanwhile.
    private static let pause: Duration = .milliseconds(100)

    init(keeper: NodeKeeper) { self.keeper = keeper }

    mutating func next() async throws -> (messages: [StreamMessage], hasMore: Bool) {
        if let lookedAt, ContinuousClock.now - lookedAt < Self.pause { try await Task.sleep(until: lookedAt + Self.pause) }
        let pairings = PairingsShape(await keeper.node.pairings())
        lookedAt = .now
        let comparable = pairings.toTheSecond
        guard comparable != last else { return ([], false) }
        last = comparable
        return ([StreamMessage(event: "pairings", data: pairings.jsonText)], false)
    }
}

extension PairingsShape {
    /// A moment of the steady clock is never the same millisecond of the wall clock twice.
    fileprivate var toTheSecond: PairingsShape {
        func cut(_ moment: Timestamp?) -> Timestamp? { moment.map { Timestamp(milliseconds: ($0.milliseconds + 500) / 1_000 * 1_000) } }
        var cutShape = self
        cutShape.openUntil = cut(openUntil)
        for index in items.indices { cutShape.items[index].until = cut(items[index].until) }
        return cutShape
    }

    init(_ overview: PairingOverview) {
        self.init(openUntil: overview.openUntil.map(Timestamp.init(milliseconds:)), items: overview.items.map(PairingShape.init))
    }
}

extension PairingShape {
    init(_ view: PairingView) {
        let (state, digits, reason): (State, String?, String?) =
            switch view.stage {
            case .waiting: (.waiting, nil, nil)
            case .comparing(let digits): (.comparing, digits, nil)
            case .confirmed(let digits): (.confirmed, digits, nil)
            case .paired: (.paired, nil, nil)
            case .ended(let reason): (.ended, nil, reason.rawValue)
            }
        self.init(
            id: view.number, peer: view.peer.description, name: view.name, fingerprint: view.fingerprint?.description, isOwn: view.isOwn,
            state: state, digits: digits, reason: reason, message: view.message, until: view.until.map(Timestamp.init(milliseconds:)))
    }
}
