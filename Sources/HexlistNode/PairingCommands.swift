public import HexlistAPI
import HexlistDiscovery
import HexlistEventLoop
public import HexlistModel
import HexlistStore

/// The pairing commands of the user.
public struct PairingCommands: Sendable {
    let node: Node

    /// Accepts pairing requests for two minutes.
    public func open() async -> PairingOverview {
        await node.perform { node in
            node.pairingDriver.execute(node.pairingDriver.coordinator.open(now: node.clocks.now), node)
            return Self.overview(node)
        }
    }

    /// Stops accepting pairing requests. A request that is not answered yet is refused.
    public func close() async -> PairingOverview {
        await node.perform { node in
            node.pairingDriver.execute(node.pairingDriver.coordinator.close(now: node.clocks.now), node)
            return Self.overview(node)
        }
    }

    /// Sends a pairing request to a peer, repeatedly for two minutes until it is accepted.
    /// - Throws: `HexlistError`: `alreadyRunning` during another pairing; `recentlyFailed` after three failures within ten minutes;
    ///   `badRequest` for a blocked peer and for this machine.
    public func request(with peer: PeerID) async throws -> PairingView {
        try await node.perform { node in
            guard peer != node.id else { throw HexlistError(.badRequest, "You cannot pair with this machine itself.") }
            let view = try node.peerList.view(of: peer) ?? Self.announced(peer.description, node).first ?? node.peerList.required(peer)
            let name = view.label.text(.named)
            guard view.knownKind == .hexlist else {
                throw HexlistError(
                    .badRequest, "\(name) uses LocalSend, which has no pairing.",
                    hint: "To compare fingerprints and trust it: `hexlist peer trust \(peer.shortID)`.")
            }
            guard view.trust != .blocked else {
                throw HexlistError(.badRequest, "\(name) is blocked here.", hint: "First run `hexlist peer unblock \(peer)`.")
            }
            let now = node.clocks.now
            if let key = view.fingerprint, let again = node.pairingDriver.coordinator.mayTry(key, now: now) {
                throw HexlistError(
                    .recentlyFailed, "Three pairing attempts with \(name) failed within ten minutes.",
                    hint: "A no, Ctrl-C and no answer all count, to stop guessing. The next attempt is possible in "
                        + "\(max(1, (again - now).milliseconds / 60_000 + 1)) min.")
            }
            guard let actions = node.pairingDriver.coordinator.ask(peer, now: now) else {
                let other = node.pairingDriver.coordinator.items.first.map { node.peerList.text(of: $0.peer) } ?? "another peer"
                throw HexlistError(
                    .alreadyRunning, "A pairing with \(other) is already running.",
                    hint: "To see it: `hexlist pair --list`. To end it: `hexlist pair --reject PEER`.")
            }
            // Keeps the peer in the directory after its session ends, because the request continues.
            node.finder.apply(.pairingAsked(peer), node)
            node.pairingDriver.execute(actions, node)
            guard let item = Self.overview(node).items.last(where: { $0.peer == peer }) else {
                throw HexlistError(.internal, "The pairing ended immediately.")
            }
            return item
        }
    }

    /// Finds a peer to pair with. While this machine hides, announced strangers are found too, although their identity was not probed.
    /// - Throws: as `Peers.resolve`.
    public func resolve(_ text: String) async throws -> PeerID {
        do {
            return try await node.peers.resolve(text).requiredID()
        } catch let error as HexlistError where error.code == .notFound {
            let announced = await node.perform { Set(Self.announced(text, $0).compactMap(\.uuid)) }
            guard announced.count == 1, let peer = announced.first else { throw error }
            return peer
        }
    }

    /// Confirms the digits that this machine shows. Wrong digits end the pairing.
    /// - Parameter number: the number of the pairing whose digits the user saw. If the pairing has other digits now, the confirmation is
    ///   reported as outdated and does not count as a failed attempt.
    public func confirm(with peer: PeerID, digits: String, number: Int? = nil) async throws -> PairingView {
        try await node.perform { node in
            let current = node.pairingDriver.coordinator.items.first { $0.peer == peer }
            let (answer, actions) = node.pairingDriver.coordinator.confirm(peer, digits: digits, number: number, now: node.clocks.now)
            node.pairingDriver.execute(actions, node)
            switch answer {
            case .accepted: break
            case .outdated:
                throw HexlistError(
                    .gone, "These digits are out of date.", hint: "For the current ones: `hexlist pair --list`.")
            case .noDigits:
                // A repeated confirmation succeeds, but only with the same digits.
                guard case .confirmed(digits)? = current?.stage else {
                    throw Self.noPairing("\(node.peerList.text(of: peer)) is not waiting for an answer.")
                }
            }
            return try Self.latest(current?.number, peer, node)
        }
    }

    /// Rejects the pairing request of a peer, or cancels this machine's request to the peer.
    /// - Throws: `HexlistError` `notFound` if there is no pairing with the peer.
    public func reject(with peer: PeerID) async throws -> PairingView {
        try await node.perform { node in
            let current = node.pairingDriver.coordinator.items.first { $0.peer == peer }
            guard let actions = node.pairingDriver.coordinator.reject(peer, now: node.clocks.now) else {
                throw Self.noPairing("There is no pairing with \(node.peerList.text(of: peer)).")
            }
            node.pairingDriver.execute(actions, node)
            return try Self.latest(current?.number, peer, node)
        }
    }

    /// The pairings in progress and those that ended recently.
    public func overview() async -> PairingOverview { await node.perform { Self.overview($0) } }

    private static func overview(_ node: isolated Node) -> PairingOverview {
        let list = node.peerList
        let coordinator = node.pairingDriver.coordinator
        func known(_ peer: PeerID) -> PeerView? { list.view(of: peer, comparing: false).flatMap { $0.state == .ghost ? nil : $0 } }
        // A pairing that a peer began is listed only once it has digits, because peers can begin and abandon any number of pairings.
        let items = coordinator.items.filter { $0.isOwn || $0.stage != .opening }
        return PairingOverview(
            openUntil: coordinator.openUntil.map { Timestamp(milliseconds: list.times.milliseconds(of: $0)) },
            triesLeft: coordinator.openUntil.map { _ in coordinator.triesLeft },
            items: coordinator.outcomes.map { PairingView($0, of: known($0.peer)) }
                + items.map { PairingView($0, of: known($0.peer), until: list.times.milliseconds(of: $0.until)) })
    }

    /// Announced strangers that were not probed because this machine hides.
    private static func announced(_ name: String, _ node: isolated Node) -> [PeerView] {
        guard !node.configuration.announce else { return [] }
        return PeerReference(name).ghosts(among: node.peerList.views()).filter { $0.reason == GhostReason.unverified.rawValue }
    }

    private static func latest(_ number: Int?, _ peer: PeerID, _ node: isolated Node) throws(HexlistError) -> PairingView {
        guard let view = overview(node).items.first(where: { $0.id == number }) else {
            throw noPairing("The pairing with \(node.peerList.text(of: peer)) is over.")
        }
        return view
    }

    private static func noPairing(_ message: String) -> HexlistError {
        HexlistError(.notFound, message, hint: "Current pairings: `hexlist pair --list`.")
    }
}

extension Node {
    public nonisolated var pairing: PairingCommands { PairingCommands(node: self) }
}
