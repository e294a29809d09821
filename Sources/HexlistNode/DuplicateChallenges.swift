import HexlistModel
import HexlistTransport
import HexlistWire

protocol DuplicatesHost: PairingHost {
    nonisolated var id: PeerID { get }
    var sessions: SessionTable { get }
}

/// Finds out which of several sessions of one peer live, and ends those that are too many (`DuplicateSessions`).
final class DuplicateChallenges {
    /// The older sessions that were asked and have not answered, by the challenge.
    private var challenges: [String: (newer: PeerSession, older: PeerSession)] = [:]

    var isAsking: Bool { !challenges.isEmpty }

    func challenge(_ older: PeerSession, against newer: PeerSession) {
        // A session is asked one thing at a time: what it was asked before has no answer any more.
        for (message, pair) in challenges where pair.older === older { challenges[message] = nil }
        older.checks.ping.take()?.done(.displaced)
        let message = "still-there-\(String(UInt64.random(in: .min ... .max), radix: 16))"
        challenges[message] = (newer, older)
        older.act { $0.challenge(message, now: .now, &$1) }
    }

    /// Asks older sessions again after one of three has gone, and with it the decision about the other two.
    /// - Parameter open: the peer's sessions, oldest first.
    func challengeAgain(_ open: [PeerSession]) {
        guard let newest = open.last else { return }
        for older in open.dropLast() where !challenges.values.contains(where: { $0.older === older }) {
            challenge(older, against: newest)
        }
    }

    func ended(_ session: PeerSession, message: String, answered: Bool, _ host: isolated some DuplicatesHost) {
        guard let (newer, older) = challenges.removeValue(forKey: message), older === session else { return }
        guard answered else { return older.act { $0.end(.silent, &$1) } }
        guard newer.connection.isOpen, let oldBoot = older.machine.peerHello?.boot, let newBoot = newer.machine.peerHello?.boot else {
            return
        }
        guard oldBoot == newBoot else {
            if let peer = newer.peer { host.finder.apply(.identityConflict(peer, oldBoot, newBoot), host) }
            newer.act { $0.end(.conflict, &$1) }
            older.act { $0.end(.conflict, &$1) }
            return
        }
        switch DuplicateSessions.verdict(
            own: host.id, peer: newer.peer ?? host.id, olderDialledHere: older.connection.role == .dialer,
            newerDialledHere: newer.connection.role == .dialer)
        {
        case .endOlder: end(older, host)
        case .endNewer: end(newer, host)
        case .leaveToPeer: break
        }
    }

    private func end(_ session: PeerSession, _ host: isolated some DuplicatesHost) {
        if !host.pairing.postponesEnd(of: session) { session.act { $0.end(.duplicateSession, &$1) } }
    }

    /// Ends surplus sessions of a key after one more said Hello, or showed that it says none. Sessions dialled by the peer and by this node
    /// count separately: if both dial at the same moment, each side would end others.
    func endSurplus(of key: Fingerprint, newest: PeerSession, _ host: isolated some DuplicatesHost) {
        let older = host.sessions.sessions(of: key).filter {
            $0 !== newest && $0.machine.hasBegun && $0.connection.role == newest.connection.role
        }
        let asked = Set(challenges.values.map { ObjectIdentifier($0.older) })
        let surplus = DuplicateSessions.surplus(
            older.map {
                DuplicateSessions.Older(
                    isAnswered: $0.machine.isOpen && !asked.contains(ObjectIdentifier($0)),
                    isPairing: host.pairing.desk.hasExchange(on: ObjectIdentifier($0)))
            })
        for index in surplus { older[index].act { $0.end(.limit, &$1) } }
    }

    func sessionEnded(_ session: PeerSession) {
        for (message, pair) in challenges where pair.older === session || pair.newer === session { challenges[message] = nil }
    }
}
