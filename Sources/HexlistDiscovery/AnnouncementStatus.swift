import HexlistModel

/// The state of one announcement compared with the known peers. Determines the ghost reason and the text for the user.
enum AnnouncementStatus: Sendable, Equatable {
    /// The announcement belongs to a proved peer. It is shown in the row of that peer or as a duplicate.
    case fits
    case unresolved
    case unresolvable(String)
    case unusable(String)
    /// The announcement of this node itself.
    case own
    /// This node's UUID with the boot nonce of another process. `isDisproved`: whether a probe could not confirm that nonce.
    case ownOtherStart(isDisproved: Bool)
    /// This node's UUID with the boot nonce of another process, which is not probed because this machine is hidden (`announce: false`).
    case ownOtherStartUnasked
    /// Another process proved this node's UUID, so it has a copy of this node's private key.
    case ownClone
    case conflict
    /// At the announced endpoint, a peer with another identity answered.
    case impostor(PeerID, Endpoint)
    /// The announced UUID is not this node's, but the announced endpoint is.
    case ownEndpoint(Endpoint)
    case blocked
    /// A stranger's announcement, which is not probed because this machine is hidden.
    case hiding
    /// The peer is not proved yet; a probe is planned or running.
    case probing
    case failed(DirectoryPeer.Failure, Endpoint)
    /// The announced boot nonce is of an earlier process of the peer, was not confirmed by a probe, or has an endpoint that must not be
    /// dialled.
    case formerStart
    /// The announced boot nonce differs from the one of the peer's session and is being probed.
    case otherStart

    var reason: GhostReason? {
        switch self {
        case .fits: nil
        case .own, .ownOtherStart, .ownOtherStartUnasked, .ownEndpoint: .self
        case .ownClone, .conflict: .conflict
        case .unusable: .invalid
        case .impostor: .impostor
        case .unresolvable, .failed, .formerStart: .stale
        case .unresolved, .blocked, .hiding, .probing, .otherStart: .unverified
        }
    }

    /// One sentence for the user. `heard` names the interfaces: "eth0 over IPv4".
    func text(heard: String) -> String {
        switch self {
        case .fits: "announced on \(heard)"
        case .unresolved: "announced on \(heard), being resolved"
        case .unresolvable(let text): "announced on \(heard), but its address cannot be resolved: \(text)"
        case .unusable(let text): "its announcement is not usable: \(text)"
        case .own: "this machine's own announcement, on \(heard)"
        case .ownOtherStart(false): "announces this machine's UUID with another boot nonce; being checked"
        case .ownOtherStart(true): "announces this machine's UUID with another boot nonce, but no machine at its address proves it"
        case .ownOtherStartUnasked:
            "announces this machine's UUID with another boot nonce; this machine hides (`announce: false`), so it is not checked"
        case .ownClone: "another machine uses this machine's identity: one is a copy of the other (`hexlist id rotate`)"
        case .conflict:
            "two machines prove this UUID, one with a copy of the other's identity: nothing is sent to either, "
                + "until about two minutes after `hexlist id rotate` on one"
        case .impostor(let other, let endpoint): "announced with this UUID, but \(endpoint) answers as \(other)"
        case .ownEndpoint(let endpoint): "announced with another UUID, but \(endpoint) is this machine"
        case .blocked: "announced on \(heard); blocked here, so it is not checked"
        case .hiding: "announced on \(heard); this machine hides (`announce: false`), so it does not contact strangers"
        case .probing: "announced on \(heard); its identity is being checked"
        case .failed(let failure, let endpoint): "announced on \(heard), but \(failure.text) (\(endpoint))"
        case .formerStart: "announced on \(heard), but by an earlier start of this peer, or by no machine that proves it"
        case .otherStart: "announced on \(heard) by another start of this peer; being checked"
        }
    }
}

extension PeerDirectory {
    /// The status of a record's announcement; `nil` if the record is not announced.
    func status(_ record: Record) -> AnnouncementStatus? {
        guard let present = records[record] else { return nil }
        switch present.content {
        case .unresolved: return .unresolved
        case .unresolvable(let text): return .unresolvable(text)
        case .invalid(let text): return .unusable(text)
        case .surplus: return .unusable("too many announcements claim its UUID")
        case .claim(let claim) where claim.peer == own: return ownStatus(claim)
        case .claim(let claim): return peers[claim.peer].map { status(claim, of: $0) } ?? .probing
        }
    }

    private func ownStatus(_ claim: DirectoryRecord.AnnouncedPeer) -> AnnouncementStatus {
        guard let boot = claim.boot, boot != self.boot else { return .own }
        if ownConflict?.starts[boot] == nil, isHiding { return .ownOtherStartUnasked }
        return ownConflict?.starts[boot] != nil ? .ownClone : .ownOtherStart(isDisproved: ownDisproved.contains(boot))
    }

    private func status(_ claim: DirectoryRecord.AnnouncedPeer, of peer: DirectoryPeer) -> AnnouncementStatus {
        guard peer.conflict == nil else { return .conflict }
        switch peer.dialResults[claim.endpoint.socketAddress] {
        case .impostor(let other)?: return .impostor(other, claim.endpoint)
        case .own?: return .ownEndpoint(claim.endpoint)
        case .answered?, .silent?, nil: break
        }
        guard peer.isProven else {
            if let refusal = refusal(of: claim) { return .unusable(refusal.text(claim.endpoint)) }
            guard peer.trust != .blocked else { return .blocked }
            guard mayDialOnAnnouncement(peer) else { return .hiding }
            return peer.failure.map { .failed($0, claim.endpoint) } ?? .probing
        }
        guard let boot = claim.boot, let proven = peer.boot, boot != proven, peer.sessions[boot] == nil else { return .fits }
        if peer.isFormer(boot) || refusal(of: claim) != nil { return .formerStart }
        // Without a session, the next probe of the peer covers all of its endpoints, including this one.
        return peer.hasSession ? .otherStart : .fits
    }

    /// The interfaces and IP versions of records, at most four: "eth0 over IPv4 and IPv6, wlan0 over IPv4".
    func interfaceList(_ announcing: [Record]) -> String {
        var names: [String] = []
        var versions: [String: Set<Bool>] = [:]
        for record in announcing.sorted(by: Record.inOrder) {
            guard record.unicast == nil else {
                let name = "DNS in \(record.key.domain)"
                if versions[name] == nil { names.append(name) }
                versions[name] = []
                continue
            }
            let name = records[record]?.interfaceName ?? "interface \(record.interface)"
            if versions[name] == nil { names.append(name) }
            versions[name, default: []].insert(record.ipv6)
        }
        var parts = names.prefix(4).map { name in
            switch versions[name] {
            case []: name
            case [true]: "\(name) over IPv6"
            case [false]: "\(name) over IPv4"
            default: "\(name) over IPv4 and IPv6"
            }
        }
        if names.count > 4 { parts.append("\(names.count - 4) more") }
        return parts.joined(separator: ", ")
    }
}

extension DirectoryPeer.Failure {
    /// The reason for the user, as the part of a sentence that follows "but".
    var text: String {
        switch self {
        case .refused: "the connection is refused"
        case .noAnswer: "nobody answers"
        case .failed(let text): "it answers, but \(text)"
        }
    }
}

extension DirectoryPeer.Absence {
    var text: String {
        switch self {
        case .notSeenYet: "not seen since this daemon started"
        case .saidShutdown: "announced that it is shutting down"
        case .refused: "refuses the connection"
        case .noAnswer: "does not answer"
        case .blocked: "blocked here, so it is not checked"
        case .hiding: "a stranger, and this machine hides (`announce: false`), so it is not contacted"
        case .failed(let text): "answers, but \(text)"
        }
    }
}

extension GhostReason {
    /// The priority of a reason: if a UUID has several reasons, the one with the greatest weight is shown.
    var weight: Int {
        switch self {
        case .duplicate: 0
        case .self: 1
        case .invalid: 2
        case .stale: 3
        case .unverified: 4
        case .impostor: 5
        case .conflict: 6
        }
    }
}
