import HexlistModel

// Input from discovery, and the resolvers.
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
        wantResolver(record)
    }

    /// Drops the oldest announcement of an unproven peer if all places are taken.
    /// - Returns: whether there is room.
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
        // Of a proved peer, only announcements that may be its own are protected: anybody can announce its UUID.
        return claim.boot == peer.boot || peer.answered(claim.endpoint.place) != nil
    }

    /// - Parameter isWithdrawn: whether the network withdrew the record; otherwise it is only not seen any more.
    mutating func remove(_ record: Record, isWithdrawn: Bool) {
        guard let removed = records.removeValue(forKey: record) else { return }
        if isWithdrawn, let claim = removed.claim { withdraw(claim) }
        if turns.dismiss(record) { outputs.append(.closeResolver(record)) }
        unlink(record, removed.claim)
        forgetReports(of: record.key)
        if let id = removed.claim?.peer { lostAnnouncement(id, isWithdrawn: isWithdrawn) }
    }

    /// Updates a peer after one of its announcements has gone, in particular the last one.
    private mutating func lostAnnouncement(_ id: PeerID, isWithdrawn: Bool) {
        heedSurplus(of: id)
        guard let peer = peers[id], peer.records.isEmpty else { return }
        peers[id]?.wasWithdrawn = isWithdrawn
        guard peer.isProven else { return forgetSoon(id) }
        if isWithdrawn, peer.isUnattended, mayProbe(peer) {
            request(.peer(id), at: now, as: peer.trust == .trusted ? .trusted : .lost)
        }
    }

    /// Admits the oldest surplus announcement of a UUID now that there is room for one.
    private mutating func heedSurplus(of id: PeerID) {
        guard peers[id]?.records.count == DirectoryLimits.claimsPerPeer - 1 else { return }
        let oldest = records.filter { $0.value.surplus?.peer == id }.min { $0.value.number < $1.value.number }
        if let (record, present) = oldest, let claim = present.surplus { says(record, .claim(claim)) }
    }

    /// Forgets the reports about an instance once none of its records is left.
    private mutating func forgetReports(of key: InstanceKey) {
        guard reported[key] != nil else { return }
        // Few interfaces carry one instance, so the table is asked for the interfaces seen so far instead of searched.
        let isLeft = interfaces.contains { interface in
            [true, false].contains { records[Record(key: key, interface: interface.index, ipv6: $0)] != nil }
        }
        let isInDomain = records[Record(key: key, interface: 0, ipv6: false, unicast: 0)] != nil
        if !isLeft, !isInDomain { reported[key] = nil }
    }

    /// Schedules a peer that is no longer announced and was never verified to be forgotten after 90 s.
    private mutating func forgetSoon(_ id: PeerID) {
        guard peers[id]?.forgetAt == nil, peers[id]?.hasStaticEndpoint == false else { return }
        let forgetAt = now + DirectoryTimes.forget
        peers[id]?.forgetAt = forgetAt
        timers.insert(Deadline(at: forgetAt, timer: .forget(id)))
        cancel(.peer(id))
    }

    /// Marks a place as withdrawn if no announcement of it is left.
    private mutating func withdraw(_ claim: DirectoryRecord.Claim) {
        guard let peer = peers[claim.peer] else { return }
        let place = claim.endpoint.place
        guard !peer.records.contains(where: { records[$0]?.claim?.endpoint.place == place }) else { return }
        peers[claim.peer]?.withdraw(place)
    }

    /// Removes a record's claim from the tables.
    private mutating func unlink(_ record: Record, _ claim: DirectoryRecord.Claim?) {
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
        case .invalid, .claim, .surplus: break  // its earlier content still stands; the endpoint is tried as long as it is announced
        }
    }

    mutating func resolved(_ record: Record, _ resolution: Resolution) {
        guard let present = records[record] else { return }
        let content = content(of: record, interfaceName: present.interfaceName, resolution)
        if let claim = present.surplus, content == .claim(claim), !hasRoomForClaim(of: claim.peer) { return }
        records[record]?.isLost = false
        if present.isLost, content == present.content, let claim = present.claim { return announced(claim, .again) }
        says(record, content)
    }

    /// Stores a record's new content and does what follows from it.
    private mutating func says(_ record: Record, _ content: DirectoryRecord.Content) {
        guard let present = records[record], content != present.content else { return }
        contents += 1
        records[record]?.content = content
        records[record]?.number = contents
        records[record]?.changedAt = now
        touchedRecords.insert(record)
        let before = present.claim
        if let before, before.peer != records[record]?.claim?.peer || before.endpoint.place != records[record]?.claim?.endpoint.place {
            withdraw(before)
        }
        guard let claim = records[record]?.claim else {
            unlink(record, before)
            if let before { lostAnnouncement(before.peer, isWithdrawn: false) }
            return wantResolver(record)
        }
        let news = news(in: claim, besides: record, before: before)
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
            peers[claim.peer]?.withdrawn.remove(claim.endpoint.place)
            peers[claim.peer]?.forgetAt = nil
            touchedPeers.insert(claim.peer)
        }
        wantResolver(record)
        announced(claim, news)
    }

    private func hasRoomForClaim(of id: PeerID) -> Bool { peers[id].map { $0.records.count < DirectoryLimits.claimsPerPeer } ?? true }

    /// Drops an announcement if too many claim one UUID: the oldest at whose place nobody answered.
    private mutating func makeRoomForClaim(of id: PeerID) {
        guard let peer = peers[id], !hasRoomForClaim(of: id) else { return }
        let oldest = peer.records.min { left, right in
            guard let left = records[left], let right = records[right] else { return false }
            let answered = [left, right].map { $0.claim.flatMap { peer.answered($0.endpoint.place) } != nil }
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
            // The user chose the domain, so any address and port may be dialled.
            endpoint = Endpoint(host: resolution.address, port: resolution.port, via: .dns)
            refusal = address.isNoHost ? .noHost : nil
        } else if address.isLinkLocal, address.isIPv6 {
            endpoint.host += "%" + (interfaceName ?? "\(record.interface)")
        }
        return .claim(.init(endpoint: endpoint, refusal: refusal, peer: peer, version: txt.version, boot: txt.boot))
    }

    /// The news that an announcement has of a peer.
    private struct News {
        var isNewPlace: Bool
        var isNewStart: Bool
        /// The record did not claim this peer before, or was not found for a while.
        var isNewRecord: Bool
        /// The record named the same start at another place before: an answer whose parts were of two starts was corrected.
        var isCorrection = false

        static let again = News(isNewPlace: false, isNewStart: false, isNewRecord: true)
    }

    private func news(in claim: DirectoryRecord.Claim, besides record: Record, before: DirectoryRecord.Claim?) -> News {
        let before = before?.peer == claim.peer ? before : nil
        var news = News(isNewPlace: true, isNewStart: claim.boot != nil, isNewRecord: before == nil)
        if let before { news.isCorrection = before.boot == claim.boot && before.endpoint.place != claim.endpoint.place }
        guard let peer = peers[claim.peer] else { return news }
        let others = peer.records.filter { $0 != record }.compactMap { records[$0]?.claim } + (before.map { [$0] } ?? [])
        let place = claim.endpoint.place
        news.isNewPlace =
            !peer.saved.contains { $0.place == place } && !others.contains { $0.endpoint.place == place && refusal(of: $0) == nil }
        if let boot = claim.boot {
            news.isNewStart = boot != peer.boot && !peer.isFormer(boot) && !others.contains { $0.boot == boot }
        }
        return news
    }

    /// Reacts to a claim. An announcement is a hint: it may cause a probe and nothing else.
    private mutating func announced(_ claim: DirectoryRecord.Claim, _ news: News) {
        if news.isCorrection, let start = claim.boot { askAgain(claim.peer, start) }
        guard claim.peer != own else { return checkOwnStart(claim) }
        guard let peer = peers[claim.peer], refusal(of: claim) == nil else { return }
        // A place that was marked as another's may have become this peer's.
        if news.isNewPlace, peer.answered(claim.endpoint.place) == nil { peers[claim.peer]?.marks[claim.endpoint.place] = nil }
        guard peer.trust != .blocked, asksStrangers(peer) else { return }
        guard !peer.hasSession else {
            checkStarts(of: claim.peer)
            return checkReach(of: claim.peer, again: news.isNewPlace)
        }
        switch peer.presence {
        case .unproven where news.isNewPlace || news.isNewStart:
            peers[claim.peer]?.failure = nil  // of other places
            requestAnnounced(claim.peer, as: peer.trust == .trusted ? .trusted : .newcomer)
        case .verified where news.isNewStart || news.isNewPlace && isUnprovenStart(claim.boot, of: peer):
            requestAnnounced(claim.peer, as: peer.trust == .trusted ? .trusted : .lost)
        case .away where news.isNewPlace || news.isNewStart || news.isNewRecord:
            requestAnnounced(claim.peer, as: peer.trust == .trusted ? .trusted : .newcomer)
        case .unproven, .verified, .away: break
        }
    }

    private func isUnprovenStart(_ boot: BootNonce?, of peer: DirectoryPeer) -> Bool {
        boot.map { $0 != peer.boot && !peer.isFormer($0) } ?? false
    }

    /// Forgets that an announced start did not prove itself, because it was dialled at a place that was not its own.
    private mutating func askAgain(_ id: PeerID, _ start: BootNonce) {
        let target = ProbeTarget.start(id, start)
        guard let schedule = schedules[target] else { return }
        if schedule.running != nil {
            schedules[target]?.again = true
        } else if !queue.holds(target) {
            cancel(target)
            schedules[target] = nil
        }
        peers[id]?.disprovedBoots.removeAll { $0 == start }
        if id == own { ownDisproved.remove(start) }
    }

    private mutating func requestAnnounced(_ id: PeerID, as urgency: ProbeQueue.Urgency) {
        requestAnnounced(.peer(id), of: id, as: urgency)
    }

    /// Requests a probe within the peer's allowance, which is all that announcements in its name can cause.
    mutating func requestAnnounced(_ target: ProbeTarget, of id: PeerID, as urgency: ProbeQueue.Urgency) {
        let instant = schedules[.peer(id), default: ProbeSchedule()].announcedInstant(now: now)
        guard !queue.holds(target) else { return queue.enqueue(target, as: urgency) }
        if let nextAt = schedules[target]?.nextAt, nextAt <= instant { return }
        if schedules[target]?.running != nil, instant > now { return }
        schedules[.peer(id)]?.spend()
        request(target, at: instant, as: urgency)
    }

    /// Probes announced starts of a peer that has a session with another start, each once, to tell a restart or a second machine from a
    /// leftover announcement.
    mutating func checkStarts(of id: PeerID) {
        guard let peer = peers[id], peer.hasSession || peer.conflict != nil, peer.trust != .blocked, asksStrangers(peer) else { return }
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

    /// Probes announced starts as `checkStarts(of:)` does, including those probed before.
    mutating func checkStartsAnew(of id: PeerID) {
        for boot in Set(peers[id]?.records.compactMap { records[$0]?.claim?.boot } ?? []) {
            cancel(.start(id, boot))
            schedules[.start(id, boot)] = nil
        }
        peers[id]?.disprovedBoots = []
        checkStarts(of: id)
    }

    mutating func checkOwnStart(_ claim: DirectoryRecord.Claim) {
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
            says(record, .claim(claim))
        }
        if !isFirst { probeEverybody() }
    }

    // MARK: - Resolvers

    /// Wants a resolver until the announced start has answered at the announced place and has a session.
    ///
    /// A resolver's answer is put together from cached records of three types (SRV, TXT, address), and a cache keeps a replaced record for
    /// another second (RFC 6762, 10.2). So an answer may have the new start's number beside the old start's port or address, and only a
    /// later answer corrects it: the resolver of a place that is not proven stays open, even if the start itself is proven by a session.
    mutating func wantResolver(_ record: Record) {
        guard let present = records[record] else { return }
        if let claim = present.claim, isSettled(claim) {
            if turns.dismiss(record) { outputs.append(.closeResolver(record)) }
        } else {
            turns.want(record, isTrusted: isTrusted(record, present.claim))
        }
    }

    private func isSettled(_ claim: DirectoryRecord.Claim) -> Bool {
        if claim.peer == own { return claim.boot == boot }
        guard let peer = peers[claim.peer], let start = claim.boot else { return peers[claim.peer]?.hasSession ?? false }
        return peer.sessions[start] != nil && peer.hasAnswered(claim.endpoint.place, start)
    }

    private func isTrusted(_ record: Record, _ claim: DirectoryRecord.Claim?) -> Bool {
        if let claim { return peers[claim.peer]?.trust == .trusted }
        guard !trustedHints.isEmpty else { return false }
        let tail = record.key.name.utf8.suffix(10)
        guard tail.first == UInt8(ascii: "["), tail.last == UInt8(ascii: "]") else { return false }
        let digits = tail.dropFirst().dropLast().map(ASCII.uppercased)
        return trustedHints[String(decoding: digits, as: UTF8.self)] != nil
    }

    mutating func turnResolvers() {
        for action in turns.advance(now: now) {
            switch action {
            case .open(let record): outputs.append(.openResolver(record))
            case .close(let record):
                outputs.append(.closeResolver(record))
                leaveToOthers(record)
            }
        }
    }

    /// Gives up a resolver whose turn is over and whose answer has stood for a whole turn, if the announced start has a session: records
    /// of peers that are not reached yet need the places more.
    private mutating func leaveToOthers(_ record: Record) {
        guard let present = records[record], let claim = present.claim, let start = claim.boot, !turns.isOpen(record),
            peers[claim.peer]?.sessions[start] != nil, let changedAt = present.changedAt, now - changedAt >= ResolverSlots.turn
        else { return }
        _ = turns.dismiss(record)
    }
}
