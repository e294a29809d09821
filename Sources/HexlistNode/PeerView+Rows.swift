import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistStore

extension PeerView {
    /// - Parameters:
    ///   - record: the record of the peer; `nil` for a ghost and for a stranger without one.
    ///   - fingerprint: the key that a session has proven; `nil` if there is none.
    ///   - times: converts instants of the directory to wall-clock times.
    ///   - now: milliseconds since 1970.
    init(_ row: DirectoryRow, record: PeerRecord?, fingerprint: Fingerprint?, times: MonotonicToWallClock, at now: Int64) {
        let state: State =
            switch row.state {
            case .verified: .verified
            case .away: .away
            case .ghost: .ghost
            }
        self.init(
            uuid: row.peer, name: row.name, alias: record?.alias, state: state, reason: row.reason?.rawValue, why: row.why,
            trust: record?.trust ?? .stranger, fingerprint: fingerprint ?? record?.fingerprint, version: row.version,
            boot: row.boot,
            endpoints: row.endpoints.map { known in
                EndpointView(
                    host: known.endpoint.host, port: Int(known.endpoint.port), interface: known.endpoint.interface,
                    via: known.endpoint.via.rawValue, lastOK: known.lastOK.map { Timestamp(milliseconds: times.milliseconds(of: $0)) })
            },
            lastSeen: (row.lastSeen.map(times.milliseconds) ?? record?.lastSeenAt).map(Timestamp.init(milliseconds:)),
            unread: record?.unread ?? 0, groups: record?.groups ?? [], receive: record?.receive ?? .inbox, notify: record?.notify ?? true,
            fetchLimit: record?.fetchLimit, fetchedToday: record?.fetchedBytes(at: now), fetchTo: record?.fetchTo ?? .cache,
            openLinks: record?.openLinks ?? 0, routes: record?.routes ?? .any, own: record?.isOwn ?? false)
    }

    /// A known peer without a row in the directory.
    /// - Parameter now: milliseconds since 1970.
    init(away record: PeerRecord, at now: Int64) {
        self.init(
            uuid: record.peer, kind: record.kind, name: record.name, alias: record.alias, state: .away, reason: nil,
            why: "It was seen earlier; it is not announced now.", trust: record.trust, fingerprint: record.fingerprint,
            version: record.version, boot: record.boot,
            endpoints: record.endpoints.map {
                EndpointView(
                    host: $0.host, port: $0.port, interface: $0.interface, via: $0.via,
                    lastOK: $0.lastOKAt > 0 ? Timestamp(milliseconds: $0.lastOKAt) : nil)
            },
            lastSeen: record.lastSeenAt.map(Timestamp.init(milliseconds:)), unread: record.unread, groups: record.groups,
            receive: record.receive, notify: record.notify, fetchLimit: record.fetchLimit,
            fetchedToday: record.fetchedBytes(at: now), fetchTo: record.fetchTo, openLinks: record.openLinks, routes: record.routes,
            own: record.isOwn)
    }

    /// Whether the UUID is proven, so that the user can name the peer. Also `true` during an identity conflict.
    var isPeer: Bool { state != .ghost || reason == GhostReason.conflict.rawValue && fingerprint != nil }

    /// The kind of the peer. A kind that this version does not know counts as a Hexlist peer.
    var knownKind: PeerKind { kind?.known ?? .hexlist }

    /// The name that this machine shows for the peer.
    var shownName: String { alias ?? name }
}

extension DirectoryRow {
    /// Whether the row is an unusual ghost. Announcements of this machine itself and duplicate announcements of a listed peer are normal.
    var isOddGhost: Bool { state == .ghost && reason != .self && reason != .duplicate }
}

extension PeerEndpoint {
    /// - Parameter lastOKAt: the time of the last connection to the endpoint, in milliseconds since 1970.
    init(_ endpoint: Endpoint, _ lastOKAt: Int64) {
        self.init(
            host: endpoint.host, port: Int(endpoint.port), interface: endpoint.interface, via: endpoint.via.rawValue, lastOKAt: lastOKAt)
    }
}

extension KnownPeer {
    init(_ record: PeerRecord) {
        self.init(
            id: record.peer, name: record.name, trust: record.trust, version: record.version,
            endpoints: record.endpoints.map {
                Endpoint(host: $0.host, port: UInt16(clamping: $0.port), interface: $0.interface, via: .lastKnown)
            })
    }
}

extension StaticAddress {
    init(_ peer: StaticPeer) { self.init(host: peer.host, port: UInt16(clamping: peer.port)) }
}

extension SendOutcome {
    init(_ row: OutboxRow) {
        self.init(
            outboxID: row.id, messageID: row.messageID, peer: row.peer, state: row.state, code: row.code,
            message: row.message ?? row.lastError)
    }
}

extension HeldQuotas {
    init(_ limits: NodeConfiguration.Limits) {
        self.init(
            hexesPerPeer: limits.heldHexesPerPeer, bytesPerPeer: limits.heldBytesPerPeer, hexes: limits.heldHexes, bytes: limits.heldBytes,
            inboxHexes: limits.inboxHexes)
    }
}
