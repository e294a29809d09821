import HexlistDiscovery
public import HexlistModel
import HexlistStore
import HexlistTransport
import HexlistWire
import NIOCore

/// The desk decides; this carries out: frames, dials, trust, events, its clock.
extension Node {
    // MARK: What a person does

    /// Takes requests for two minutes.
    public func openPairing() -> PairingOverview {
        carry(pairing.open(now: .now))
        return pairings()
    }

    /// Takes none any more; one that came and is not answered is refused.
    public func closePairing() -> PairingOverview {
        carry(pairing.close(now: .now))
        return pairings()
    }

    /// Asks a peer, again and again for two minutes until it takes the request.
    /// - Throws: `HexlistError` `alreadyRunning` where another pairing runs, `recentlyFailed` after three failures in ten
    ///   minutes, `badRequest` for a blocked peer and for this machine itself.
    public func requestPairing(with peer: PeerID) throws(HexlistError) -> PairingView {
        guard peer != id else { throw HexlistError(.badRequest, "That is this machine itself.") }
        guard let view = view(of: peer) ?? unasked(called: peer.description).first else { throw Node.unknown(peer) }
        guard view.trust != .blocked else {
            throw HexlistError(.badRequest, "\(Node.shown(view)) is blocked here.", hint: "`hexlist peer unblock \(peer)` first.")
        }
        let now = ContinuousClock.Instant.now
        if let key = view.fingerprint, let again = pairing.mayTry(key, now: now) {
            throw HexlistError(
                .recentlyFailed, "Three exchanges of digits with \(Node.shown(view)) came to nothing within ten minutes.",
                hint: "A no, Ctrl-C and no answer count alike, for whoever guesses gets no more tries. The next one is possible in "
                    + "\(max(1, (again - now).milliseconds / 60_000 + 1)) min.")
        }
        guard let actions = pairing.ask(peer, now: now) else {
            let other = pairing.items.first.map { shown($0.peer) } ?? "another peer"
            throw HexlistError(
                .alreadyRunning, "A pairing with \(other) runs; there is one at a time.",
                hint: "`hexlist pair --list` shows it, `hexlist pair --reject PEER` ends it.")
        }
        // Its place in the directory outlives its session, as the request does.
        apply(.pairingAsked(peer))
        carry(actions)
        guard let item = pairings().items.last(where: { $0.peer == peer }) else {
            throw HexlistError(.internal, "The pairing ended at once.")
        }
        return item
    }

    /// A PEER to pair with. While this machine hides that may be a stranger that is only announced: nobody has asked who it is.
    /// - Throws: as `resolve`.
    public func resolveToPair(_ text: String) async throws -> PeerID {
        do {
            return try await resolve(text).requiredID()
        } catch let error as HexlistError where error.code == .notFound {
            let announced = Set(unasked(called: text).compactMap(\.uuid))
            guard announced.count == 1, let peer = announced.first else { throw error }
            return peer
        }
    }

    /// Announced strangers that this machine did not ask, because it hides.
    private func unasked(called text: String) -> [PeerView] {
        guard !configuration.announce else { return [] }
        return PeerReference(text).ghosts(among: peerViews()).filter { $0.reason == GhostReason.unverified.rawValue }
    }

    /// Says yes to the digits that are shown; any other digits are a no.
    /// - Parameter number: the pairing the person looked at; then digits that are shown no longer are no failure.
    /// - Throws: `HexlistError` `notFound` where no digits of this peer wait for an answer, `gone` where they changed.
    public func confirmPairing(with peer: PeerID, digits: String, number: Int? = nil) throws(HexlistError) -> PairingView {
        let current = pairing.items.first { $0.peer == peer }
        let (answer, actions) = pairing.confirm(peer, digits: digits, number: number, now: .now)
        carry(actions)
        switch answer {
        case .given: break
        case .outdated:
            throw HexlistError(
                .gone, "Those digits are shown no longer.", hint: "Compare the ones that are: `hexlist pair --list`.")
        case .noDigits:
            // Said twice is said once; other digits than those on the screen are no yes.
            guard case .confirmed(digits)? = current?.stage else {
                throw noPairing(with: peer, "No digits of \(shown(peer)) wait for an answer.")
            }
        }
        return try latest(current?.number, peer)
    }

    /// Says no, or takes an own request back.
    /// - Throws: `HexlistError` `notFound` where nothing is under way with the peer.
    public func rejectPairing(with peer: PeerID) throws(HexlistError) -> PairingView {
        let current = pairing.items.first { $0.peer == peer }
        guard let actions = pairing.reject(peer, now: .now) else {
            throw noPairing(with: peer, "No pairing with \(shown(peer)) is under way.")
        }
        carry(actions)
        return try latest(current?.number, peer)
    }

    /// What runs and what ended lately.
    public func pairings() -> PairingOverview {
        let times = times()
        // What a peer began is nothing to see before there are digits: they come and go as it likes.
        let items = pairing.items.filter { $0.isOwn || $0.stage != .opening }
        let views = items.isEmpty && pairing.outcomes.isEmpty ? [] : peerViews().filter { $0.state != .ghost }
        func view(of peer: PeerID) -> PeerView? { views.first { $0.uuid == peer } }
        let ended = pairing.outcomes.map { PairingView($0, of: view(of: $0.peer)) }
        let running = items.map { PairingView($0, of: view(of: $0.peer), until: times.milliseconds(of: $0.until)) }
        return PairingOverview(
            openUntil: pairing.openUntil.map(times.milliseconds), triesLeft: pairing.openUntil.map { _ in pairing.triesLeft },
            items: ended + running)
    }

    private func latest(_ number: Int?, _ peer: PeerID) throws(HexlistError) -> PairingView {
        guard let view = pairings().items.first(where: { $0.number == number }) else {
            throw noPairing(with: peer, "The pairing with \(shown(peer)) is over.")
        }
        return view
    }

    private func noPairing(with peer: PeerID, _ message: String) -> HexlistError {
        HexlistError(.notFound, message, hint: "`hexlist pair --list` shows what runs.")
    }

    private func shown(_ peer: PeerID) -> String { label(of: peer)?.text() ?? peer.shortID }
    private static func shown(_ view: PeerView) -> String { view.label.text(.named) }

    // MARK: From sessions

    func pairingReceived(_ frame: Pairing, _ session: PeerSession) {
        guard let peer = session.connection.peerFingerprint else { return }
        let actions = pairing.received(
            frame, from: peer, on: ObjectIdentifier(session), canAnswer: session.connection.isWritable, freshNonce: Node.nonce(), now: .now)
        if case .refuse? = actions.first {
            // Not by way of `carry`: refused frames are many at times, and are answered together.
            session.machine.refusePairing(frame)
        } else {
            carry(actions)
        }
    }

    func pairingSessionsChanged(of peer: PeerID) {
        guard pairing.concerns(peer) else { return }
        carry(pairing.sessionsChanged(of: peer, now: .now))
    }

    func pairingSessionEnded(_ session: PeerSession, _ peer: PeerID) {
        if endsAfterPairing === session { endsAfterPairing = nil }
        carry(pairing.sessionEnded(ObjectIdentifier(session), now: .now))
        pairingSessionsChanged(of: peer)
    }

    func stopPairing(with peer: PeerID) {
        if let actions = pairing.reject(peer, now: .now) { carry(actions) }
    }

    private static func nonce() -> PairingNonce {
        var random = SystemRandomNumberGenerator()
        return PairingNonce(using: &random)
    }

    // MARK: Actions

    private func carry(_ actions: [PairingDesk.Action]) {
        for action in actions {
            switch action {
            case .send(let frame, let key): sessions[key]?.act { $0.sendPairing(frame, &$1) }
            case .refuse: break  // where the frame came in
            case .reach(let peer): reach(peer)
            case .shown(let peer, let digits, let wasAsked):
                let name = directory.provenName(of: peer) ?? ""
                pairing.nameShown(name)
                guard wasAsked else { break }
                logger.notice("pairing requested", metadata: ["peer.id": "\(peer)"])
                apply(.pairingAsked(peer))
                events.record(
                    .pairingRequested, peer: peer, data: ["digits": digits, "name": PeerName.cut(known[peer]?.alias ?? name, bytes: 256)],
                    self)
            case .trust(let peer, let key, let number, let name): trust(peer, key, number, name)
            case .over(let outcome): over(outcome)
            case .changed: notifyWatchers()
            }
        }
        if let session = endsAfterPairing, !pairing.hasExchange(on: ObjectIdentifier(session)) {
            endsAfterPairing = nil
            session.act { $0.end(.duplicateSession, &$1) }
        }
        endUninvited()
        pairingTimer.set(pairing.nextDeadline, self) { $0.carry($0.pairing.tick(now: .now)) }
    }

    /// Begins on the one session there is, or makes one.
    private func reach(_ peer: PeerID) {
        guard !isStopping else { return }
        let open = links[peer]?.sessions ?? []
        guard open.isEmpty else {
            // Of two sessions one is just being found to be too many, and would take the exchange with it.
            guard open.count == 1, let session = open.first, session.machine.isOpen, session.connection.isWritable,
                let key = session.connection.peerFingerprint
            else { return }
            return carry(pairing.begin(on: ObjectIdentifier(session), with: key, nonce: Node.nonce(), now: .now))
        }
        let endpoints = directory.endpoints(of: peer)
        guard !endpoints.isEmpty else { return carry(pairing.notReached(peer)) }
        guard !isDiallingToPair, links[peer]?.isDialling != true else { return }
        isDiallingToPair = true
        dial(peer, endpoints) { node, connected in
            node.isDiallingToPair = false
            if !connected { node.carry(node.pairing.notReached(peer)) }
        }
    }

    private func trust(_ peer: PeerID, _ key: Fingerprint, _ number: Int, _ name: String?) {
        let before = trusting
        trusting = Task {
            await before?.value
            do {
                _ = try await setTrust(peer, .trusted, proven: key, name: name)
                carry(pairing.stored(number, failure: nil))
            } catch {
                let told = (error as? HexlistError)?.message ?? "The store could not be written."
                logger.error("trust could not be stored", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                carry(pairing.stored(number, failure: told))
            }
        }
    }

    private func over(_ outcome: PairingDesk.Outcome) {
        let view = PairingView(outcome, of: nil)
        logger.notice("pairing ended", metadata: ["peer.id": "\(outcome.peer)", "pairing.state": "\(view.stage)"])
        switch view.stage {
        case .paired: events.record(.pairingCompleted, peer: outcome.peer, self)
        case .ended(let reason): events.record(.pairingFailed, peer: outcome.peer, data: ["reason": reason.rawValue], self)
        case .waiting, .comparing, .confirmed: break
        }
    }

}
