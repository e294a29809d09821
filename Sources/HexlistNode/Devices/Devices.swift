import HexlistAPI
import HexlistEventLoop
import HexlistLocalSend
import HexlistModel
import HexlistStore
import HexlistSystem
import HexlistTransport
import Logging
import NIOCore

/// The LocalSend devices on the network: drives the `DeviceDirectory`, with its sockets, dials and timer.
///
/// Devices are found and dialled separately from Hexlist peers. Their stored records are in `PeerRegistry.devices`.
final class Devices {
    /// Timeout of a `register` request.
    private static let dialTime = TimeAmount.seconds(2)
    private static let day = Duration.seconds(86_400)

    /// The configured mode of LocalSend.
    private enum Mode: Equatable {
        case off
        /// Announcements are received, but nothing is announced and no port is open (`announce: false`).
        case hidden
        case open
    }

    let own: Fingerprint
    private(set) var directory: DeviceDirectory
    let requests: DeviceRequests
    private var mode = Mode.off
    private var multicast: DeviceMulticast?
    private var datagrams = SourceRateLimit.datagrams
    private var addresses: [InterfaceAddress] = []
    /// The TCP port; `nil` while none is open.
    private(set) var port: DevicePort?
    /// The reason why no port is open although one should be.
    private(set) var failure: String?
    private let timer: DeadlineTimer
    /// The courier of each device that is trusted and online.
    var couriers: [PeerID: LocalSendCourier] = [:]
    /// The devices for which undelivered outbox rows may exist.
    var waiting: Set<PeerID> = []
    /// The time at which a failed handshake of an address was last logged, for at most `loggedLimit` addresses.
    private var refused: [IPAddress: ContinuousClock.Instant] = [:]
    private static let loggedLimit = 64

    /// - Parameter own: the fingerprint of this machine's certificate.
    init(own: Fingerprint, on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.own = own
        directory = DeviceDirectory(own: own)
        requests = DeviceRequests(on: eventLoop, clocks)
        timer = DeadlineTimer(on: eventLoop, clocks)
    }

    // MARK: Life cycle

    /// Opens the TCP port and joins the multicast groups, as configured.
    func start(_ node: isolated Node) async {
        knownChanged(node)
        await requests.files.start(node)
        guard let settings = node.configuration.localSend else { return }
        let isEnabled = settings.isEnabled ?? node.configuration.announce
        mode = !isEnabled ? .off : node.configuration.announce ? .open : .hidden
        apply(.hiding(mode != .open), node)
        guard mode != .off else { return }
        if mode == .open { await listen(settings, node) }
        guard mode != .open || port != nil,
            let groups = DeviceMulticast.Groups(
                four: LocalSendLimits.multicastGroup, six: LocalSendLimits.multicastGroup6, port: LocalSendLimits.port)
        else { return }
        multicast = DeviceMulticast(
            groups: groups, maximumBytes: LocalSendLimits.infoBytes, eventLoop: node.eventLoop, logger: node.logger
        ) { [weak node] bytes, source in
            node?.assumeIsolated { $0.devices.received(bytes, from: source, $0) }
        }
        multicast?.set(addresses)
        apply(.announce, node)
        recordsChanged(node)
    }

    private func listen(_ settings: NodeConfiguration.LocalSend, _ node: isolated Node) async {
        do {
            port = try await DevicePort.listen(settings, node)
        } catch {
            failure = (error as? HexlistError)?.message ?? "\(error)"
            node.logger.warning("no port for LocalSend devices", metadata: ["error": "\(failure ?? "")"])
        }
    }

    func stop(_ node: isolated Node) async {
        timer.cancel()
        multicast?.stop()
        multicast = nil
        for courier in couriers.values { courier.stop() }
        requests.unanswered.stop(node)
        await requests.files.stop(node)
    }

    /// Applies changes of the settings `name` and `announce`.
    func reconfigured(from old: NodeConfiguration, _ node: isolated Node) async {
        if node.configuration.announce != old.announce {
            if let port { node.transport.stopListening(port: port.number) }
            (port, failure) = (nil, nil)
            multicast?.stop()
            multicast = nil
            await start(node)
        } else if node.configuration.name != old.name, mode == .open {
            apply(.announce, node)
        }
    }

    /// Whether requests of devices are answered.
    var isOpen: Bool { mode == .open }

    /// Whether LocalSend is enabled, so that trusted devices are dialled.
    var isEnabled: Bool { mode != .off }

    // MARK: Inputs

    func networkChanged(_ addresses: [InterfaceAddress], _ node: isolated Node) {
        self.addresses = Self.listening(addresses, node.configuration.listen)
        multicast?.set(self.addresses)
        apply(.interfaces(self.addresses), node)
    }

    /// The addresses at which devices can connect. No announcement is sent on the interfaces of other addresses.
    /// - Parameter listen: the configured addresses; empty for all.
    static func listening(_ addresses: [InterfaceAddress], _ listen: [String]) -> [InterfaceAddress] {
        let listen = ListenAddresses(listen)
        return addresses.filter { listen.contains($0.address) }
    }

    func woke(_ node: isolated Node) {
        if mode != .off { apply(.announce, node) }
    }

    /// Announces this machine and probes stale devices, because the user looks at the list of peers.
    func looked(_ node: isolated Node) {
        if mode != .off { apply(.looked, node) }
    }

    /// Passes the trusted devices to the directory, after the registry has read them.
    func knownChanged(_ node: isolated Node) {
        var known: [Fingerprint: [DeviceEndpoint]] = [:]
        for record in node.registry.devices.values where record.trust == .trusted {
            guard let fingerprint = record.fingerprint else { continue }
            known[fingerprint] = record.endpoints.compactMap { endpoint in
                IPAddress(ofHost: endpoint.host).map { DeviceEndpoint(address: $0, port: endpoint.port) }
            }
        }
        apply(.known(known), node)
        recordsChanged(node)
    }

    private func received(_ bytes: ByteBuffer, from source: IPAddress, _ node: isolated Node) {
        guard !node.isStopping, datagrams.take(from: source, now: node.clocks.now) else { return }
        apply(.datagram(try? DeviceInfo(parsing: Array(bytes.readableBytesView)), from: source), node)
    }

    /// Records that a device proved its certificate with a request to this machine.
    /// - Parameter info: the description in the request; ignored if its fingerprint is not that of the certificate.
    func proved(_ certificate: DeviceCertificate, at address: IPAddress, info: DeviceInfo?, _ node: isolated Node) {
        let claimed = info?.fingerprint == certificate.fingerprint ? info : nil
        if let info, info.fingerprint != certificate.fingerprint {
            node.logger.debug(
                "a device announces another certificate than it uses",
                metadata: ["peer.id": "\(certificate.fingerprint.peerID)", "remote.address": "\(address)"])
        }
        apply(.proved(proof(of: certificate, at: address, node), info: claimed), node)
    }

    /// Logs a failed handshake, once a day for each address.
    func handshakeFailed(of address: IPAddress, _ node: isolated Node) {
        let now = node.clocks.now
        if let last = refused[address], now - last < Self.day { return }
        if refused.count >= Self.loggedLimit { refused = refused.filter { now - $0.value < Self.day } }
        guard refused.count < Self.loggedLimit else { return }
        refused[address] = now
        node.logger.notice(
            "a LocalSend device could not connect; versions before 1.16 have no certificate", metadata: ["remote.address": "\(address)"])
    }

    private func proof(of certificate: DeviceCertificate, at address: IPAddress, _ node: isolated Node) -> DeviceProof {
        var samePeer: String?
        if let key = certificate.key, node.registry.isKnown(key) { samePeer = node.peerList.text(of: key.peerID) }
        return DeviceProof(fingerprint: certificate.fingerprint, address: address, samePeer: samePeer)
    }

    // MARK: Outputs

    func apply(_ input: DeviceDirectory.Input, _ node: isolated Node) {
        guard !node.isStopping else { return }
        for output in directory.handle(input, now: node.clocks.now) {
            switch output {
            case .announce: multicast?.send(info(of: node).announcement)
            case .dial(let id, let dial): self.dial(id, dial, node)
            case .up(let fingerprint):
                remember(fingerprint, node)
                record(.peerUp, fingerprint, node)
                cameUp(fingerprint, node)
            case .down(let fingerprint):
                record(.peerDown, fingerprint, node)
                wentDown(fingerprint, node)
            case .ghost(let ghost): record(ghost, node)
            case .listingChanged: node.watchers.notify()
            }
        }
        timer.set(directory.nextDeadline, node) { $0.devices.apply(.tick, $0) }
    }

    /// The description of this machine for devices.
    func info(of node: isolated Node) -> DeviceInfo {
        DeviceInfo(
            alias: node.configuration.name, deviceModel: "Hexlist", deviceType: "desktop", fingerprint: own, port: port?.number,
            scheme: .https, hexlist: node.id)
    }

    private func dial(_ id: DeviceDialID, _ dial: DeviceDial, _ node: isolated Node) {
        let request = node.transport.postToDevice(
            at: dial.endpoint.address, port: dial.endpoint.port, expecting: dial.fingerprint, path: LocalSendLimits.path + "/v2/register",
            body: info(of: node).registration, limit: LocalSendLimits.infoBytes, timeout: Self.dialTime)
        request.whenComplete { [weak node] result in
            node?.assumeIsolated { node in
                node.devices.apply(.dialEnded(id, node.devices.result(result, of: dial, node)), node)
            }
        }
    }

    private func result(
        _ result: Result<DeviceResponse, any Error>, of dial: DeviceDial, _ node: isolated Node
    ) -> DeviceDialResult {
        switch result {
        case .success(let response):
            guard response.status == 200, let info = try? DeviceInfo(parsing: response.body) else {
                return .failed("does not answer in LocalSend's protocol")
            }
            return .proved(proof(of: response.certificate, at: dial.endpoint.address, node), info)
        case .failure(DeviceRequestFault.otherCertificate(let other)): return .otherCertificate(other)
        case .failure(let fault): return .failed((fault as? DeviceRequestFault)?.text ?? "does not answer")
        }
    }

    /// Handles a failed request to a device: no connection was opened, or another device answered.
    func requestFailed(_ device: Fingerprint, at endpoint: DeviceEndpoint, _ result: DeviceDialResult, _ node: isolated Node) {
        apply(.requestFailed(device, at: endpoint, result), node)
    }

    private func record(_ type: EventType, _ fingerprint: Fingerprint, _ node: isolated Node) {
        let peer = fingerprint.peerID
        let isTrusted = node.registry.devices[peer]?.trust == .trusted
        node.events.record(type, peer: peer, from: isTrusted ? .peerPresence(of: peer) : .strangers, node)
        node.watchers.notify()
    }

    private func record(_ ghost: DeviceGhost, _ node: isolated Node) {
        guard ghost.reason != .duplicate else { return }
        let peer = ghost.fingerprint?.peerID
        let isOfTrusted = ghost.reason == .impostor && peer.map { node.registry.devices[$0]?.trust == .trusted } ?? false
        node.events.record(
            .peerGhost, peer: peer, data: ["name": ghost.name, "reason": ghost.reason.rawValue, "why": PeerList.sentence(ghost.why)],
            from: isOfTrusted ? peer.map { .impostors(of: $0) } : .strangers, node)
        node.watchers.notify()
    }

    /// Stores the name and address of a recorded device, after it proved its certificate.
    private func remember(_ fingerprint: Fingerprint, _ node: isolated Node) {
        guard node.registry.devices[fingerprint.peerID]?.fingerprint == fingerprint,
            let contact = contact(fingerprint, at: node.clocks.milliseconds, now: node.clocks.now)
        else { return }
        node.store.record(contact) { [node] result in
            guard case .failure(let error) = result else { return }
            node.logger.error("device could not be recorded", metadata: ["peer.id": "\(contact.peer)", "error": "\(error)"])
        }
    }

    /// The last known addresses of a device, in the form in which they are stored.
    func endpoints(of fingerprint: Fingerprint?, _ node: isolated Node) -> [PeerEndpoint] {
        fingerprint.flatMap { contact($0, at: node.clocks.milliseconds, now: node.clocks.now) }?.endpoints ?? []
    }

    /// The contact information of a device; `nil` if it is not in the directory.
    func contact(_ fingerprint: Fingerprint, at milliseconds: Int64, now: ContinuousClock.Instant) -> PeerContact? {
        guard let row = directory.row(of: fingerprint, now: now) else { return nil }
        return PeerContact(
            peer: fingerprint.peerID, kind: .localsend, fingerprint: fingerprint, name: PeerName.cut(row.name, bytes: NormalizedName.bytes),
            version: row.version.map { PeerName.cut($0, bytes: ProtocolLimits.wordBytes) }, boot: nil, seenAt: milliseconds,
            endpoints: row.endpoints.reversed().filter { !$0.address.isLinkLocal }.map { PeerEndpoint($0, lastOKAt: milliseconds) })
    }

    // MARK: Status

    /// The state of LocalSend for `status` and `doctor`.
    func status(_ node: isolated Node) -> LocalSendStatus {
        let state: LocalSendStatus.State =
            switch mode {
            case .off: .off
            case .hidden: .hidden
            case .open: failure == nil ? .running : .failed
            }
        return LocalSendStatus(
            state: state, port: port?.number, reason: failure ?? port?.reason, fingerprint: own, interfaces: multicast?.interfaces ?? [],
            hearsItself: directory.ownHeard != nil)
    }
}
