package import HexlistModel
import HexlistTransport
package import HexlistWire

/// The owner of the sessions. `DuplicateChallenges` asks it about pairings, and reports identity conflicts to it.
package protocol DuplicateChallengesHost: Actor {
    /// Whether the two users are comparing the digits of a pairing on this session.
    func isPairing(on session: PeerSession) -> Bool
    /// Asks the host to end a duplicate session later, after the pairing on it.
    /// - Returns: whether the host will do so.
    func postponesEnd(of session: PeerSession) -> Bool
    /// Handles an identity conflict: two sessions with different boot nonces of the peer are alive. Afterwards the caller ends both
    /// sessions with `Bye` `conflict`.
    func foundTwoStarts(of peer: PeerID, _ older: BootNonce, _ newer: BootNonce)
}

/// Challenges older sessions of a peer to prove that they are alive, and ends duplicate sessions as `DuplicateSessions` decides.
///
/// Sessions with different boot nonces belong either to one machine that restarted, or to two machines with one identity. A challenge is a
/// Ping on the older session, sent after the newer session's Hello. After a restart, nobody can answer it, so an answer shows two machines.
/// Until the challenge is decided, nothing is sent to the peer.
package final class DuplicateChallenges {
    /// A Ping on a session, sent because of a newer session.
    private struct Challenge {
        let message: String
        let older: PeerSession
        let newer: PeerSession
        /// The newer session's boot nonce, if it differs from the older session's.
        let otherStart: BootNonce?
    }

    /// The unanswered challenges of each peer, at most one for each session.
    private var challenges: [PeerID: [Challenge]] = [:]

    private let sessions: SessionTable

    package init(_ sessions: SessionTable) { self.sessions = sessions }

    /// Whether any challenge is unanswered.
    package var isAsking: Bool { !challenges.isEmpty }

    /// Whether a check for an identity conflict of the peer is in progress.
    package func isUndecided(_ peer: PeerID) -> Bool { challenges[peer]?.contains { $0.otherStart != nil } ?? false }

    /// Whether an answer on the challenged session would show an identity conflict. It is then not ended in favour of another one.
    package func isWitness(_ session: PeerSession) -> Bool {
        session.peer.flatMap { challenges[$0] }?.contains { $0.older === session && $0.otherStart != nil } ?? false
    }

    /// Sends a Ping on an older session of the peer because of a newer one.
    package func challenge(_ older: PeerSession, against newer: PeerSession) {
        guard let peer = newer.peer, let newBoot = newer.machine.peerHello?.boot else { return }
        let otherStart = older.machine.peerHello?.boot == newBoot ? nil : newBoot
        if let present = challenges[peer]?.first(where: { $0.older === older }) {
            // If a challenge may show an identity conflict, challenges because of further sessions do not replace it.
            guard present.otherStart == nil else { return }
            remove(present, of: peer)
        }
        // A session has one Ping at a time, so this Ping replaces that of a diagnostic request.
        older.checks.ping.take()?.done(.displaced)
        let message = "still-there-\(String(UInt64.random(in: .min ... .max), radix: 16))"
        challenges[peer, default: []].append(Challenge(message: message, older: older, newer: newer, otherStart: otherStart))
        older.act { $0.challenge(message, now: sessions.clocks.now, &$1) }
    }

    /// Challenges a peer's older sessions because of its newest one, unless they are challenged already. Called after the end of a session,
    /// because the challenges with that session were removed.
    /// - Parameter open: the peer's open sessions, oldest first.
    package func challengeAgain(_ open: [PeerSession]) {
        guard let newest = open.last, let peer = newest.peer else { return }
        for older in open.dropLast() where !(challenges[peer]?.contains { $0.older === older } ?? false) {
            challenge(older, against: newest)
        }
    }

    /// Handles the end of a challenge.
    /// - Parameter answered: whether the peer answered the Ping in time.
    package func ended(_ session: PeerSession, message: String, answered: Bool, _ host: isolated some DuplicateChallengesHost) {
        guard let peer = session.peer, let challenge = challenges[peer]?.first(where: { $0.older === session }),
            PeerTextComparison.areEqual(challenge.message, message)
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

    private func end(_ session: PeerSession, _ host: isolated some DuplicateChallengesHost) {
        if !host.postponesEnd(of: session) { session.act { $0.end(.duplicateSession, &$1) } }
    }

    private func remove(_ challenge: Challenge, of peer: PeerID) {
        challenges[peer]?.removeAll { $0.older === challenge.older }
        if challenges[peer]?.isEmpty ?? false { challenges[peer] = nil }
    }

    /// Ends the sessions of a key that exceed the limit, after the first frame of a new session. The sessions that the peer dialled and
    /// those that this machine dialled count separately. Otherwise each machine would end different ones if both dial at the same time.
    package func endSurplus(of key: Fingerprint, newest: PeerSession, _ host: isolated some DuplicateChallengesHost) {
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

    /// Whether two sessions belong to different starts of the peer. `false` if one of them has no boot nonce, because its Hello has not
    /// arrived.
    private static func areOfTwoStarts(_ one: BootNonce?, _ other: BootNonce?) -> Bool {
        if let one, let other { one != other } else { false }
    }

    package func sessionEnded(_ session: PeerSession, _ end: Session.EndReason) {
        guard let peer = session.peer else { return }
        for challenge in challenges[peer] ?? [] where challenge.older === session || challenge.newer === session {
            // The peer's newer process is still alive, so an answer on the older session would still show an identity conflict.
            if challenge.newer === session, challenge.otherStart != nil, !end.mayBeDeath { continue }
            remove(challenge, of: peer)
        }
    }
}

extension Session.EndReason {
    /// Whether the session may have ended because the peer's process exited.
    fileprivate var mayBeDeath: Bool {
        switch self {
        case .lost, .own(.silent), .own(.receiptTimeout), .peer(.shutdown, _): true
        case .own, .peer: false
        }
    }
}
