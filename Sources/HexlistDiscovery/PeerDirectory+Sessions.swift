import HexlistModel

// Handling of session events.
extension PeerDirectory {
    mutating func sessionUp(_ session: SessionInfo) {
        let id = session.peer
        guard id != own, enter(id, isProven: true), var peer = peers[id] else { return }
        let isNewStart = session.boot != peer.boot
        peer.sessions[session.boot, default: 0] += 1
        peer.saidShutdown = false
        peer.name = PeerName.cut(session.name, bytes: DirectoryLimits.nameBytes)
        peer.version = session.version.map { PeerName.cut($0, bytes: DirectoryLimits.versionBytes) } ?? peer.version
        if let endpoint = session.endpoint {
            peer.sessionEndpoint = endpoint
            if endpoint.via != .inbound {
                peer.recordDial(endpoint.socketAddress, .answered(session.boot, at: now))
                peer.leaveFormerPorts(endpoint, session.boot)
                if let address = session.address { peer.save(Endpoint(host: address, port: endpoint.port, via: .lastKnown)) }
                peer.save(endpoint)
            }
        }
        peers[id] = peer
        proved(id, session.boot)
        cancel(.peer(id))
        schedules[.peer(id)]?.failures = 0
        for record in peer.records { requestResolver(record) }
        checkStarts(of: id)
        if isNewStart { checkReachAnew(of: id) } else { checkReach(of: id) }
    }

    /// Records that a Hello proved this peer and its boot nonce.
    mutating func proved(_ id: PeerID, _ boot: BootNonce) {
        guard var peer = peers[id] else { return }
        let before = peer.boot
        let isSecondMachine = peer.proved(boot)
        if !peer.hasSession, peer.trust == .blocked { peer.presence = .away(.blocked) } else { peer.presence = .verified }
        peer.failure = nil
        peer.wasWithdrawn = false
        peer.lastSeen = now
        peer.forgetAt = nil
        peers[id] = peer
        touchedPeers.insert(id)
        missingPeerReturned(id)
        if peer.conflict != nil {
            conflictDetected(id, by: [boot])
        } else if isSecondMachine {
            conflictDetected(id, by: [boot, before].compactMap(\.self))
        }
    }

    mutating func sessionDown(_ session: SessionInfo, _ end: SessionEnd) {
        let id = session.peer
        guard var peer = peers[id], let count = peer.sessions[session.boot] else { return }
        peer.sessions[session.boot] = count > 1 ? count - 1 : nil
        peer.lastSeen = now
        peer.saidShutdown = peer.saidShutdown || end == .shutdown && session.boot == peer.boot
        if !peer.hasSession {
            peer.sessions = [:]  // frees its memory
            peer.sessionEndpoint = nil
        } else if session.endpoint == peer.sessionEndpoint {
            peer.sessionEndpoint = nil
        }
        peers[id] = peer
        touchedPeers.insert(id)
        // The announcements of the process whose session ended need their resolvers again, even if another process of the peer has a
        // session.
        for record in peer.records { requestResolver(record) }
        guard !peer.hasSession else { return }
        cancel(.reach(id))
        schedules[.reach(id)] = nil

        guard peer.trust != .blocked else {
            peers[id]?.presence = .away(.blocked)
            return
        }
        guard mayProbe(peer) else { return stopProbing(id) }
        guard !peer.saidShutdown else { return markAway(id, .saidShutdown) }
        switch end {
        case .lost:
            reschedule(.peer(id), at: now, as: peer.trust == .trusted ? .trusted : .lost)
        case .shutdown, .idle, .other:
            reschedule(.peer(id), at: now + reverifyInterval(), as: .routine)
        }
    }

    mutating func markAway(_ id: PeerID, _ absence: DirectoryPeer.Absence) {
        guard let peer = peers[id] else { return }
        touchedPeers.insert(id)
        peers[id]?.presence = .away(absence)
        peers[id]?.failure = nil
        // Counts the reason for the absence as the first failure, so that the following probes use the back-off.
        schedules[.peer(id), default: ProbeSchedule()].failures = 1
        if isWorthRetrying(peer, failures: 1) {
            reschedule(.peer(id), at: now + DirectoryIntervals.backoff.pause(after: 1), as: retryUrgency(peer))
        } else {
            cancel(.peer(id))
        }
    }

    /// The interval of periodic probes of verified peers without a session. It grows with the number of these peers, so that their probes
    /// stay within the rate limit. Up to 10 %, chosen at random, are added to spread the probes.
    mutating func reverifyInterval() -> Duration {
        let interval = max(DirectoryIntervals.reverify, DirectoryIntervals.reverifyPerPeer * unattended.count)
        return interval + interval / 10_000 * randomNumber(below: 1_000)
    }

    /// A random number to spread load, not for secrets: xorshift64, seeded with the boot nonce.
    mutating func randomNumber(below bound: UInt64) -> Int {
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        return Int(random % bound)
    }
}
