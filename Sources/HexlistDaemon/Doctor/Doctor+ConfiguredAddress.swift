import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistNode

// The checks of an address that is configured under `peers:`.
extension Doctor {
    struct ConfiguredAddress {
        var address: StaticAddress
        var state: PeerDirectory.StaticAddressState
    }

    /// Finds an address that is configured under `peers:`.
    /// - Parameter text: the address, with or without its port.
    func configured(_ text: String) async -> ConfiguredAddress? {
        let wanted = Array(text.lowercased().utf8)
        let addresses = await api.node.diagnostics.facts().staticPeers.filter { address, _ in
            [address.description, address.host, "[\(address.host)]"].contains { Array($0.lowercased().utf8) == wanted }
        }
        return addresses.first.map { ConfiguredAddress(address: $0.address, state: $0.state) }
    }

    /// Makes the checks of the peer at a configured address. If no peer is known there, the TLS handshake shows which peer it is.
    func steps(of peer: ConfiguredAddress) async -> [DoctorStep] {
        switch peer.state {
        case .isOwn: return [Self.isOwn]
        case .answered(let id), .away(let id, _):
            let rows = await rows(of: id)
            if !rows.isEmpty { return await steps(of: id, rows) }
        case .probing, .failed: break
        }
        let known = EndpointView(host: peer.address.host, port: Int(peer.address.port), via: "static")
        let (resolving, endpoints) = await resolve([known])
        let reaches = await reach(endpoints, nil)
        let rest = [resolving].compactMap { $0 } + Self.reaching(reaches)
        let found = reaches.compactMap(\.reach.peer)
        guard let id = found.first else { return [Self.record(peer, nil, [])] + rest }
        guard id != api.node.id else { return [Self.isOwn] + rest }
        let rows = await rows(of: id)
        let met = await session(id, rows.first { $0.state != .ghost }?.trust.known ?? .stranger, reaches)
        return [Self.record(peer, id, rows)] + rest + met
    }

    private func rows(of id: PeerID) async -> [PeerView] { (try? await api.node.peers.all().filter { $0.uuid == id }) ?? [] }

    /// Makes the step `peer` for a configured address.
    /// - Parameters:
    ///   - id: the peer that answers at the address now; `nil` if none does.
    ///   - rows: the list entries with the UUID of this peer, including ghosts.
    static func record(_ peer: ConfiguredAddress, _ id: PeerID?, _ rows: [PeerView]) -> DoctorStep {
        let name = "\(peer.address), named under `peers:`,"
        if let row = rows.first(where: { $0.state != .ghost }), row.trust == .blocked {
            return record(row, others: rows.filter { $0 != row })
        }
        if let id { return DoctorStep("peer", .ok, "\(name) is \(id).") }
        return switch peer.state {
        case .failed(let why), .away(_, let why):
            DoctorStep("peer", .failed, "\(name) cannot be reached: \(why).", advice: ["Is hexlistd running there?"])
        case .probing, .answered, .isOwn:
            DoctorStep("peer", .failed, "\(name) has never been reached.", advice: ["Is hexlistd running there?"])
        }
    }
}
