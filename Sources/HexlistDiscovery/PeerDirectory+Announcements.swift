import HexlistModel

// Handling of discovery events, and opening and closing of resolvers.
extension PeerDirectory {
    mutating func appeared(_ record: Record, interfaceName: String?) {
        if records[record] == nil {
            guard makeRoomForRecord() else { return }
            records[record] = DirectoryRecord()
            arrivals.append(record)
            if arrivals.count > 2 * records.count + 256 { arrivals.removeAll { records[$0] == nil } }
        }
        records[record]?.interfaceName = interfaceName.map { PeerName.cut($0, bytes: 32) }
        touchedRecords.insert(record)
        requestResolver(record)
    }

    /// Evicts the oldest announcement of an unproven peer if the table is full.
    /// - Returns: whether the table has room for another record.
    private mutating func makeRoomForRecord() -> Bool {
        guard records.count >= limits.records else { return true }
        for _ in 0..<arrivals.count {
            guard let oldest = arrivals.popFirst() else { return false }
            guard records[oldest] != nil else { continue }
            if isProtected(oldest) {
                arrivals.append(oldest)
            } else {
                remove(oldest, isWithdrawn: false)
                return true
            }
        }
        return false
    }

    private func isProtected(_ record: Record) -> Bool {
        guard let claim = records[record]?.claim else { return false }
        guard claim.peer != own else { return claim.boot == boot }
        guard let peer = peers[claim.peer], peer.isProven else { return false }
        // For a proved peer, only announcements that may be its own are protected, because anyone can announce its UUID.
        return claim.boot == peer.boot || peer.answered(claim.endpoint.socketAddress) != nil
    }

    /// - Parameter isWithdrawn: whether the network withdrew the record, in contrast to a failure of avahi-daemon.
    mutating func remove(_ record: Record, isWithdrawn: Bool) {
        guard let removed = records.removeValue(forKey: record) else { return }
        if isWithdrawn, let claim = removed.claim { withdraw(claim) }
        if resolverSlots.remove(record) { outputs.append(.closeResolver(record)) }
        unlink(record, removed.claim)
        forgetReports(of: record.key)
        if let id = removed.claim?.peer { lostAnnouncement(id, isWithdrawn: isWithdrawn) }
    }

    /// Updates a peer after one of its announcements was removed.
    private mutating func lostAnnouncement(_ id: PeerID, isWithdrawn: Bool) {
        admitSurplus(of: id)
        guard let peer = peers[id], peer.records.isEmpty else { return }
        peers[id]?.wasWithdrawn = isWithdrawn
        guard peer.isProven else { return forgetSoon(id) }
        if isWithdrawn, peer.isUnattended, mayProbe(peer) {
            request(.peer(id), at: now, as: peer.trust == .trusted ? .trusted : .lost)
        }
    }

    /// Accepts the oldest surplus announcement of a UUID after one of its accepted announcements was removed.
    private mutating func admitSurplus(of id: PeerID) {
        guard peers[id]?.records.count == DirectoryLimits.claimsPerPeer - 1 else { return }
        let oldest = records.filter { $0.value.surplus?.peer == id }.min { $0.value.number < $1.value.number }
        if let (record, present) = oldest, let claim = present.surplus { setContent(record, .claim(claim)) }
    }

    /// Forgets which ghost reasons were reported for an instance, if the instance has no records any more.
    private mutating func forgetReports(of key: InstanceKey) {
        guard reported[key] != nil else { return }
        // Looks up the record of each interface, which is faster than searching the table for records of the instance.
        let isLeft = interfaces.contains { interface in
            [true, false].contains { records[Record(key: key, interface: interface.index, ipv6: $0)] != nil }
        }
        let isInDomain = records[Record(key: key, interface: 0, ipv6: false, unicast: 0)] != nil
        if !isLeft, !isInDomain { reported[key] = nil }
    }

    /// Schedules the removal of an unverified peer that is no longer announced.
    private mutating func forgetSoon(_ id: PeerID) {
        guard peers[id]?.forgetAt == nil, peers[id]?.hasStaticEndpoint == false else { return }
        let forgetAt = now + DirectoryIntervals.forget
        peers[id]?.forgetAt = forgetAt
        timers.insert(Deadline(at: forgetAt, timer: .forget(id)))
        cancel(.peer(id))
    }

    /// Records that an address is withdrawn, unless another record announces it.
    private mutating func withdraw(_ claim: DirectoryRecord.AnnouncedPeer) {
        guard let peer = peers[claim.peer] else { return }
        let socketAddress = claim.endpoint.socketAddress
        guard !peer.records.contains(where: { records[$0]?.claim?.endpoint.socketAddress == socketAddress }) else { return }
        peers[claim.peer]?.withdraw(socketAddress)
    }

    /// Removes a record from the tables of the peer it announces.
    private mutating func unlink(_ record: Record, _ claim: DirectoryRecord.AnnouncedPeer?) {
        guard let claim else { return }
        if claim.peer == own { ownRecords.remove(record) }
        peers[claim.peer]?.records.remove(record)
        touchedPeers.insert(claim.peer)
        guard let boot = claim.boot else { return }
        let others = claim.peer == own ? ownRecords : peers[claim.peer]?.records ?? []
        guard !others.contains(where: { records[$0]?.claim?.boot == boot }) else { return }
        cancel(.start(claim.peer, boot))
        schedules[.start(claim.peer, boot)] = nil
        if claim.peer == own { ownDisproved.remove(boot) }
    }

    mutating func resolveFailed(_ record: Record, _ text: String) {
        guard let present = records[record] else { return }
        touchedRecords.insert(record)
        records[record]?.isLost = true
        switch present.content {
        case .unresolved, .unresolvable: records[record]?.content = .unresolvable(PeerName.cut(text, bytes: DirectoryLimits.textBytes))
        case .invalid, .claim, .surplus: break  // the earlier content stays valid as long as the record is announced
        }
    }

    mutating func resolved(_ record: Record, _ resolution: Resolution) {
        guard let present = records[record] else { return }
        let content = content(of: record, interfaceName: present.interfaceName, resolution)
        if let claim = present.surplus, content == .claim(claim), !hasRoomForClaim(of: claim.peer) { return }
        records[record]?.isLost = false
        if present.isLost, content == present.content, let claim = present.claim { return announced(claim, .again) }
        setContent(record, content)
    }

    /// Stores the new content of a record and applies its effects.
    private mutating func setContent(_ record: Record, _ content: DirectoryRecord.Content) {
        guard let present = records[record], content != present.content else { return }
        contents += 1
        records[record]?.content = content
        records[record]?.number = contents
        records[record]?.changedAt = now
        touchedRecords.insert(record)
        let before = present.claim
        if let before,
            before.peer != records[record]?.claim?.peer || before.endpoint.socketAddress != records[record]?.claim?.endpoint.socketAddress
        {
            withdraw(before)
        }
        guard let claim = records[record]?.claim else {
            unlink(record, before)
            if let before { lostAnnouncement(before.peer, isWithdrawn: false) }
            return requestResolver(record)
        }
        let change = change(in: claim, besides: record, before: before)
        if let before, before.peer != claim.peer || before.boot != claim.boot {
            unlink(record, before)
            if before.peer != claim.peer { lostAnnouncement(before.peer, isWithdrawn: false) }
        }
        if claim.peer == own {
            if ownRecords.count < DirectoryLimits.claimsPerPeer { ownRecords.insert(record) }
        } else {
            guard enter(claim.peer, isProven: false) else { return remove(record, isWithdrawn: false) }
            makeRoomForClaim(of: claim.peer)
            peers[claim.peer]?.records.insert(record)
            peers[claim.peer]?.withdrawn.remove(claim.endpoint.socketAddress)
            peers[claim.peer]?.forgetAt = nil
            touchedPeers.insert(claim.peer)
        }
        requestResolver(record)
        announced(claim, change)
    }

    private func hasRoomForClaim(of id: PeerID) -> Bool { peers[id].map { $0.records.count < DirectoryLimits.claimsPerPeer } ?? true }

    /// Makes room for another announcement of a UUID by turning the oldest one into a surplus. Announcements at whose address the peer has
    /// not answered are chosen first.
    private mutating func makeRoomForClaim(of id: PeerID) {
        guard let peer = peers[id], !hasRoomForClaim(of: id) else { return }
        let oldest = peer.records.min { left, right in
            guard let left = records[left], let right = records[right] else { return false }
            let answered = [left, right].map { $0.claim.flatMap { peer.answered($0.endpoint.socketAddress) } != nil }
            return answered[0] == answered[1] ? left.number < right.number : answered[1]
        }
        guard let oldest, let claim = records[oldest]?.claim else { return }
        unlink(oldest, claim)
        records[oldest]?.content = .surplus(claim)
        touchedRecords.insert(oldest)
    }

    private func content(of record: Record, interfaceName: String?, _ resolution: Resolution) -> DirectoryRecord.Content {
        let txt = TXTRecord(strings: resolution.txt)
        guard let peer = txt.peer else { return .invalid("its TXT has no UUID in `id`") }
        guard resolution.port != 0 else { return .invalid("its port is 0") }
        guard let address = IPAddress(resolution.address) else { return .invalid("it has no address") }
        var endpoint = Endpoint(host: resolution.address, port: resolution.port, interface: interfaceName, via: .mdns)
        var refusal = policy.refusal(address: address, port: resolution.port, interface: record.interface)
        if record.unicast != nil {
            // The user configured the domain, so any address and port may be dialled.
            endpoint = Endpoint(host: resolution.address, port: resolution.port, via: .dns)
            refusal = address.isNoHost ? .noHost : nil
        } else if address.isLinkLocal, address.isIPv6 {
            endpoint.host += "%" + (interfaceName ?? "\(record.interface)")
        }
        return .claim(.init(endpoint: endpoint, refusal: refusal, peer: peer, version: txt.version, boot: txt.boot))
    }

    /// The differences between an announcement and the earlier announcements and saved endpoints of the peer.
    private struct AnnouncementChange {
        var isNewAddress: Bool
        var isNewStart: Bool
        /// Whether the record did not announce this peer before, or could not be resolved for a while.
        var isNewRecord: Bool
        /// Whether the record announced the same boot nonce at another address before. The earlier result was then a mixture of cached
        /// records from before and after a restart of the peer.
        var isCorrection = false

        static let again = AnnouncementChange(isNewAddress: false, isNewStart: false, isNewRecord: true)
    }

    private func change(in claim: DirectoryRecord.AnnouncedPeer, besides record: Record, before: DirectoryRecord.AnnouncedPeer?)
        -> AnnouncementChange
    {
        let before = before?.peer == claim.peer ? before : nil
        var change = AnnouncementChange(isNewAddress: true, isNewStart: claim.boot != nil, isNewRecord: before == nil)
        if let before { change.isCorrection = before.boot == claim.boot && before.endpoint.socketAddress != claim.endpoint.socketAddress }
        guard let peer = peers[claim.peer] else { return change }
        let others = peer.records.filter { $0 != record }.compactMap { records[$0]?.claim } + (before.map { [$0] } ?? [])
        let socketAddress = claim.endpoint.socketAddress
        change.isNewAddress =
            !peer.saved.contains { $0.socketAddress == socketAddress }
            && !others.contains { $0.endpoint.socketAddress == socketAddress && refusal(of: $0) == nil }
        if let boot = claim.boot {
            change.isNewStart = boot != peer.boot && !peer.isFormer(boot) && !others.contains { $0.boot == boot }
        }
        return change
    }

    /// Reacts to an announcement. An announcement is only a hint: it can cause a probe, but it cannot make a peer verified.
    private mutating func announced(_ claim: DirectoryRecord.AnnouncedPeer, _ change: AnnouncementChange) {
        if change.isCorrection, let start = claim.boot { askAgain(claim.peer, start) }
        guard claim.peer != own else { return checkOwnStart(claim) }
        guard let peer = peers[claim.peer], refusal(of: claim) == nil else { return }
        // Forgets the earlier dial result: an address at which another identity answered may belong to this peer now.
        if change.isNewAddress, peer.answered(claim.endpoint.socketAddress) == nil {
            peers[claim.peer]?.dialResults[claim.endpoint.socketAddress] = nil
        }
        guard peer.trust != .blocked, mayDialOnAnnouncement(peer) else { return }
        guard !peer.hasSession else {
            checkStarts(of: claim.peer)
            return checkReach(of: claim.peer, again: change.isNewAddress)
        }
        switch peer.presence {
        case .unproven where change.isNewAddress || change.isNewStart:
            peers[claim.peer]?.failure = nil  // the failure concerned other addresses
            requestAnnounced(claim.peer, as: peer.trust == .trusted ? .trusted : .newcomer)
        case .verified where change.isNewStart || change.isNewAddress && isUnprovenStart(claim.boot, of: peer):
            requestAnnounced(claim.peer, as: peer.trust == .trusted ? .trusted : .lost)
        case .away where change.isNewAddress || change.isNewStart || change.isNewRecord:
            requestAnnounced(claim.peer, as: peer.trust == .trusted ? .trusted : .newcomer)
        case .unproven, .verified, .away: break
        }
    }

    private func isUnprovenStart(_ boot: BootNonce?, of peer: DirectoryPeer) -> Bool {
        boot.map { $0 != peer.boot && !peer.isFormer($0) } ?? false
    }

    /// Allows another probe of an announced boot nonce after a failure, because the earlier probe dialled a wrong address.
    private mutating func askAgain(_ id: PeerID, _ start: BootNonce) {
        let target = ProbeTarget.start(id, start)
        guard let schedule = schedules[target] else { return }
        if schedule.running != nil {
            schedules[target]?.again = true
        } else if !queue.contains(target) {
            cancel(target)
            schedules[target] = nil
        }
        peers[id]?.disprovedBoots.removeAll { $0 == start }
        if id == own { ownDisproved.remove(start) }
    }

    private mutating func requestAnnounced(_ id: PeerID, as urgency: ProbeQueue.Urgency) {
        requestAnnounced(.peer(id), of: id, as: urgency)
    }

    /// Requests a probe because of an announcement. The probe is delayed if the peer's rate limit for such probes is exceeded.
    mutating func requestAnnounced(_ target: ProbeTarget, of id: PeerID, as urgency: ProbeQueue.Urgency) {
        let instant = schedules[.peer(id), default: ProbeSchedule()].announcedInstant(now: now)
        guard !queue.contains(target) else { return queue.enqueue(target, as: urgency) }
        if let nextAt = schedules[target]?.nextAt, nextAt <= instant { return }
        if schedules[target]?.running != nil, instant > now { return }
        schedules[.peer(id)]?.spend()
        request(target, at: instant, as: urgency)
    }

    /// Probes announced boot nonces of a peer that differ from that of its session, each once. The probe distinguishes a restarted daemon
    /// or a second machine from an outdated announcement.
    mutating func checkStarts(of id: PeerID) {
        guard let peer = peers[id], peer.hasSession || peer.conflict != nil, peer.trust != .blocked, mayDialOnAnnouncement(peer) else {
            return
        }
        for record in peer.records {
            guard let claim = records[record]?.claim, let boot = claim.boot, refusal(of: claim) == nil else { continue }
            guard boot != peer.boot || !peer.hasSession, peer.sessions[boot] == nil, peer.conflict != nil || !peer.isFormer(boot) else {
                continue
            }
            let target = ProbeTarget.start(id, boot)
            guard schedules[target] == nil else { continue }
            requestAnnounced(target, of: id, as: peer.trust == .trusted ? .trusted : .newcomer)
        }
    }

    /// Does the same as `checkStarts(of:)`, but also probes boot nonces that were probed before.
    mutating func checkStartsAnew(of id: PeerID) {
        for boot in Set(peers[id]?.records.compactMap { records[$0]?.claim?.boot } ?? []) {
            cancel(.start(id, boot))
            schedules[.start(id, boot)] = nil
        }
        peers[id]?.disprovedBoots = []
        checkStarts(of: id)
    }

    mutating func checkOwnStart(_ claim: DirectoryRecord.AnnouncedPeer) {
        guard let boot = claim.boot, boot != self.boot, refusal(of: claim) == nil, !isHiding else { return }
        guard ownConflict?.starts[boot] == nil, !ownDisproved.contains(boot), schedules[.start(own, boot)] == nil else { return }
        requestAnnounced(.start(own, boot), of: own, as: .newcomer)
    }

    mutating func interfacesChanged(_ interfaces: [InterfaceAddress]) {
        guard interfaces != self.interfaces else { return }
        let isFirst = self.interfaces.isEmpty
        self.interfaces = interfaces
        policy = DialPolicy(interfaces)
        for (record, present) in records where record.unicast == nil {
            guard var claim = present.claim, let address = IPAddress(ofHost: claim.endpoint.host) else { continue }
            claim.refusal = policy.refusal(address: address, port: claim.endpoint.port, interface: record.interface)
            setContent(record, .claim(claim))
        }
        if !isFirst { probeEverybody() }
    }

    // MARK: - Resolvers

    /// Opens a resolver for a record, or closes it once the announced process has a session and has answered at the announced address.
    ///
    /// A resolver combines cached records of three types (SRV, TXT, address), and a cache keeps a replaced record for another second (RFC
    /// 6762, 10.2). After a restart of the peer, the result may therefore combine the new boot nonce with the old port or address, until a
    /// later result corrects it. For this reason the resolver stays open until the address is proved, even if the peer's new process has a
    /// session.
    mutating func requestResolver(_ record: Record) {
        guard let present = records[record] else { return }
        if let claim = present.claim, isConfirmed(claim) {
            if resolverSlots.remove(record) { outputs.append(.closeResolver(record)) }
        } else {
            resolverSlots.request(record, isTrusted: isTrusted(record, present.claim))
        }
    }

    private func isConfirmed(_ claim: DirectoryRecord.AnnouncedPeer) -> Bool {
        if claim.peer == own { return claim.boot == boot }
        guard let peer = peers[claim.peer], let start = claim.boot else { return peers[claim.peer]?.hasSession ?? false }
        return peer.sessions[start] != nil && peer.hasAnswered(claim.endpoint.socketAddress, start)
    }

    private func isTrusted(_ record: Record, _ claim: DirectoryRecord.AnnouncedPeer?) -> Bool {
        if let claim { return peers[claim.peer]?.trust == .trusted }
        guard !trustedHints.isEmpty else { return false }
        let tail = record.key.name.utf8.suffix(10)
        guard tail.first == UInt8(ascii: "["), tail.last == UInt8(ascii: "]") else { return false }
        let digits = tail.dropFirst().dropLast().map(ASCII.uppercased)
        return trustedHints[String(decoding: digits, as: UTF8.self)] != nil
    }

    mutating func updateResolvers() {
        for action in resolverSlots.advance(now: now) {
            switch action {
            case .open(let record): outputs.append(.openResolver(record))
            case .close(let record):
                outputs.append(.closeResolver(record))
                releaseResolver(record)
            }
        }
    }

    /// Stops requesting a resolver that was closed at the end of its time slice, to leave the slot to peers that were not reached yet.
    /// Applies only if the announced process has a session and the result has not changed for a whole time slice.
    private mutating func releaseResolver(_ record: Record) {
        guard let present = records[record], let claim = present.claim, let start = claim.boot, !resolverSlots.isOpen(record),
            peers[claim.peer]?.sessions[start] != nil, let changedAt = present.changedAt, now - changedAt >= ResolverSlots.timeSlice
        else { return }
        _ = resolverSlots.remove(record)
    }
}
