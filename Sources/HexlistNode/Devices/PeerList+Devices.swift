import HexlistAPI
import HexlistLocalSend
import HexlistModel
import HexlistStore

extension PeerList {
    /// The views of all devices: those in the directory, their ghosts, and recorded ones that are away.
    func deviceViews() -> [PeerView] {
        var listed: Set<PeerID> = []
        var views: [PeerView] = []
        for row in devices.directory.listing(now: steady) {
            let view = deviceView(row)
            if view.state != .ghost, let peer = view.uuid { listed.insert(peer) }
            views.append(view)
        }
        return views + registry.devices.values.filter { !listed.contains($0.peer) }.map(awayDevice)
    }

    /// The view of one device; `nil` for a ghost and for a Hexlist peer.
    func deviceView(of peer: PeerID) -> PeerView? {
        if let record = registry.devices[peer] {
            guard let row = record.fingerprint.flatMap({ devices.directory.row(of: $0, now: steady) }) else { return awayDevice(record) }
            return deviceView(row)
        }
        return devices.directory.fingerprint(of: peer).flatMap { devices.directory.row(of: $0, now: steady) }.map { deviceView($0) }
    }

    private func deviceView(_ row: DeviceRow) -> PeerView {
        let record = row.fingerprint.flatMap { fingerprint in
            registry.devices[fingerprint.peerID].flatMap { $0.fingerprint == fingerprint ? $0 : nil }
        }
        let lastSeen = row.provenAt.map { Timestamp(milliseconds: times.milliseconds(of: $0)) }
        let endpoints = row.endpoints.map {
            EndpointView(host: $0.address.description, port: $0.port, via: PeerEndpoint.localSend, lastOK: lastSeen)
        }
        func view(_ state: PeerView.State, reason: String? = nil, why: String?, _ record: PeerRecord?) -> PeerView {
            PeerView(
                uuid: row.fingerprint?.peerID, kind: .localsend, name: row.name, alias: record?.alias, state: state, reason: reason,
                why: why, trust: record?.trust ?? .stranger, fingerprint: state == .ghost ? nil : row.fingerprint, version: row.version,
                endpoints: endpoints, lastSeen: lastSeen ?? record?.lastSeenAt.map(Timestamp.init(milliseconds:)),
                unread: record?.unread ?? 0, groups: record?.groups ?? [], receive: record?.receive ?? .inbox,
                notify: record?.notify ?? true)
        }
        switch row.state {
        case .verified: return view(.verified, why: nil, record)
        case .away: return view(.away, why: Self.whyAway, record)
        case .ghost(let reason): return view(.ghost, reason: reason.rawValue, why: row.why.map(Self.sentence), nil)
        }
    }

    private func awayDevice(_ record: PeerRecord) -> PeerView {
        var view = PeerView(away: record, at: now)
        view.why = Self.whyAway
        return view
    }

    private static let whyAway = "Devices with LocalSend answer only while the app is open."

    /// Returns a ghost's reason as a sentence.
    static func sentence(_ why: String) -> String { "It \(why)." }
}

extension PeerEndpoint {
    /// The value of `via` for an address at which a device proved its certificate.
    static let localSend = "localsend"

    /// - Parameter lastOKAt: milliseconds since 1970.
    init(_ endpoint: DeviceEndpoint, lastOKAt: Int64) {
        self.init(host: endpoint.address.description, port: endpoint.port, interface: nil, via: Self.localSend, lastOKAt: lastOKAt)
    }
}
