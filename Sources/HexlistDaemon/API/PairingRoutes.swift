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
            let look = { @Sendable [keeper = api.keeper] in PairingsShape(await keeper.node.pairings()) }
            if EventStreamReply.isWanted(request) { return EventStreamReply.response(WatchSource(event: "pairings", look: look), api: api) }
            return APIReply.json(await look())
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
        let peer = try await api.node.resolveToPair(text)
        return APIReply.json(PairingShape(try await api.node.requestPairing(with: peer)))
    }

    private func peer(_ context: BasicRequestContext) async throws -> PeerID {
        try await api.node.resolve(try APIInput.text(context, "peer")).requiredID()
    }
}

extension PairingsShape {
    init(_ overview: PairingOverview) {
        self.init(
            openUntil: overview.openUntil.map(Timestamp.init(milliseconds:)), triesLeft: overview.triesLeft,
            items: overview.items.map(PairingShape.init))
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
            id: view.number, peer: view.peer.description, name: view.name, alias: view.alias, trust: view.trust.rawValue,
            fingerprint: view.fingerprint?.description, isOwn: view.isOwn, state: state, digits: digits, reason: reason,
            message: view.message, until: view.until.map(Timestamp.init(milliseconds:)), triesLeft: view.triesLeft)
    }
}
