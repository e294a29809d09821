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

protocol PairingHost: LinkHost, PeersHost, EventHost {
    var pairing: PairingDriver { get }
    func session(_ key: PairingCoordinator.SessionKey) -> PeerSession?
    /// Trusts a peer by the key that was compared.
    /// - Parameter name: what the peer called itself when the digits were shown.
    func trust(_ peer: PeerID, by key: Fingerprint, name: String?) async throws
    /// Ends what nobody asks for any more, while this machine hides.
    func endUninvited()
}

/// The shell of the `PairingCoordinator`: carries out frames, dials, trust and events, and runs its clock.
final class PairingDriver {
    var desk: PairingCoordinator
    private let timer: DeadlineTimer
    /// Whether a dial for an own request is under way.
    private var isDialling = false
    /// A duplicate that ends once the exchange on it is over.
    private var endsAfterwards: PeerSession?
    /// The last of the writes that record finished pairings, one after the other. `stop` waits for it, so that both sides trust or neither
    /// does.
    private var trusting: Task<Void, Never>?

    init(own: Fingerprint, on eventLoop: any EventLoop, _ clocks: Clocks) {
        desk = PairingCoordinator(own: own)
        timer = DeadlineTimer(on: eventLoop, clocks)
    }

    func stop(_ host: isolated some PairingHost) async {
        timer.cancel()
        await trusting?.value
    }

    // MARK: From sessions

    func received(_ frame: Pairing, _ session: PeerSession, _ host: isolated some PairingHost) {
        guard let peer = session.connection.peerFingerprint else { return }
        let actions = desk.received(
            frame, from: peer, on: ObjectIdentifier(session), canAnswer: session.connection.isWritable, freshNonce: .random(),
            now: host.clocks.now)
        if case .refuse? = actions.first {
            // Not through `carry`: there may be many refused frames, and they are answered together.
            session.refuse(frame)
        } else {
            carry(actions, host)
        }
    }

    func sessionsChanged(of peer: PeerID, _ host: isolated some PairingHost) {
        guard desk.concerns(peer) else { return }
        carry(desk.sessionsChanged(of: peer, now: host.clocks.now), host)
    }

    func sessionEnded(_ session: PeerSession, _ peer: PeerID, _ host: isolated some PairingHost) {
        if endsAfterwards === session { endsAfterwards = nil }
        carry(desk.sessionEnded(ObjectIdentifier(session), now: host.clocks.now), host)
        sessionsChanged(of: peer, host)
    }

    /// - Returns: whether the end of a duplicate waits for the exchange on it: between the answers of two people one of them would have
    ///   agreed and the other not.
    func postponesEnd(of session: PeerSession) -> Bool {
        guard desk.hasExchange(on: ObjectIdentifier(session)) else { return false }
        endsAfterwards = session
        return true
    }

    // MARK: Actions

    func carry(_ actions: [PairingCoordinator.Action], _ host: isolated some PairingHost) {
        for action in actions {
            switch action {
            case .send(let frame, let key): host.session(key)?.act { $0.sendPairing(frame, &$1) }
            case .refuse: break  // where the frame came in
            case .reach(let peer): reach(peer, host)
            case .shown(let peer, let digits, let wasAsked):
                let name = host.finder.directory.provenName(of: peer) ?? ""
                desk.nameShown(name)
                guard wasAsked else { break }
                host.logger.notice("pairing requested", metadata: ["peer.id": "\(peer)"])
                host.finder.apply(.pairingAsked(peer), host)
                host.events.record(
                    .pairingRequested, peer: peer,
                    data: ["digits": digits, "name": PeerName.cut(host.known[peer]?.alias ?? name, bytes: 256)], host)
            case .trust(let peer, let key, let number, let name): trust(peer, key, number, name, host)
            case .over(let outcome): over(outcome, host)
            case .changed: host.watchers.notify()
            }
        }
        if let session = endsAfterwards, !desk.hasExchange(on: ObjectIdentifier(session)) {
            endsAfterwards = nil
            session.act { $0.end(.duplicateSession, &$1) }
        }
        host.endUninvited()
        timer.set(desk.nextDeadline, host) { $0.pairing.carry($0.pairing.desk.tick(now: $0.clocks.now), $0) }
    }

    /// Begins on the one session there is, or makes one.
    private func reach(_ peer: PeerID, _ host: isolated some PairingHost) {
        guard !host.isStopping else { return }
        let open = host.sessions(with: peer)
        guard open.isEmpty else {
            // Of two sessions one is about to be ended as a duplicate, and would end the exchange with it.
            guard open.count == 1, let session = open.first, session.machine.isOpen, session.connection.isWritable,
                let key = session.connection.peerFingerprint
            else { return }
            return carry(desk.begin(on: ObjectIdentifier(session), with: key, nonce: .random(), now: host.clocks.now), host)
        }
        let endpoints = host.endpoints(of: peer)
        guard !endpoints.isEmpty else { return carry(desk.notReached(peer), host) }
        guard !isDialling, !host.isDialling(peer) else { return }
        isDialling = true
        host.dial(peer, endpoints) { host, connected in
            host.pairing.isDialling = false
            if !connected { host.pairing.carry(host.pairing.desk.notReached(peer), host) }
        }
    }

    private func trust(_ peer: PeerID, _ key: Fingerprint, _ number: Int, _ name: String?, _ host: isolated some PairingHost) {
        let before = trusting
        trusting = Task {
            await before?.value
            var failure: String?
            do {
                try await host.trust(peer, by: key, name: name)
            } catch {
                failure = (error as? HexlistError)?.message ?? "The store could not be written."
                host.logger.error("trust could not be stored", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
            }
            host.pairing.carry(host.pairing.desk.stored(number, failure: failure), host)
        }
    }

    private func over(_ outcome: PairingCoordinator.Outcome, _ host: isolated some PairingHost) {
        let view = PairingView(outcome, of: nil)
        host.logger.notice(
            "pairing ended", metadata: ["peer.id": "\(outcome.peer)", "pairing.state": "\(view.reason?.text ?? view.state.rawValue)"])
        switch view.state {
        case .paired: host.events.record(.pairingCompleted, peer: outcome.peer, host)
        case .ended: host.events.record(.pairingFailed, peer: outcome.peer, data: ["reason": view.reason?.text ?? ""], host)
        case .waiting, .comparing, .confirmed: break
        }
    }
}
