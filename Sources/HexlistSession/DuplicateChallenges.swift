package import HexlistModel
import HexlistTransport
package import HexlistWire

/// The owner of the sessions: it knows of pairings and of the other peers.
package protocol DuplicatesHost: Actor {
    /// Whether two people compare the digits of a pairing on the session.
    func isPairing(on session: PeerSession) -> Bool
    /// Asks whether the end of a duplicate waits for the pairing on it; then the host ends the session itself.
    func postponesEnd(of session: PeerSession) -> Bool
    /// Two starts of the peer live at once: two machines have its identity. Both sessions end (`conflict`) after this.
    func foundTwoStarts(of peer: PeerID, _ older: BootNonce, _ newer: BootNonce)
}

/// Finds out which of several sessions of one peer live, and ends those that are too many (`DuplicateSessions`).
///
/// Two sessions with different boot numbers are of one machine that restarted, or of two machines with one identity. The older one's answer
/// to a Ping that was sent after the newer one's Hello tells which: a machine that restarted cannot give it. Until then nothing is sent
/// to the peer.
package final class DuplicateChallenges {
    /// The Ping on one session, sent because a newer session came.
    private struct Challenge {
        let message: String
        let older: PeerSession
        let newer: PeerSession
        /// The newer session's boot number if it is another one than the older session's.
        let otherStart: BootNonce?
    }

    /// The challenges without an answer, at most one for each session.
    private var challenges: [PeerID: [Challenge]] = [:]

    private let sessions: SessionTable

    package init(_ sessions: SessionTable) { self.sessions = sessions }

    package var isAsking: Bool { !challenges.isEmpty }

    /// Whether it is not known yet if two starts of the peer live at once.
    package func isUndecided(_ peer: PeerID) -> Bool { challenges[peer]?.contains { $0.otherStart != nil } ?? false }

    /// Whether a session's answer may show that its peer is two machines, so that no bound on sessions may end it.
    package func isWitness(_ session: PeerSession) -> Bool {
        session.peer.flatMap { challenges[$0] }?.contains { $0.older === session && $0.otherStart != nil } ?? false
    }

    package func challenge(_ older: PeerSession, against newer: PeerSession) {
        guard let peer = newer.peer, let newBoot = newer.machine.peerHello?.boot else { return }
        let otherStart = older.machine.peerHello?.boot == newBoot ? nil : newBoot
        if let present = challenges[peer]?.first(where: { $0.older === older }) {
            // However many sessions another start begins, the answer to the first one's challenge is waited for.
            guard present.otherStart == nil else { return }
            remove(present, of: peer)
        }
        // A session is asked one question at a time: an earlier one gets no answer any more.
        older.checks.ping.take()?.done(.displaced)
        let message = "still-there-\(String(UInt64.random(in: .min ... .max), radix: 16))"
        challenges[peer, default: []].append(Challenge(message: message, older: older, newer: newer, otherStart: otherStart))
        older.act { $0.challenge(message, now: sessions.clocks.now, &$1) }
    }

    /// Asks older sessions again after one of three has gone, and with it the decision about the other two.
    /// - Parameter open: the peer's sessions, oldest first.
    package func challengeAgain(_ open: [PeerSession]) {
        guard let newest = open.last, let peer = newest.peer else { return }
        for older in open.dropLast() where !(challenges[peer]?.contains { $0.older === older } ?? false) {
            challenge(older, against: newest)
        }
    }

    package func ended(_ session: PeerSession, message: String, answered: Bool, _ host: isolated some DuplicatesHost) {
        guard let peer = session.peer, let challenge = challenges[peer]?.first(where: { $0.older === session }),
            PeerText.areEqual(challenge.message, message)
        else { return }
        remove(challenge, of: peer)
        let (older, newer) = (session, challenge.newer)
        guard answered else { return older.act { $0.end(.silent, &$1) } }
        if let newBoot = challenge.otherStart, let oldBoot = older.machine.peerHello?.boot {
            host.foundTwoStarts(of: peer, oldBoot, newBoot)
            newer.act { $0.end(.conflict, &$1) }
            older.act { $0.end(.conflict, &$1) }
            return
        }
        guard newer.connection.isOpen else { return }
        switch DuplicateSessions.resolution(
            own: sessions.own, peer: peer, olderDialledHere: older.connection.role == .dialer,
            newerDialledHere: newer.connection.role == .dialer)
        {
        case .endOlder: end(older, host)
        case .endNewer: end(newer, host)
        case .leaveToPeer: break
        }
    }

    private func end(_ session: PeerSession, _ host: isolated some DuplicatesHost) {
        if !host.postponesEnd(of: session) { session.act { $0.end(.duplicateSession, &$1) } }
    }

    private func remove(_ challenge: Challenge, of peer: PeerID) {
        challenges[peer]?.removeAll { $0.older === challenge.older }
        if challenges[peer]?.isEmpty ?? false { challenges[peer] = nil }
    }

    /// Ends surplus sessions of a key after one more said Hello, or showed that it says none. Sessions dialled by the peer and by this node
    /// count separately: if both dial at the same moment, each side would end others.
    package func endSurplus(of key: Fingerprint, newest: PeerSession, _ host: isolated some DuplicatesHost) {
        let older = sessions.sessions(of: key).filter {
            $0 !== newest && $0.machine.hasBegun && $0.connection.role == newest.connection.role
        }
        let asked = Set((challenges[key.peerID] ?? []).map { ObjectIdentifier($0.older) })
        let newBoot = newest.machine.peerHello?.boot
        let surplus = DuplicateSessions.surplus(
            older.map {
                DuplicateSessions.OlderSession(
                    isAnswered: $0.machine.isOpen && !asked.contains(ObjectIdentifier($0)),
                    isPairing: host.isPairing(on: $0),
                    isOtherStart: Self.areOfTwoStarts($0.machine.peerHello?.boot, newBoot))
            })
        for index in surplus.older { older[index].act { $0.end(.limit, &$1) } }
        if surplus.isNewest { newest.act { $0.end(.limit, &$1) } }
    }

    /// Whether two boot numbers are of two starts. A session without Hello shows none.
    private static func areOfTwoStarts(_ one: BootNonce?, _ other: BootNonce?) -> Bool {
        if let one, let other { one != other } else { false }
    }

    package func sessionEnded(_ session: PeerSession, _ end: Session.End) {
        guard let peer = session.peer else { return }
        for challenge in challenges[peer] ?? [] where challenge.older === session || challenge.newer === session {
            // The newer start that ended its session lives all the same, and the older one's answer still shows that both do.
            if challenge.newer === session, challenge.otherStart != nil, !end.mayBeDeath { continue }
            remove(challenge, of: peer)
        }
    }
}

extension Session.End {
    /// Whether the peer's process may have ended with the session.
    fileprivate var mayBeDeath: Bool {
        switch self {
        case .lost, .own(.silent), .own(.receiptTimeout), .peer(.shutdown, _): true
        case .own, .peer: false
        }
    }
}
