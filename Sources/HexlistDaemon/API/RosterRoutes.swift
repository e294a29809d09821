import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import Hummingbird
import NIOCore

struct RosterRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/roster", use: export)
        router.post("/v1/roster", use: importing)
    }

    private func export(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let lines = try await api.node.roster.entries().flatMap { RosterPeer($0).lineBytes }
        return Response(
            status: .ok, headers: [.contentType: LocalAPI.bulkType], body: ResponseBody(byteBuffer: ByteBuffer(bytes: lines)))
    }

    private func importing(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let (slot, body) = (try await api.importSlot(), request.body)
        return APIReply.json(try await api.importing(slot) { try await imported(body) })
    }

    private func imported(_ body: RequestBody) async throws -> RosterImportResult {
        var roster = try await RequestInput.read(body, into: RosterReader()) { try $0.feed($1) }
        try roster.finish()
        try Task.checkCancellation()
        let outcomes = try await api.node.roster.add(roster.entries.map(\.entry))
        var reply = RosterImportResult(refused: roster.refusals)
        for ((line, entry), outcome) in zip(roster.entries, outcomes) {
            switch outcome {
            case .changed: reply.changed += 1
            case .unchanged: reply.unchanged += 1
            case .own: reply.own += 1
            case .anotherKey:
                let message = "Another peer already has the UUID \(entry.peer)."
                reply.refused.append(BulkRefusal(line: line, code: "wrongKey", message: message))
            case .aliasTaken(let owner):
                let message = "Its alias is already used for peer \(owner)."
                reply.refused.append(BulkRefusal(line: line, code: "aliasTaken", message: message))
            case .tooManyGroups:
                let message = "There are at most \(PeerGroup.limit) groups, and \(PeerGroup.memberLimit) peers in one."
                reply.refused.append(BulkRefusal(line: line, code: "tooManyGroups", message: message))
            }
        }
        reply.refused.sort { $0.line < $1.line }
        return reply
    }
}

extension RosterPeer {
    init(_ entry: RosterEntry) {
        self.init(
            uuid: entry.peer.description, kind: entry.kind == .hexlist ? nil : entry.kind.rawValue,
            fingerprint: entry.fingerprint.description, name: entry.name, alias: entry.alias,
            trust: entry.trust.rawValue,
            addresses: entry.addresses.map { HostPort.text($0.host, $0.port) }, groups: entry.groups,
            card: entry.card.map { Base64.encode($0.bytes) })
    }
}
