import HexlistAPI
import HexlistFiles
public import HexlistLists
public import HexlistModel
import NIOCore

/// Finds the services whose files can be listed and linked to, by the names that users type.
public struct ServiceDirectory: Sendable {
    let transfers: FileTransfers

    /// Returns all services: the own shares, then trusted peers in the order of `TransfersHost.peers`, then remotes.
    public func all() async throws -> [any ContentService] {
        let views = try await transfers.node.peers()
        let friends = views.filter { $0.state != .ghost && $0.trust == .trusted }.compactMap { PeerShares($0, transfers) }
        return [OwnShares(transfers: transfers)] + friends + (try await transfers.remotes?.all() ?? [])
    }

    /// Finds a service by a name that the user typed: `shares`, the name of a peer as in other commands, or the name of a remote with or
    /// without `rclone.` before it.
    /// - Throws: `HexlistError`: `notFound`; `ambiguous` if several services have the name; `badRequest` if the peer is not trusted.
    public func named(_ name: String) async throws -> any ContentService {
        var found: [any ContentService] = []
        if PeerTextComparison.areEqual(name, LocalAPI.ownService) { found.append(OwnShares(transfers: transfers)) }
        let remotes = try await transfers.remotes?.all() ?? []
        found += remotes.filter { PeerTextComparison.areEqual($0.view.name, name) }
        if found.isEmpty { found = remotes.filter { PeerTextComparison.areEqual(LocalAPI.remotePrefix + $0.view.name, name) } }
        let peer: PeerView
        do {
            peer = try await transfers.node.peer(named: name)
        } catch let error as HexlistError where error.code == .notFound {
            if found.count == 1 { return found[0] }
            let isSelf = PeerTextComparison.areEqual(name, await transfers.configuration.name)
            throw HexlistError(
                .notFound, "There is no service \"\(TerminalText.clean(name, columns: 60))\".",
                hint: isSelf ? "Your own shares are `shares:`." : TypedNetworkAddress(name)?.advice ?? "`hexlist services` lists them.")
        }
        guard found.isEmpty else {
            let kinds = found.map { $0.view.kind.known == .own ? "this machine's shares" : "a remote of rclone" }
            throw HexlistError(
                .ambiguous, "\"\(TerminalText.clean(name, columns: 60))\" is \(kinds.joined(separator: ", ")), and a peer.",
                hint: found.contains { $0.view.kind.known == .rclone }
                    ? "Name the peer by its UUID, or the remote `\(LocalAPI.remotePrefix)\(TerminalText.clean(name, columns: 60))`."
                    : "Name the peer by its UUID, or give it another alias with `hexlist peer rename`.")
        }
        guard peer.trust == .trusted, let shares = PeerShares(peer, transfers) else {
            throw HexlistError(
                .badRequest, "\(peer.label.text()) is not trusted; files are only exchanged by peers that trust each other.",
                hint: "To trust each other: `hexlist pair`.")
        }
        return shares
    }
}

extension FileTransfers {
    /// Requests lists from an own machine (`ListRequestTarget`). An overview has to arrive within 15 s, and a page of up to 2 MiB within
    /// 5 min, because few machines are asked at the same time.
    /// - Throws: as `list`; `recentlyFailed` if the peer cannot answer at the moment.
    public func requestList(_ target: ListRequestTarget, from peer: PeerID) async throws -> [UInt8] {
        guard node.isTrusted(peer) else { throw HexlistError(.gone, "The peer is no longer trusted.") }
        let (limit, timeout): (Int, TimeAmount) =
            target == .overview ? (ListLimits.overviewBytes, .seconds(15)) : (ListLimits.receivedPageBytes, .seconds(300))
        return try await fetching.lists.ask(peer, target.description, limit: limit, timeout: timeout, self)
    }

    /// Requests a listing from a peer.
    func list(_ peer: PeerID, _ target: FileRequestTarget) async throws -> [UInt8] {
        guard node.isTrusted(peer) else { throw HexlistError(.gone, "The peer is no longer trusted.") }
        return try await fetching.lists.ask(peer, target, self)
    }
}
