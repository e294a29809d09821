import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistNode

// An address named under `peers:`, whoever is there.
extension Doctor {
    struct Place {
        var address: StaticAddress
        var state: PeerDirectory.ConfiguredState
    }

    /// - Parameter text: a configured address, with or without its port.
    func configured(_ text: String) async -> Place? {
        let wanted = Array(text.lowercased().utf8)
        let places = await api.node.facts().staticPeers.filter { address, _ in
            [address.description, address.host, "[\(address.host)]"].contains { Array($0.lowercased().utf8) == wanted }
        }
        return places.first.map { Place(address: $0.address, state: $0.state) }
    }

    /// As of a peer; who it is, TLS shows.
    func steps(of place: Place) async -> [DoctorStep] {
        if case .isOwn = place.state { return [Self.isOwn] }
        if case .answered(let id) = place.state, let rows = await rows(of: id) { return await steps(of: id, rows) }
        let known = EndpointView(host: place.address.host, port: Int(place.address.port), via: "static")
        let (resolving, endpoints) = await resolve([known])
        let reaches = await reach(endpoints, nil)
        let rest = [resolving].compactMap { $0 } + Self.reaching(reaches)
        let found = reaches.compactMap(\.reach.peer)
        guard let id = found.first else { return [Self.record(place, nil)] + rest }
        guard id != api.node.id else { return [Self.isOwn] + rest }
        let met = await meeting(id, rows(of: id)?.first { $0.state != .ghost }?.trust ?? .stranger, reaches)
        return [Self.record(place, id)] + rest + met
    }

    private func rows(of id: PeerID) async -> [PeerView]? {
        guard let rows = try? await api.node.peers().filter({ $0.uuid == id }), !rows.isEmpty else { return nil }
        return rows
    }

    /// - Parameter id: who answers there now.
    static func record(_ place: Place, _ id: PeerID?) -> DoctorStep {
        let name = "\(place.address), named under `peers:`,"
        if let id { return DoctorStep("peer", .ok, "\(name) is \(id).") }
        return switch place.state {
        case .failed(let why): DoctorStep("peer", .failed, "\(name) was never met: \(why).", advice: ["Is hexlistd running there?"])
        case .asked, .answered, .isOwn: DoctorStep("peer", .failed, "\(name) was not met yet.", advice: ["Is hexlistd running there?"])
        }
    }
}
