public import HexlistAPI
import HexlistDiscovery
import HexlistEventLoop
public import HexlistModel
import HexlistStore

/// Pairing, as a person does it.
extension Node {
    /// Takes requests for two minutes.
    public func openPairing() -> PairingOverview {
        pairing.carry(pairing.desk.open(now: clocks.now), self)
        return pairings()
    }

    /// Takes none any more; one that came and is not answered is refused.
    public func closePairing() -> PairingOverview {
        pairing.carry(pairing.desk.close(now: clocks.now), self)
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
        let now = clocks.now
        if let key = view.fingerprint, let again = pairing.desk.mayTry(key, now: now) {
            throw HexlistError(
                .recentlyFailed, "Three exchanges of digits with \(Node.shown(view)) came to nothing within ten minutes.",
                hint: "A no, Ctrl-C and no answer count alike, for whoever guesses gets no more tries. The next one is possible in "
                    + "\(max(1, (again - now).milliseconds / 60_000 + 1)) min.")
        }
        guard let actions = pairing.desk.ask(peer, now: now) else {
            let other = pairing.desk.items.first.map { shown($0.peer) } ?? "another peer"
            throw HexlistError(
                .alreadyRunning, "A pairing with \(other) runs; there is one at a time.",
                hint: "`hexlist pair --list` shows it, `hexlist pair --reject PEER` ends it.")
        }
        // Its place in the directory outlives its session, as the request does.
        finder.apply(.pairingAsked(peer), self)
        pairing.carry(actions, self)
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
        let current = pairing.desk.items.first { $0.peer == peer }
        let (answer, actions) = pairing.desk.confirm(peer, digits: digits, number: number, now: clocks.now)
        pairing.carry(actions, self)
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
        let current = pairing.desk.items.first { $0.peer == peer }
        guard let actions = pairing.desk.reject(peer, now: clocks.now) else {
            throw noPairing(with: peer, "No pairing with \(shown(peer)) is under way.")
        }
        pairing.carry(actions, self)
        return try latest(current?.number, peer)
    }

    /// Returns the pairings that run and those that ended lately.
    public func pairings() -> PairingOverview {
        let times = times()
        // A pairing that a peer began is not listed before there are digits: peers begin and drop them as they like.
        let items = pairing.desk.items.filter { $0.isOwn || $0.stage != .opening }
        func met(_ peer: PeerID) -> PeerView? { view(of: peer, comparing: false).flatMap { $0.state == .ghost ? nil : $0 } }
        let ended = pairing.desk.outcomes.map { PairingView($0, of: met($0.peer)) }
        let running = items.map { PairingView($0, of: met($0.peer), until: times.milliseconds(of: $0.until)) }
        return PairingOverview(
            openUntil: pairing.desk.openUntil.map { Timestamp(milliseconds: times.milliseconds(of: $0)) },
            triesLeft: pairing.desk.openUntil.map { _ in pairing.desk.triesLeft },
            items: ended + running)
    }

    private func latest(_ number: Int?, _ peer: PeerID) throws(HexlistError) -> PairingView {
        guard let view = pairings().items.first(where: { $0.id == number }) else {
            throw noPairing(with: peer, "The pairing with \(shown(peer)) is over.")
        }
        return view
    }

    private func noPairing(with peer: PeerID, _ message: String) -> HexlistError {
        HexlistError(.notFound, message, hint: "`hexlist pair --list` shows what runs.")
    }

    private func shown(_ peer: PeerID) -> String { label(of: peer)?.text() ?? peer.shortID }
    private static func shown(_ view: PeerView) -> String { view.label.text(.named) }
}
