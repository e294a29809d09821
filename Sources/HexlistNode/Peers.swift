public import HexlistAPI
import HexlistDiscovery
import HexlistEventLoop
public import HexlistModel
import HexlistSession
import HexlistStore

/// Lists the peers of a node, and changes their names, trust and settings for the user.
public struct Peers: Sendable {
    let node: Node

    /// All peers, sorted by state (verified, away, ghost), then by name.
    public func all() async throws -> [PeerView] {
        await node.perform { node in
            node.devices.looked(node)
            await node.registry.reload(node)
            return node.peerList.views()
        }
    }

    /// The names of peers in messages; none for this machine.
    public func labels(of peers: [PeerID]) async -> [PeerID: PeerDisplayName] {
        await node.perform { $0.peerList.labels(of: peers) }
    }

    /// Finds a peer as a user names it (`PeerReference`).
    /// - Parameter counting: whether to read the stored records, with counters such as unread hexes, again first.
    /// - Throws: `HexlistError` `notFound`, or `ambiguous` with the candidates in its message.
    public func resolve(_ text: String, counting: Bool = true) async throws -> PeerView {
        try await node.perform { node in
            if counting { await node.registry.reload(node) }
            return try node.peerList.resolve([text])[0]
        }
    }

    /// Trusts or blocks a peer; `.stranger` undoes both.
    /// - Parameters:
    ///   - proven: the key of the peer, if the caller has it from a session.
    ///   - name: the name that the user saw when deciding, which becomes the alias; `nil` for the latest name.
    /// - Throws: `HexlistError` `notFound` without a proven key, `badRequest` if the peer is known by another key.
    @discardableResult
    public func setTrust(_ peer: PeerID, _ trust: Trust, proven: Fingerprint? = nil, name: String? = nil) async throws -> PeerView {
        try await node.perform { node in
            await node.registry.reload(node)
            var before = try node.peerList.required(peer)
            if let proven { before.fingerprint = proven }
            if trust != .stranger, before.fingerprint == nil {
                throw HexlistError(
                    .notFound, "\(before.label.text()) was never seen, so there is no fingerprint to trust.",
                    hint: "Wait until `hexlist peers` lists it.")
            }
            var contact = node.peerList.contact(peer, before)
            let at = node.clocks.milliseconds
            if before.knownKind != .hexlist {
                if trust == .trusted { contact.endpoints = node.devices.endpoints(of: before.fingerprint, node) }
                try await node.store.setTrust(trust, of: contact, name: name, at: at)
                await node.registry.reload(node)
                node.refusedPeersNotifier.mayAcceptMore(node)
                if let device = before.fingerprint { node.devices.requests.unanswered.trustChanged(of: device, to: trust, node) }
                node.notifyWatchers()
                return node.peerList.view(of: peer) ?? before
            }
            if trust == .trusted { contact.endpoints = node.finder.directory.answeredEndpoints(of: peer).map { PeerEndpoint($0, at) } }
            try await node.store.setTrust(trust, of: contact, name: name, at: at)
            await node.registry.reload(node)
            node.registry.reserveAddresses(node)
            node.finder.apply(.trustChanged(peer, trust), node)
            node.trustChanged(of: peer, to: trust)
            if trust == .blocked, let actions = node.pairingDriver.coordinator.reject(peer, now: node.clocks.now) {
                node.pairingDriver.execute(actions, node)
            }
            node.endUninvited()
            node.notifyWatchers()
            return node.peerList.view(of: peer) ?? before
        }
    }

    /// Changes the user's settings for a peer: alias, inbox, notifications, automatic fetching.
    /// - Throws: `HexlistError` `badRequest` for an alias that another peer has or that is not allowed (`PeerAlias.fault`).
    public func change(_ peer: PeerID, _ change: PeerChange) async throws -> PeerView {
        try await node.perform { node in
            await node.registry.reload(node)
            let before = try node.peerList.required(peer)
            if case .set(let alias?) = change.alias, let fault = PeerAlias.fault(alias, of: peer) {
                throw HexlistError(.badRequest, fault, hint: "Choose another one: `hexlist peer rename \(peer.shortID) ALIAS`.")
            }
            if change.pin != nil, before.knownKind != .localsend {
                throw HexlistError(.badRequest, "\(before.label.text(.named)) is not a device with LocalSend, so it has no PIN.")
            }
            try await node.store.change(change, of: node.peerList.contact(peer, before), at: node.clocks.milliseconds)
            await node.registry.reload(node)
            if let pin = change.pin { node.devices.pinChanged(to: pin.isEmpty ? nil : pin, of: peer, node) }
            if change.receive != nil { node.refusedPeersNotifier.mayAcceptMore(node) }
            if change.routes != nil { node.routes.sender.queued(for: [peer], again: [], node) }
            node.notifyWatchers()
            return node.peerList.view(of: peer) ?? before
        }
    }

    /// Replaces a peer by the trusted peer that is the same machine after a reinstallation: moves alias, settings, groups and waiting
    /// hexes, and forgets the old peer.
    /// - Throws: `HexlistError` `badRequest` if the new peer is not trusted, or the old one is online.
    public func takeOver(from old: PeerID, by new: PeerID) async throws -> PeerView {
        try await node.perform { node in
            await node.registry.reload(node)
            let (before, after) = (try node.peerList.required(old), try node.peerList.required(new))
            guard old != new, after.trust == .trusted else {
                throw HexlistError(
                    .badRequest, "\(after.label.text()) is not trusted, so it cannot take over from another peer.",
                    hint: "Pair first: `hexlist pair \(new.shortID)`.")
            }
            guard before.state != .verified else {
                throw HexlistError(.badRequest, "\(before.label.text()) is online, so it is another machine.")
            }
            let rows = try await node.store.takeOver(from: old, by: new)
            await node.registry.reload(node)
            node.registry.reserveAddresses(node)
            node.finder.apply(.forget(old), node)
            node.applyTrust(.stranger, toSessionsOf: old)
            node.endUninvited()
            if rows > 0 { node.deliver { $0.retried([], of: [new], $1) } }
            node.notifyWatchers()
            return node.peerList.view(of: new) ?? after
        }
    }

    /// Deletes the record of a peer, but not its hexes. A peer that is online becomes a stranger.
    public func forget(_ peer: PeerID) async throws {
        try await node.perform { node in
            await node.registry.reload(node)
            let kind = try node.peerList.required(peer).knownKind
            try await node.store.forgetPeer(peer)
            await node.registry.reload(node)
            guard kind == .hexlist else { return node.notifyWatchers() }
            node.registry.reserveAddresses(node)
            node.finder.apply(.forget(peer), node)
            node.routes.sender.forget(peer, node)
            node.applyTrust(.stranger, toSessionsOf: peer)
            node.endUninvited()
            node.notifyWatchers()
        }
    }
}

extension Node {
    public nonisolated var peers: Peers { Peers(node: self) }

    var peerList: PeerList {
        PeerList(
            own: id, registry: registry, finder: finder, devices: devices, times: times(), now: clocks.milliseconds, steady: clocks.now,
            routeConflicts: routes.sender.conflicts)
    }

    /// Applies a trust change to the sessions, capacity notices and deliveries of a peer. A newly trusted peer gets a capacity notice,
    /// because its hexes that were refused before are accepted now. Rows that it refused are sent again, because it probably trusts this
    /// node too. Other refused peers get a notice as well, because quota that held hexes of this peer used may be free now.
    func trustChanged(of peer: PeerID, to trust: Trust) {
        applyTrust(trust, toSessionsOf: peer)
        refusedPeersNotifier.forget(peer)
        routes.sender.queued(for: [peer], again: [], self)
        if trust == .trusted {
            refusedPeersNotifier.notify(peer, self)
            deliver { $0.trustBegan(peer, $1) }
        }
        refusedPeersNotifier.mayAcceptMore(self)
    }

    /// Applies a trust change to all sessions of a peer, also those still before Hello: sends a new Hello, or ends them.
    func applyTrust(_ trust: Trust, toSessionsOf peer: PeerID) {
        if trust != .trusted { transfers.trustEnded(peer) }
        for session in sessions.values where session.connection.peerFingerprint?.peerID == peer {
            switch trust {
            case .blocked: endBlocked(session)
            // This session has the memory and rate limits of a trusted peer, so it has to end.
            case .stranger where session.machine.isTrusted: session.act { $0.end(.idle, &$1) }
            case .stranger, .trusted:
                sendHello(session)
                registry.rememberCard(session.machine.peerHello?.card, of: session.connection.peerFingerprint, self)
            }
        }
    }
}
