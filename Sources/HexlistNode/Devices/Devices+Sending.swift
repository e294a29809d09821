import HexlistDelivery
import HexlistLocalSend
import HexlistModel
import HexlistTransport

/// Manages the couriers: one `LocalSendCourier` for each trusted device that is online.
extension Devices {
    /// The address of a device; `nil` if it is not online.
    func endpoint(of device: Fingerprint, _ node: isolated Node) -> DeviceEndpoint? {
        guard let row = directory.row(of: device, now: node.clocks.now), row.state == .verified else { return nil }
        return row.endpoints.first
    }

    /// Whether a trusted device is online.
    func isOnline(_ peer: PeerID, _ node: isolated Node) -> Bool { trusted(peer, node).map { endpoint(of: $0, node) != nil } ?? false }

    /// The certificate fingerprint of a device; `nil` if it is not trusted.
    private func trusted(_ peer: PeerID, _ node: isolated Node) -> Fingerprint? {
        guard let record = node.registry.devices[peer], record.trust == .trusted else { return nil }
        return record.fingerprint
    }

    /// Creates a courier for a trusted device that is online, unless the device already has one. Sending begins in a later tick of the
    /// event loop.
    /// - Returns: `false` if the device is away, or not trusted.
    @discardableResult
    func connect(_ peer: PeerID, _ node: isolated Node) -> Bool {
        guard isEnabled, let device = trusted(peer, node), endpoint(of: device, node) != nil else { return false }
        if let courier = couriers[peer], courier.isOpen { return true }
        let courier = LocalSendCourier(device, node)
        couriers[peer] = courier
        node.deliver { deliveries, _ in deliveries.connected(courier, to: peer, start: .random) }
        node.onLoop { node in node.deliver { $0.pump(courier, to: peer, $1) } }
        return true
    }

    /// Handles the return of a device that was away: it has proved its certificate.
    func cameUp(_ device: Fingerprint, _ node: isolated Node) {
        let peer = device.peerID
        node.deliver { deliveries, _ in deliveries.peerIsBack(peer) }
        connect(peer, node)
    }

    func wentDown(_ device: Fingerprint, _ node: isolated Node) {
        couriers.removeValue(forKey: device.peerID)?.end(CourierEnd(.lost, "The device is away."), node)
    }

    /// Applies changes of stored device records: ends the couriers of devices that are no longer trusted, and creates couriers for trusted
    /// devices that are online.
    func recordsChanged(_ node: isolated Node) {
        for (peer, courier) in couriers where trusted(peer, node) == nil {
            couriers[peer] = nil
            courier.end(CourierEnd(.lost, "The device is not trusted."), node)
        }
        for record in node.registry.devices.values where record.trust == .trusted { connect(record.peer, node) }
        waiting = waiting.filter { mayHaveRows($0, node) }
        for record in node.registry.devices.values where record.queued > 0 && record.trust == .trusted { waiting.insert(record.peer) }
        waitingChanged(node)
    }

    /// Adds the recipients of new outbox rows that are devices to `waiting`, so that the directory announces this machine and probes for
    /// them.
    func rowsQueued(for peers: [PeerID], _ node: isolated Node) {
        let devices = peers.filter { node.registry.devices[$0] != nil }
        guard !devices.isEmpty else { return }
        waiting.formUnion(devices)
        waitingChanged(node)
    }

    func rowSettled(of peer: PeerID, _ node: isolated Node) {
        guard !mayHaveRows(peer, node) else { return }
        waiting.remove(peer)
        waitingChanged(node)
    }

    private func mayHaveRows(_ peer: PeerID, _ node: isolated Node) -> Bool {
        guard couriers[peer] != nil else { return node.registry.devices[peer]?.queued ?? 0 > 0 }
        return node.deliver { deliveries, _ in deliveries.hasWork(for: peer) }
    }

    private func waitingChanged(_ node: isolated Node) {
        guard isEnabled else { return }
        apply(.waiting(Set(waiting.compactMap { trusted($0, node) })), node)
    }

    /// Passes the PIN of a device, which the user set or deleted, to its courier.
    func pinChanged(to pin: String?, of peer: PeerID, _ node: isolated Node) { couriers[peer]?.pinChanged(to: pin, node) }
}
