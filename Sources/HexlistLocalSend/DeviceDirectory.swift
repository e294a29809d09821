public import HexlistModel

/// The devices on the local network, a state machine that turns announcements into devices and ghosts.
///
/// An announcement is only a hint. A device is listed once a TLS handshake proved its certificate: the device was the server of a
/// `register` request of this machine (`DeviceDial`), or the client of its own request. Announcements never change the data of a proven
/// device. Performs no IO.
public struct DeviceDirectory {
    public typealias Instant = ContinuousClock.Instant

    public enum Input: Sendable {
        /// A datagram arrived; without `DeviceInfo` if it is not a valid announcement.
        case datagram(DeviceInfo?, from: IPAddress)
        /// A dial ended.
        case dialEnded(DeviceDialID, DeviceDialResult)
        /// A request to a device failed that was not a dial, such as an upload.
        case requestFailed(Fingerprint, at: DeviceEndpoint, DeviceDialResult)
        /// A device proved its certificate as the client of a request. `info` is its own description in that request; `nil` without one.
        case proved(DeviceProof, info: DeviceInfo?)
        /// The trusted devices, and the addresses at which they answered last.
        case known([Fingerprint: [DeviceEndpoint]])
        /// The devices for which outbox rows wait.
        case waiting(Set<Fingerprint>)
        /// The addresses of this machine's interfaces.
        case interfaces([InterfaceAddress])
        /// Announce this machine in a burst of three announcements: at start, after waking, after a change of the name.
        case announce
        /// A user looks at the list of peers.
        case looked
        /// Whether this machine hides (`announce: false`).
        case hiding(Bool)
        case tick
    }

    public enum Output: Sendable, Equatable {
        /// Send one announcement to the multicast groups.
        case announce
        /// Send `register` to a device, pinned to its fingerprint.
        case dial(DeviceDialID, DeviceDial)
        case up(Fingerprint)
        case down(Fingerprint)
        case ghost(DeviceGhost)
        case listingChanged
    }

    public let limits: DeviceDirectoryLimits
    private let own: Fingerprint
    private var devices: [Fingerprint: Device] = [:]
    private var ghosts: [DeviceGhost.Key: DeviceGhost] = [:]
    private var dials: [DeviceDialID: DeviceDial] = [:]
    private var nextDial: UInt64 = 1
    /// The instants of recent dials, oldest first, at most `dialsPerSecond`.
    private var recentDials: [Instant] = []
    private var known: [Fingerprint: [DeviceEndpoint]] = [:]
    private var waiting: Set<Fingerprint> = []
    /// Devices to probe as soon as a dial is permitted, because the user looked at the list or one of their addresses failed.
    private var mustProbe: Set<Fingerprint> = []
    private var expiredAt: Instant?
    private var networks: [InterfaceAddress] = []
    private var isHiding = false
    private var announcements = DeviceAnnouncements()
    /// The instant at which this machine last received its own announcement, which shows that multicast works.
    public private(set) var ownHeard: Instant?

    private struct Device {
        /// The device's own description, from the last proven connection.
        var info: DeviceInfo
        /// Addresses at which the device answered or may answer, best first, at most `endpointsPerDevice`.
        var endpoints: [DeviceEndpoint]
        var provenAt: Instant
        /// Whether the last probe failed since `provenAt`.
        var hasFailed = false
        /// Whether `up` was reported without a later `down`.
        var isUp = true
        var probedAt: Instant?
        /// The Hexlist peer on the same machine.
        var samePeer: String?
    }

    /// - Parameter own: the fingerprint of this machine's certificate.
    public init(own: Fingerprint, limits: DeviceDirectoryLimits = DeviceDirectoryLimits()) {
        self.own = own
        self.limits = limits
    }

    /// - Returns: the actions to carry out, in order.
    public mutating func handle(_ input: Input, now: Instant) -> [Output] {
        var outputs: [Output] = []
        switch input {
        case .datagram(let info?, let source): announced(info, from: source, now, &outputs)
        case .datagram(nil, let source): addGhost(.invalid, nil, source, name: "", "is not an announcement of LocalSend", now, &outputs)
        case .dialEnded(let id, let result):
            if let dial = dials.removeValue(forKey: id) { ended(dial, result, now, &outputs) }
        case .requestFailed(let fingerprint, let endpoint, let result):
            ended(DeviceDial(fingerprint: fingerprint, endpoint: endpoint, name: ""), result, now, &outputs)
        case .proved(let proof, let info): proved(proof, info, port: info?.port, now, &outputs)
        case .known(let known): self.known = known
        case .waiting(let waiting):
            let more = waiting.subtracting(self.waiting)
            self.waiting = waiting
            if !more.isEmpty { announcements.request(now) }
            for fingerprint in more where devices[fingerprint] == nil { dialKnown(fingerprint, now, &outputs) }
        case .interfaces(let networks):
            guard networks != self.networks else { break }
            self.networks = networks
            announcements.burst(now)
        case .announce: announcements.burst(now)
        case .looked:
            announcements.request(now)
            mustProbe = Set(devices.keys)
        case .hiding(let isHiding): self.isHiding = isHiding
        case .tick: break
        }
        expire(now, &outputs)
        for fingerprint in waiting { probe(fingerprint, now, &outputs) }
        for fingerprint in mustProbe where probe(fingerprint, now, &outputs) { mustProbe.remove(fingerprint) }
        announcements.isWaiting = !waiting.isEmpty
        if announcements.take(now), !isHiding { outputs.append(.announce) }
        return outputs
    }

    /// The time of the next `tick`; `nil` while no rows wait and no burst is due.
    public var nextDeadline: Instant? {
        // A probe that the limits of dials delay is tried again once a second, and when a dial ends.
        let probes = waiting.compactMap { devices[$0] }.filter { $0.isUp }.map { device in
            let due = (device.probedAt ?? device.provenAt) + limits.probeInterval
            return expiredAt.map { max(due, $0 + .seconds(1)) } ?? due
        }
        return ([isHiding ? nil : announcements.nextDeadline] + probes).compactMap(\.self).min()
    }

    // MARK: Announcements

    private mutating func announced(_ info: DeviceInfo, from source: IPAddress, _ now: Instant, _ outputs: inout [Output]) {
        if info.fingerprint == own {
            ownHeard = now
            return
        }
        guard info.hexlist == nil else { return }
        guard isNear(source) else {
            return addGhost(.invalid, info.fingerprint, source, name: info.alias, "comes from an address of another network", now, &outputs)
        }
        guard info.scheme != .http else {
            return addGhost(
                .unencrypted, nil, source, name: info.alias, "has encryption turned off in LocalSend, so it cannot prove an identity", now,
                &outputs)
        }
        guard info.scheme == .https, let fingerprint = info.fingerprint else {
            return addGhost(.invalid, nil, source, name: info.alias, "does not announce a certificate", now, &outputs)
        }
        guard let port = info.port, port >= LocalSendLimits.lowestPort else {
            return addGhost(.invalid, fingerprint, source, name: info.alias, "announces no port, or one below 1024", now, &outputs)
        }
        let endpoint = DeviceEndpoint(address: source, port: port)
        let isTrusted = known[fingerprint] != nil
        if isHiding, !(isTrusted && waiting.contains(fingerprint)) {
            guard devices[fingerprint] == nil else { return }
            return addGhost(
                .unverified, fingerprint, source, name: info.alias, "was not asked, because this machine hides", now, &outputs)
        }
        // A device that answered at the announced endpoint within `redialInterval` needs no dial.
        if let device = devices[fingerprint], device.isUp, !device.hasFailed, device.endpoints.first == endpoint,
            now - device.provenAt < limits.redialInterval
        {
            return
        }
        // Anyone can claim the fingerprint of a trusted device. The dials that are reserved for trusted devices therefore also require a
        // known address of the device.
        let isExpected = isTrusted && isAddress(source, of: fingerprint)
        guard mayDial(endpoint, isTrusted: isExpected, now) else {
            guard devices[fingerprint] == nil else { return }
            return addGhost(
                .unverified, fingerprint, source, name: info.alias, "was not asked yet, because many devices announce themselves", now,
                &outputs)
        }
        dial(DeviceDial(fingerprint: fingerprint, endpoint: endpoint, name: info.alias), now, &outputs)
    }

    /// Whether an address is on one of this machine's links, so that no datagram makes this machine dial a host elsewhere.
    private func isNear(_ address: IPAddress) -> Bool {
        guard !address.isNoHost else { return false }
        return address.isLinkLocal || networks.contains { address.isInside($0.address, length: $0.prefixLength) }
    }

    // MARK: Dials

    /// Whether a device has proved itself at this address.
    private func isAddress(_ address: IPAddress, of fingerprint: Fingerprint) -> Bool {
        ((known[fingerprint] ?? []) + (devices[fingerprint]?.endpoints ?? [])).contains { $0.address == address }
    }

    private func mayDial(_ endpoint: DeviceEndpoint, isTrusted: Bool, _ now: Instant) -> Bool {
        // One dial at a time for each address, so that a host cannot occupy all of them.
        guard !dials.values.contains(where: { $0.endpoint.address == endpoint.address }) else { return false }
        let spare = isTrusted ? 0 : limits.dialsForTrusted
        guard dials.count < limits.dialsAtOnce - spare else { return false }
        let recent = recentDials.count { now - $0 < .seconds(1) }
        return recent < limits.dialsPerSecond - (isTrusted ? 0 : limits.dialsForTrusted)
    }

    private mutating func dial(_ dial: DeviceDial, _ now: Instant, _ outputs: inout [Output]) {
        let id = DeviceDialID(nextDial)
        nextDial += 1
        dials[id] = dial
        recentDials.removeAll { now - $0 >= .seconds(1) }
        recentDials.append(now)
        outputs.append(.dial(id, dial))
    }

    /// Probes a device whose last proof is old.
    /// - Returns: `false` if the limits of dials delay the probe.
    @discardableResult
    private mutating func probe(_ fingerprint: Fingerprint, _ now: Instant, _ outputs: inout [Output]) -> Bool {
        guard var device = devices[fingerprint], device.isUp, device.samePeer == nil, let endpoint = device.endpoints.first,
            now - device.provenAt >= (waiting.contains(fingerprint) ? limits.probeInterval : limits.freshFor),
            device.probedAt.map({ now - $0 >= limits.probeInterval }) ?? true
        else { return true }
        guard mayDial(endpoint, isTrusted: known[fingerprint] != nil, now) else { return false }
        device.probedAt = now
        devices[fingerprint] = device
        dial(DeviceDial(fingerprint: fingerprint, endpoint: endpoint, name: device.info.alias), now, &outputs)
        return true
    }

    /// Dials a trusted device for which rows wait, at its last known address.
    private mutating func dialKnown(_ fingerprint: Fingerprint, _ now: Instant, _ outputs: inout [Output]) {
        guard let endpoint = known[fingerprint]?.first, mayDial(endpoint, isTrusted: true, now) else { return }
        dial(DeviceDial(fingerprint: fingerprint, endpoint: endpoint, name: ""), now, &outputs)
    }

    private mutating func ended(_ dial: DeviceDial, _ result: DeviceDialResult, _ now: Instant, _ outputs: inout [Output]) {
        switch result {
        case .proved(let proof, let info): proved(proof, info, port: dial.endpoint.port, now, &outputs)
        case .otherCertificate(let other):
            let name = devices[dial.fingerprint]?.info.alias ?? dial.name
            placeFailed(dial, now, &outputs)
            addGhost(
                .impostor, dial.fingerprint, dial.endpoint.address, name: name,
                "is expected to have the certificate \(short(dial.fingerprint)) but has \(short(other))", now, &outputs)
        case .failed(let why):
            placeFailed(dial, now, &outputs)
            guard devices[dial.fingerprint] == nil, !dial.name.isEmpty else { return }
            addGhost(.unverified, dial.fingerprint, dial.endpoint.address, name: dial.name, "does not answer: \(why)", now, &outputs)
        }
    }

    /// Removes an endpoint after a dial to it failed. A device without another endpoint is away. Ignored unless it is the endpoint in use.
    private mutating func placeFailed(_ dial: DeviceDial, _ now: Instant, _ outputs: inout [Output]) {
        guard var device = devices[dial.fingerprint], device.endpoints.first == dial.endpoint else { return }
        if device.endpoints.count > 1 {
            device.endpoints.removeFirst()
            device.probedAt = nil
            devices[dial.fingerprint] = device
            mustProbe.insert(dial.fingerprint)
            return
        }
        device.hasFailed = true
        devices[dial.fingerprint] = device
        setDown(dial.fingerprint, &outputs)
    }

    private func short(_ fingerprint: Fingerprint) -> String { String(fingerprint.localSendText.prefix(8)) }

    // MARK: Proofs

    /// - Parameter port: the port at which the device answered, or which its description states; `nil` if unknown.
    private mutating func proved(
        _ proof: DeviceProof, _ info: DeviceInfo?, port: Int?, _ now: Instant, _ outputs: inout [Output]
    ) {
        guard proof.fingerprint != own else { return }
        let before = devices[proof.fingerprint]
        guard var device = before ?? info.map({ Device(info: $0, endpoints: [], provenAt: now, isUp: false) }) else { return }
        if before == nil, devices.count >= limits.devices, !makeRoom() { return }
        let endpoint = port.flatMap { $0 >= LocalSendLimits.lowestPort ? DeviceEndpoint(address: proof.address, port: $0) : nil }
        if let endpoint {
            // While the device answers at the endpoint in use, this endpoint stays first. The new one becomes the second, and is used when
            // the first one fails.
            let answers = device.isUp && !device.hasFailed && now - device.provenAt < limits.freshFor
            device.endpoints.removeAll { $0 == endpoint }
            device.endpoints.insert(endpoint, at: answers && before?.endpoints.first != endpoint ? min(1, device.endpoints.count) : 0)
            device.endpoints = Array(device.endpoints.prefix(limits.endpointsPerDevice))
        }
        if let info { device.info = info }
        device.info.fingerprint = proof.fingerprint
        device.provenAt = now
        device.hasFailed = false
        device.probedAt = nil
        device.samePeer = proof.samePeer
        let isNew = !device.isUp
        device.isUp = true
        devices[proof.fingerprint] = device
        let isGhostGone = ghosts.removeValue(forKey: DeviceGhost.Key(.unverified, proof.fingerprint, proof.address)) != nil
        let isSame =
            before.map { $0.endpoints == device.endpoints && PeerTextComparison.areEqual($0.info.alias, device.info.alias) } ?? false
        if !isNew, isGhostGone || !isSame { outputs.append(.listingChanged) }
        if let peer = proof.samePeer {
            addGhost(
                .duplicate, proof.fingerprint, proof.address, name: device.info.alias, "is the same machine as \(peer), which has Hexlist",
                now, &outputs)
        } else if isNew {
            outputs.append(.up(proof.fingerprint))
        }
    }

    /// Evicts the stranger that was proven longest ago.
    private mutating func makeRoom() -> Bool {
        let oldest = devices.filter { known[$0.key] == nil }.min { $0.value.provenAt < $1.value.provenAt }?.key
        guard let oldest else { return false }
        devices[oldest] = nil
        return true
    }

    // MARK: Away

    private mutating func expire(_ now: Instant, _ outputs: inout [Output]) {
        guard expiredAt.map({ now - $0 >= .seconds(1) }) ?? true else { return }
        expiredAt = now
        for (fingerprint, device) in devices where device.isUp && now - device.provenAt >= limits.awayAfter {
            setDown(fingerprint, &outputs)
        }
        ghosts = ghosts.filter { now - $0.value.seenAt < limits.ghostTime }
    }

    private mutating func setDown(_ fingerprint: Fingerprint, _ outputs: inout [Output]) {
        guard devices[fingerprint]?.isUp == true else { return }
        devices[fingerprint]?.isUp = false
        if devices[fingerprint]?.samePeer == nil { outputs.append(.down(fingerprint)) }
    }

    // MARK: Ghosts

    private mutating func addGhost(
        _ reason: DeviceGhost.Reason, _ fingerprint: Fingerprint?, _ address: IPAddress, name: String, _ why: String, _ now: Instant,
        _ outputs: inout [Output]
    ) {
        let key = DeviceGhost.Key(reason, fingerprint, address)
        let ghost = DeviceGhost(reason: reason, fingerprint: fingerprint, address: address, name: name, why: why, seenAt: now)
        let isNew = ghosts[key] == nil
        if isNew, ghosts.count >= limits.ghosts, let oldest = ghosts.min(by: { $0.value.seenAt < $1.value.seenAt })?.key {
            ghosts[oldest] = nil
        }
        ghosts[key] = ghost
        if isNew { outputs.append(.ghost(ghost)) }
    }

    // MARK: Listing

    /// The devices and ghosts, in no particular order.
    public func listing(now: Instant) -> [DeviceRow] {
        var rows = devices.filter { $0.value.samePeer == nil }.map { row($0.key, $0.value, now: now) }
        for ghost in ghosts.values where now - ghost.seenAt < limits.ghostTime { rows.append(DeviceRow(ghost)) }
        return rows
    }

    /// The row of one device; `nil` if it was not proven since the start.
    public func row(of fingerprint: Fingerprint, now: Instant) -> DeviceRow? {
        devices[fingerprint].flatMap { $0.samePeer == nil ? row(fingerprint, $0, now: now) : nil }
    }

    /// The fingerprint of a device that was proven since the start.
    public func fingerprint(of peer: PeerID) -> Fingerprint? { devices.keys.first { $0.peerID == peer } }

    private func row(_ fingerprint: Fingerprint, _ device: Device, now: Instant) -> DeviceRow {
        let isUp = device.isUp && now - device.provenAt < limits.awayAfter
        return DeviceRow(
            fingerprint: fingerprint, state: isUp ? .verified : .away, name: device.info.alias, version: device.info.version,
            endpoints: device.endpoints, provenAt: device.provenAt)
    }

    /// The number of devices in memory.
    public var count: Int { devices.count }
}
