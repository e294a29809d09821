import HexlistAPI
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistStore
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// Drives the `PairingCoordinator`: executes its actions (frames, dials, trust, events) and its timer.
final class PairingDriver {
    var coordinator: PairingCoordinator
    private let timer: DeadlineTimer
    /// Whether a dial for a pairing request of this machine is in progress.
    private var isDialling = false
    /// A duplicate session that is ended once the pairing on it is over.
    private var endsAfterwards: PeerSession?
    /// The last task that stores trust after a pairing; each one waits for the previous one. `stop` waits for it, so that either both peers
    /// trust each other or neither does.
    private var trusting: Task<Void, Never>?

    init(own: Fingerprint, on eventLoop: any EventLoop, _ clocks: Clocks) {
        coordinator = PairingCoordinator(own: own)
        timer = DeadlineTimer(on: eventLoop, clocks)
    }

    func stop(_ node: isolated Node) async {
        timer.cancel()
        await trusting?.value
    }

    // MARK: Session events

    func received(_ frame: Pairing, _ session: PeerSession, _ node: isolated Node) {
        guard let peer = session.connection.peerFingerprint else { return }
        let actions = coordinator.received(
            frame, from: peer, on: ObjectIdentifier(session), canAnswer: session.connection.isWritable, freshNonce: .random(),
            now: node.clocks.now)
        if case .refuse? = actions.first {
            // Passed to the session directly, which coalesces the refusals of many frames into one; `execute` would send one for each frame.
            session.refuse(frame)
        } else {
            execute(actions, node)
        }
    }

    func sessionsChanged(of peer: PeerID, _ node: isolated Node) {
        guard coordinator.concerns(peer) else { return }
        execute(coordinator.sessionsChanged(of: peer, now: node.clocks.now), node)
    }

    func sessionEnded(_ session: PeerSession, _ peer: PeerID, _ node: isolated Node) {
        if endsAfterwards === session { endsAfterwards = nil }
        execute(coordinator.sessionEnded(ObjectIdentifier(session), now: node.clocks.now), node)
        sessionsChanged(of: peer, node)
    }

    /// Postpones the end of a duplicate session if a pairing exchange is in progress on it.
    /// - Returns: whether the end is postponed until the exchange is over. If the session ended between the answers of the two users, only
    ///   one of them would have agreed.
    func postponesEnd(of session: PeerSession) -> Bool {
        guard coordinator.hasExchange(on: ObjectIdentifier(session)) else { return false }
        endsAfterwards = session
        return true
    }

    // MARK: Actions

    func execute(_ actions: [PairingCoordinator.Action], _ node: isolated Node) {
        for action in actions {
            switch action {
            case .send(let frame, let key): node.sessions[key]?.act { $0.sendPairing(frame, &$1) }
            case .refuse: break  // handled in `received`
            case .reach(let peer): reach(peer, node)
            case .shown(let peer, let digits, let wasAsked):
                let name = node.finder.directory.provenName(of: peer) ?? ""
                coordinator.nameShown(name)
                guard wasAsked else { break }
                node.logger.notice("pairing requested", metadata: ["peer.id": "\(peer)"])
                node.finder.apply(.pairingAsked(peer), node)
                node.events.record(
                    .pairingRequested, peer: peer,
                    data: ["digits": digits, "name": PeerName.cut(node.registry[peer]?.alias ?? name, bytes: 256)], node)
            case .trust(let peer, let key, let number, let name): trust(peer, key, number, name, node)
            case .finished(let outcome): over(outcome, node)
            case .changed: node.watchers.notify()
            }
        }
        if let session = endsAfterwards, !coordinator.hasExchange(on: ObjectIdentifier(session)) {
            endsAfterwards = nil
            session.act { $0.end(.duplicateSession, &$1) }
        }
        node.endUninvited()
        timer.set(coordinator.nextDeadline, node) { $0.pairingDriver.execute($0.pairingDriver.coordinator.tick(now: $0.clocks.now), $0) }
    }

    /// Begins the exchange of a pairing request on the session with the peer, or dials the peer if there is no session.
    private func reach(_ peer: PeerID, _ node: isolated Node) {
        guard !node.isStopping else { return }
        let open = node.sessions(with: peer)
        guard open.isEmpty else {
            // If there are two sessions, one will soon end as a duplicate, and would end an exchange on it.
            guard open.count == 1, let session = open.first, session.machine.isOpen, session.connection.isWritable,
                let key = session.connection.peerFingerprint
            else { return }
            return execute(coordinator.begin(on: ObjectIdentifier(session), with: key, nonce: .random(), now: node.clocks.now), node)
        }
        let endpoints = node.endpoints(of: peer)
        guard !endpoints.isEmpty else { return execute(coordinator.notReached(peer), node) }
        guard !isDialling, !node.isDialling(peer) else { return }
        isDialling = true
        node.dial(peer, endpoints) { node, connected in
            node.pairingDriver.isDialling = false
            if !connected { node.pairingDriver.execute(node.pairingDriver.coordinator.notReached(peer), node) }
        }
    }

    private func trust(_ peer: PeerID, _ key: Fingerprint, _ number: Int, _ name: String?, _ node: isolated Node) {
        let before = trusting
        trusting = Task {
            await before?.value
            var failure: String?
            do {
                try await node.peers.setTrust(peer, .trusted, proven: key, name: name)
            } catch {
                failure = (error as? HexlistError)?.message ?? "The store could not be written."
                node.logger.error("trust could not be stored", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
            }
            node.pairingDriver.execute(node.pairingDriver.coordinator.stored(number, failure: failure), node)
        }
    }

    private func over(_ outcome: PairingCoordinator.FinishedPairing, _ node: isolated Node) {
        let view = PairingView(outcome, of: nil)
        node.logger.notice(
            "pairing ended", metadata: ["peer.id": "\(outcome.peer)", "pairing.state": "\(view.reason?.text ?? view.state.rawValue)"])
        switch view.state {
        case .paired: node.events.record(.pairingCompleted, peer: outcome.peer, node)
        case .ended: node.events.record(.pairingFailed, peer: outcome.peer, data: ["reason": view.reason?.text ?? ""], node)
        case .waiting, .comparing, .confirmed: break
        }
    }
}
