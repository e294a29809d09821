import HeapModule
import HexlistModel

// Scheduling of probes, and handling of their results.
extension PeerDirectory {
    // MARK: - Requesting probes

    /// Requests a probe at `instant` or earlier. A running probe is repeated if it fails.
    mutating func request(_ target: ProbeTarget, at instant: Instant, as urgency: ProbeQueue.Urgency) {
        let schedule = schedules[target] ?? ProbeSchedule()
        guard schedule.running == nil else {
            if instant <= now { schedules[target]?.again = true }
            return
        }
        if queue.contains(target) {
            if instant <= now { schedules[target]?.regularAt = nil }
            queue.enqueue(target, as: urgency)
        } else if let nextAt = schedule.nextAt, nextAt <= instant {
            return
        } else {
            reschedule(target, at: instant, as: urgency)
        }
    }

    /// Sets the time of a target's next probe, replacing an earlier one.
    mutating func reschedule(_ target: ProbeTarget, at instant: Instant, as urgency: ProbeQueue.Urgency) {
        cancel(target)
        var schedule = schedules[target] ?? ProbeSchedule()
        schedule.urgency = urgency
        if schedule.running != nil {
            schedule.again = instant <= now
        } else if instant <= now {
            queue.enqueue(target, as: urgency)
        } else {
            schedule.nextAt = instant
            timers.insert(Deadline(at: instant, timer: .probe(target)))
        }
        schedules[target] = schedule
    }

    /// Cancels the planned probes of a target. A running probe continues, but is not repeated.
    mutating func cancel(_ target: ProbeTarget) {
        queue.remove(target)
        schedules[target]?.nextAt = nil
        schedules[target]?.regularAt = nil
        schedules[target]?.again = false
    }

    /// Probes all peers without a session as soon as the rate limit allows. Called after the machine woke from sleep or its networks
    /// changed.
    mutating func probeEverybody() {
        for (id, peer) in peers where mayProbe(peer) {
            guard !endpoints(of: id).isEmpty else { continue }
            schedules[.peer(id)]?.failures = 0
            let urgency: ProbeQueue.Urgency =
                switch peer.presence {
                case _ where peer.trust == .trusted: .trusted
                case .verified: .lost
                case .away: .routine
                case .unproven: .retry
                }
            request(.peer(id), at: now, as: urgency)
        }
        for (address, state) in addresses where state.peer == nil {
            schedules[.address(address)]?.failures = 0
            request(.address(address), at: now, as: .routine)
        }
    }

    mutating func staticPeers(_ configured: [StaticAddress]) {
        let wanted = Set(configured.prefix(DirectoryLimits.addresses))
        for (address, state) in addresses where !wanted.contains(address) {
            addresses[address] = nil
            cancel(.address(address))
            schedules[.address(address)] = nil
            guard let id = state.peer else { continue }
            peers[id]?.saved.removeAll { $0.socketAddress == address.endpoint.socketAddress && $0.via == .static }
        }
        let added = wanted.filter { addresses[$0] == nil }
        let owners = peersBySavedAddress(Set(added.map(\.endpoint.socketAddress)))
        for address in added {
            guard let ids = owners[address.endpoint.socketAddress], ids.count == 1, let peer = peers[ids[0]],
                peer.hasSession || mayProbe(peer)
            else {
                addresses[address] = DirectoryAddress()
                request(.address(address), at: now, as: .routine)
                continue
            }
            // The peer's own probe tries this address. Another probe would open a second session with the peer.
            addresses[address] = DirectoryAddress(peer: peer.id)
            peers[peer.id]?.save(address.endpoint)
            if !peer.hasSession { request(.peer(peer.id), at: now, as: peer.trust == .trusted ? .trusted : .routine) }
        }
    }

    /// Returns the peers with a saved endpoint at these addresses.
    private func peersBySavedAddress(_ wanted: Set<Endpoint.SocketAddress>) -> [Endpoint.SocketAddress: [PeerID]] {
        var found: [Endpoint.SocketAddress: [PeerID]] = [:]
        guard !wanted.isEmpty else { return found }
        for peer in peers.values {
            for endpoint in peer.saved where wanted.contains(endpoint.socketAddress) {
                found[endpoint.socketAddress, default: []].append(peer.id)
            }
        }
        return found
    }

    // MARK: - Starting probes

    mutating func beginProbes() {
        while running.count < limits.concurrentProbes, let target = queue.next(now: now) {
            let endpoints = endpointsToProbe(target)
            guard !endpoints.isEmpty else {
                queue.refund()
                if isWanted(target) { failed(target, .noAnswer) }
                continue
            }
            lastProbe += 1
            let probe = ProbeID(number: lastProbe)
            let deadline = now + DirectoryIntervals.probe
            running[probe] = RunningProbe(
                target: target, endpoints: endpoints, deadline: deadline, start: target.expected.flatMap { peers[$0]?.boot })
            timers.insert(Deadline(at: deadline, timer: .probeTimeout(probe)))
            schedules[target, default: ProbeSchedule()].running = probe
            schedules[target]?.nextAt = nil
            schedules[target]?.again = false
            schedules[target]?.askedAt = now
            if case .reach(let id) = target {
                outputs.append(.check(probe, endpoints, expecting: id))
            } else {
                outputs.append(.probe(probe, endpoints, expecting: target.expected))
            }
        }
    }

    /// Whether a queued target still needs its probe. The state of the peer may have changed while the target was in the queue.
    private func isWanted(_ target: ProbeTarget) -> Bool {
        switch target {
        case .peer(let id): peers[id].map(mayProbe) ?? false
        case .start(own, let boot): !isHiding && ownRecords.contains { records[$0]?.claim?.boot == boot }
        case .start(let id, let boot):
            peers[id].map { mayDialOnAnnouncement($0) && ($0.hasSession || $0.conflict != nil) && $0.sessions[boot] == nil } ?? false
        case .reach(let id): peers[id].map { needsReach($0) } ?? false
        case .address(let address): addresses[address].map { $0.peer == nil } ?? false
        }
    }

    private func endpointsToProbe(_ target: ProbeTarget) -> [Endpoint] {
        guard isWanted(target) else { return [] }
        switch target {
        case .peer(let id):
            guard let peer = peers[id] else { return [] }
            // While this machine is hidden, only configured addresses of strangers are dialled, not announced ones.
            let all = endpoints(of: id).filter { mayDialOnAnnouncement(peer) || $0.via == .static }
            let good = all.filter { peer.dialResults[$0.socketAddress]?.isGood ?? true }
            // Every third probe includes the addresses at which another identity answered, because addresses can move to another machine.
            // They are also included if there are no other addresses.
            let asksAll = good.isEmpty || (schedules[target]?.failures ?? 0) % 3 == 2
            return picked(asksAll ? all : good, of: peer)
        case .start(let id, let boot):
            let claiming = id == own ? ownRecords : peers[id]?.records ?? []
            let claims = claiming.sorted(by: Record.inOrder).compactMap { records[$0]?.claim }
            var addresses: Set<Endpoint.SocketAddress> = []
            let announced = claims.filter {
                $0.boot == boot && refusal(of: $0) == nil && addresses.insert($0.endpoint.socketAddress).inserted
            }
            return announced.prefix(DirectoryLimits.endpointsPerProbe).map(\.endpoint)
        case .reach(let id): return Array(reachEndpoints(of: id).prefix(DirectoryLimits.endpointsPerProbe))
        case .address(let address): return [address.endpoint]
        }
    }

    /// Selects the endpoints of one probe: the best ones of a ranking, and always the best saved ones.
    private func picked(_ ranked: [Endpoint], of peer: DirectoryPeer) -> [Endpoint] {
        let remembered = Set(peer.saved.prefix(DirectoryLimits.rememberedPerProbe).map(\.socketAddress))
        var room = DirectoryLimits.endpointsPerProbe - ranked.count { remembered.contains($0.socketAddress) }
        return ranked.filter { endpoint in
            if remembered.contains(endpoint.socketAddress) { return true }
            room -= 1
            return room >= 0
        }
    }

    // MARK: - Results of probes

    mutating func probeEnded(_ probe: ProbeID, _ result: ProbeResult) {
        guard let ended = running.removeValue(forKey: probe) else { return }
        let target = ended.target
        guard schedules[target]?.running == probe else { return applyProof(target, result) }
        schedules[target]?.running = nil
        switch result {
        case .refused, .noAnswer, .failed:
            if let id = target.expected { peers[id]?.silent(ended.endpoints, at: now) }
        case .proved, .reached, .otherIdentity, .ownIdentity: break
        }
        switch result {
        case .proved(let id, let boot, let endpoint): answered(target, by: id, boot, at: endpoint)
        case .reached(let endpoint): reached(target, at: endpoint, by: ended.start)
        case .refused: failed(target, .refused)
        case .noAnswer: failed(target, .noAnswer)
        case .failed(let text): failed(target, .failed(PeerName.cut(text, bytes: DirectoryLimits.textBytes)))
        case .otherIdentity(let id, let endpoint): answeredWrongly(target, .impostor(id), at: endpoint)
        case .ownIdentity(let sameBoot, let endpoint):
            if !sameBoot { ownAnswered(target) }
            answeredWrongly(target, .own, at: endpoint)
        }
    }

    /// Handles the result of a probe that no longer belongs to its target's schedule. A proof is still valid for the peer that it names.
    private mutating func applyProof(_ target: ProbeTarget, _ result: ProbeResult) {
        switch result {
        case .proved(let id, let boot, _): proved(id, boot)
        case .reached, .refused, .noAnswer, .failed, .otherIdentity, .ownIdentity: break
        }
    }

    private mutating func answered(_ target: ProbeTarget, by id: PeerID, _ boot: BootNonce, at endpoint: Endpoint) {
        if let expected = target.expected, expected != id { return answeredWrongly(target, .impostor(id), at: endpoint) }
        guard id != own, enter(id, isProven: true) else { return }
        peers[id]?.recordDial(endpoint.socketAddress, .answered(boot, at: now))
        peers[id]?.leaveFormerPorts(endpoint, boot)
        peers[id]?.save(endpoint)
        proved(id, boot)
        schedules[target]?.again = false
        switch target {
        case .peer, .reach: break
        case .start(_, let announced):
            if announced != boot { peers[id]?.disproved(announced) }
        case .address(let address):
            addresses[address] = DirectoryAddress(peer: id)
            schedules[target]?.failures = 0
        }
        guard let peer = peers[id], !peer.hasSession else { return }
        schedules[.peer(id), default: ProbeSchedule()].failures = 0
        reschedule(.peer(id), at: now + reverifyInterval(), as: .routine)
    }

    /// Handles the result of a probe in which another identity than the expected one was proved.
    private mutating func answeredWrongly(_ target: ProbeTarget, _ mark: DirectoryPeer.DialResult, at endpoint: Endpoint) {
        switch target {
        case .peer(let id):
            guard let peer = peers[id] else { return }
            let isNews = peer.dialResults[endpoint.socketAddress] != mark
            peers[id]?.recordDial(endpoint.socketAddress, mark)
            touchedPeers.insert(id)
            releaseAddress(endpoint, from: id)
            let isLeft = endpoints(of: id).contains { peers[id]?.dialResults[$0.socketAddress].map(\.isGood) ?? true }
            if isLeft, isNews, mayProbe(peer) {
                reschedule(target, at: now, as: schedules[target]?.urgency ?? .retry)
            } else {
                failed(target, .noAnswer)
            }
        case .start(let id, _), .reach(let id):
            peers[id]?.recordDial(endpoint.socketAddress, mark)
            touchedPeers.insert(id)
            failed(target, .noAnswer)
        case .address(let address):
            addresses[address]?.isOwn = mark == .own
            failed(target, .noAnswer)
        }
    }

    /// Detaches a configured address from a peer and probes it again, because another identity answers there.
    private mutating func releaseAddress(_ endpoint: Endpoint, from id: PeerID) {
        let address = StaticAddress(host: endpoint.host, port: endpoint.port)
        guard addresses[address]?.peer == id else { return }
        addresses[address] = DirectoryAddress()
        peers[id]?.saved.removeAll { $0.socketAddress == endpoint.socketAddress }
        request(.address(address), at: now, as: .routine)
    }

    /// Handles a proof of this node's UUID by another process, which has a copy of this node's identity.
    private mutating func ownAnswered(_ target: ProbeTarget) {
        switch target {
        case .start(own, let boot): ownConflictDetected(by: boot)
        case .start, .reach, .peer, .address: ownConflictDetected(by: nil)  // the result has no boot nonce
        }
    }

    private mutating func failed(_ target: ProbeTarget, _ failure: DirectoryPeer.Failure) {
        var schedule = schedules[target] ?? ProbeSchedule()
        let again = schedule.again
        schedule.again = false
        // An extra probe does not change the time of the regular one.
        let regularAt = schedule.regularAt.take().flatMap { $0 > now ? $0 : nil }
        if regularAt == nil { schedule.failures += 1 }
        schedules[target] = schedule
        let failures = schedule.failures
        switch target {
        case .peer(let id): peerFailed(id, failure, failures: failures, nextAt: again ? now : regularAt)
        case .start where again: reschedule(target, at: now, as: schedule.urgency)
        case .start(own, let boot):
            if ownConflict?.starts[boot] == nil { ownDisproved.insert(boot) }
            touchedRecords.formUnion(ownRecords)
        case .start(let id, let boot):
            peers[id]?.disproved(boot)
            touchedPeers.insert(id)
        case .reach where again: reschedule(target, at: now, as: schedule.urgency)
        case .reach(let id): reachFailed(id, failures: failures)
        case .address(let address):
            guard addresses[address] != nil else { return }
            addresses[address]?.failure = failure
            reschedule(target, at: again ? now : now + DirectoryIntervals.backoff.pause(after: failures), as: .routine)
        }
    }

    /// - Parameter nextAt: the time of the next probe; `nil` to use the back-off.
    private mutating func peerFailed(_ id: PeerID, _ failure: DirectoryPeer.Failure, failures: Int, nextAt: Instant?) {
        guard let peer = peers[id], mayProbe(peer) else { return }  // it has a session, or must not be probed
        touchedPeers.insert(id)
        let isWithdrawn = peer.records.isEmpty && peer.wasWithdrawn
        switch peer.presence {
        case .verified where nextAt != nil:
            peers[id]?.failure = failure
            reschedule(.peer(id), at: nextAt ?? now, as: peer.trust == .trusted ? .trusted : .lost)
        case .verified where peer.failure == nil && failure != .refused && !isWithdrawn:
            peers[id]?.failure = failure
            reschedule(.peer(id), at: now + DirectoryIntervals.recheck, as: peer.trust == .trusted ? .trusted : .lost)
        case .verified:
            markAway(id, failure.absence)
        case .unproven, .away:
            if !peer.isProven { peers[id]?.failure = failure }
            if peer.isAway, peer.presence != .away(.saidShutdown) { peers[id]?.presence = .away(failure.absence) }
            if failure != .noAnswer { missingPeerReturned(id) }
            if nextAt != nil || isWorthRetrying(peer, failures: failures) {
                reschedule(.peer(id), at: nextAt ?? now + DirectoryIntervals.backoff.pause(after: failures), as: retryUrgency(peer))
            }
        }
    }

    /// Whether a peer is probed again after failures. A peer that is announced, configured or trusted is always retried. A stranger that is
    /// no longer announced is retried for about 10 minutes. A peer without endpoints is not retried.
    func isWorthRetrying(_ peer: DirectoryPeer, failures: Int) -> Bool {
        guard !endpoints(of: peer.id).isEmpty else { return false }
        guard peer.records.isEmpty, !peer.hasStaticEndpoint, peer.trust != .trusted else { return true }
        return peer.isProven && failures < DirectoryIntervals.strangerPatience
    }

    func retryUrgency(_ peer: DirectoryPeer) -> ProbeQueue.Urgency {
        peer.trust == .trusted || peer.hasStaticEndpoint ? .routine : .retry
    }

    // MARK: - Timers

    mutating func fireTimers() {
        while let first = timers.min, first.at <= now {
            timers.removeMin()
            guard isCurrent(first) else { continue }
            switch first.timer {
            case .probe(let target):
                schedules[target]?.nextAt = nil
                queue.enqueue(target, as: schedules[target]?.urgency ?? .retry)
            case .probeTimeout(let probe): probeEnded(probe, .noAnswer)
            case .forget(let id): drop(id)
            case .conflict(let id): checkConflict(of: id)
            case .ownConflict: checkOwnConflict()
            case .missing: probeMissing()
            }
        }
    }

    private func isCurrent(_ deadline: Deadline) -> Bool {
        switch deadline.timer {
        case .probe(let target): schedules[target]?.nextAt == deadline.at
        case .probeTimeout(let probe): running[probe]?.deadline == deadline.at
        case .forget(let id): peers[id]?.forgetAt == deadline.at
        case .conflict(let id): peers[id]?.conflict?.checkAt == deadline.at
        case .ownConflict: ownConflict?.checkAt == deadline.at
        case .missing: nextMissingProbeAt == deadline.at
        }
    }

    /// Removes cancelled deadlines from the heap of timers. Those at the top are always removed, so that they cause no wake-up. The others
    /// are removed when they are the majority.
    mutating func compactTimers() {
        while let first = timers.min, !isCurrent(first) { timers.removeMin() }
        guard timers.count > 2 * (schedules.count + peers.count + running.count) + 1_024 else { return }
        timers = Heap(timers.unordered.filter(isCurrent))
    }
}

extension ProbeTarget {
    /// The UUID that the answering peer must prove; `nil` if any peer may answer.
    var expected: PeerID? {
        switch self {
        case .peer(let id), .start(let id, _), .reach(let id): id
        case .address: nil
        }
    }
}

extension DirectoryPeer.DialResult {
    var isGood: Bool {
        switch self {
        case .answered, .silent: true
        case .impostor, .own: false
        }
    }
}
