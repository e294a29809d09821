import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistStore

/// From what node and store know to what the local API says.

extension PeerShape {
    init(_ view: PeerView) {
        let state: State =
            switch view.state {
            case .verified: .verified
            case .away: .away
            case .ghost: .ghost
            }
        self.init(
            uuid: view.uuid?.description, name: view.name, alias: view.alias, state: state, reason: view.reason, why: view.why,
            trust: view.trust.rawValue, fingerprint: view.fingerprint?.description, version: view.version, boot: view.boot?.description,
            endpoints: view.endpoints.map(EndpointShape.init), lastSeen: view.lastSeen.map(Timestamp.init(milliseconds:)),
            unread: view.unread)
    }
}

extension EndpointShape {
    init(_ view: EndpointView) {
        self.init(
            host: view.host, port: view.port, interface: view.interface, via: view.via,
            lastOK: view.lastOK.map(Timestamp.init(milliseconds:)))
    }
}

extension HexShape {
    /// - Parameter labels: of the peers that hexes say they are from.
    init(_ summary: HexSummary, _ labels: [PeerID: PeerLabel]) {
        let claimed = PeerID(summary.senderUUID).flatMap { $0 == summary.peer ? nil : labels[$0] }
        self.init(
            id: summary.id, location: summary.location.rawValue, senderUUID: summary.senderUUID, senderName: summary.senderName,
            senderAlias: claimed?.alias, peerUUID: summary.peer?.description, tag: summary.peerLabel.map(PeerTag.init),
            description: summary.description, subject: summary.subject,
            color: summary.color, linkCount: summary.linkCount, unread: summary.unread,
            receivedAt: Timestamp(milliseconds: summary.receivedAt), messageID: summary.messageID?.description)
    }

    /// With links and unknown members.
    /// - Parameter schemes: of links that are offered for opening.
    init(_ detail: HexDetail, _ labels: [PeerID: PeerLabel], openSchemes schemes: [String]) {
        self.init(detail.summary, labels)
        let content = detail.content
        links = content.links.map {
            var link = LinkShape(
                url: content.string($0.url), linkDescription: content.string($0.linkDescription), service: content.string($0.service))
            do throws(LinkFault) {
                link.opens = try LinkTarget(link.url, schemes: schemes).summary
            } catch {
                link.notOpened = error.description
            }
            return link
        }
        extra = JSONValue { $0.keptMembers(of: content) }
    }
}

extension SendShape {
    init(_ outcome: SendOutcome, _ labels: [PeerID: PeerLabel]) {
        self.init(
            outboxID: outcome.outboxID, messageID: outcome.messageID.description, peer: outcome.peer.description,
            tag: labels[outcome.peer].map(PeerTag.init), state: outcome.state, earlier: outcome.isEarlier, waitingFor: outcome.waitingFor,
            nextAttemptAt: outcome.nextAttemptAt.map(Timestamp.init(milliseconds:)), code: outcome.code, message: outcome.message)
    }
}

extension OutboxShape {
    init(_ view: OutboxView, mayHaveArrived: Bool? = nil) {
        self.init(
            outboxID: view.outboxID, messageID: view.messageID.description, peer: view.peer.description,
            tag: view.label.map(PeerTag.init), subject: view.subject, state: view.state, attempts: view.attempts,
            waitingFor: view.waitingFor, nextAttemptAt: view.nextAttemptAt.map(Timestamp.init(milliseconds:)), lastError: view.lastError,
            code: view.code, message: view.message, createdAt: Timestamp(milliseconds: view.createdAt), bytes: view.bytes,
            mayHaveArrived: mayHaveArrived)
    }
}

extension OutboxChange {
    init(_ change: Node.OutboxChange) {
        self.init(
            changed: change.changed, mayHaveArrived: change.mayHaveArrived, passedOver: change.passedOver, next: change.next.map { "\($0)" }
        )
    }
}

extension EventShape {
    /// Rows with the labels of their peers and the subjects of their hexes, as they are now: one look at each for all rows.
    static func of(_ rows: [EventRow], _ node: Node) async throws -> [EventShape] {
        let labels = await node.labels(of: rows.compactMap(\.peer))
        let hexes = rows.compactMap(\.hex)
        let subjects = hexes.isEmpty ? [:] : try await node.store.read { try $0.subjects(of: hexes) }
        return rows.map { EventShape($0, labels, subjects) }
    }

    /// - Parameters:
    ///   - labels: of the peers of the events.
    ///   - subjects: of their hexes.
    init(_ row: EventRow, _ labels: [PeerID: PeerLabel], _ subjects: [Int64: String] = [:]) {
        // The UUID of a ghost is what an announcement claims: whoever has it, and is trusted perhaps, may have nothing to do with it.
        let tag =
            row.type == .peerGhost
            ? row.peer.map { _ in PeerTag(trust: Trust.stranger.rawValue) } : row.peer.flatMap { labels[$0] }.map(PeerTag.init)
        self.init(
            number: row.number, at: Timestamp(milliseconds: row.at), type: row.type.rawValue, peer: row.peer?.description, tag: tag,
            hex: row.hex, subject: row.hex.flatMap { subjects[$0] }, outboxID: row.outboxID,
            data: row.data.flatMap { try? JSONValue(parsing: $0) })
    }
}
