import HexlistModel
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL

/// The TLS server for LocalSend devices. Its connections have their own limits, so that devices take no connections away from peers. Used
/// on its event loop only.
final class DeviceServer {
    private static let limits = {
        var limits = TransportLimits()
        (limits.connections, limits.perAddress, limits.unidentified, limits.reserved) = (64, 8, 64, 0)
        return limits
    }()

    /// Maximum number of TLS handshakes per second. Further connections wait for their handshake.
    private static let handshakesPerSecond = 50

    let state: TransportState
    let tls: DeviceTLS
    var admission = Admission(limits: DeviceServer.limits)
    let handshakes: HandshakeRateLimit
    let received: (IncomingDeviceRequest) -> Void
    /// Called with the address of a connection whose handshake failed, for example because the device has no certificate.
    let refused: (IPAddress) -> Void

    init(
        state: TransportState, tls: DeviceTLS, received: @escaping (IncomingDeviceRequest) -> Void, refused: @escaping (IPAddress) -> Void
    ) {
        self.state = state
        self.tls = tls
        handshakes = HandshakeRateLimit(perSecond: Self.handshakesPerSecond, eventLoop: state.eventLoop)
        self.received = received
        self.refused = refused
    }

    func install(on channel: any Channel) throws {
        let accepted = AcceptedDeviceChannel(self)
        try SocketOptions.apply(to: channel)
        let gate = ChannelGate(phase: .firstByte, owner: accepted)
        accepted.gate = gate
        try channel.pipeline.syncOperations.addHandler(gate)
    }
}

/// An accepted connection of a LocalSend device: admission and the TLS handshake, within 5 s together, and then HTTP.
private final class AcceptedDeviceChannel: ChannelGateOwner {
    private static let handshakeTime = TimeAmount.seconds(5)
    private static let tlsHandshake: UInt8 = 0x16

    private let server: DeviceServer
    var gate: ChannelGate?
    private var channel: (any Channel)?
    private var slot: Admission.Slot?
    private var waiter: HandshakeRateLimit.Waiter?
    private var deadline: Scheduled<Void>?

    init(_ server: DeviceServer) { self.server = server }

    func activated(_ channel: any Channel) -> Bool {
        guard !server.state.isStopping, let gate, let address = channel.remoteAddress.flatMap(IPAddress.init) else { return false }
        guard let slot = try? server.admission.admit(address) else { return false }
        self.slot = slot
        self.channel = channel
        server.state.opened(channel, gate)
        deadline = server.state.eventLoop.assumeIsolated().scheduleTask(in: Self.handshakeTime) { self.fail("no handshake in time") }
        return true
    }

    func firstByte(_ byte: UInt8, on channel: any Channel) -> ChannelGate.FirstByte {
        guard byte == Self.tlsHandshake, let address = channel.remoteAddress.flatMap(IPAddress.init) else { return .refused }
        waiter = server.handshakes.enter {
            self.waiter = nil
            if self.beginHandshake(on: channel, address) { self.gate?.beginHandshake() } else { self.gate?.abort() }
        }
        guard waiter == nil else { return .later }
        return beginHandshake(on: channel, address) ? .handshake : .refused
    }

    /// Installs the handlers for the TLS handshake.
    /// - Returns: `false` if a handler could not be installed.
    private func beginHandshake(on channel: any Channel, _ address: IPAddress) -> Bool {
        let tls = server.tls.makeServerHandler()
        do {
            try channel.pipeline.syncOperations.addHandler(tls)
            try channel.pipeline.syncOperations.addHandler(
                DeviceHandshake(tls: tls) { handshake, result in
                    switch result {
                    case .success(let certificate): self.connect(certificate, address, on: channel, replacing: handshake)
                    case .failure(let fault):
                        self.server.refused(address)
                        self.fail("\(fault)")
                    }
                })
            return true
        } catch {
            return false
        }
    }

    private func connect(
        _ certificate: DeviceCertificate, _ address: IPAddress, on channel: any Channel, replacing handshake: DeviceHandshake
    ) {
        deadline?.cancel()
        deadline = nil
        guard let gate, var slot else { return }
        server.admission.identified(&slot)
        self.slot = slot
        gate.handshakeCompleted()
        do {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandlers([
                HTTPResponseEncoder(),
                ByteToMessageHandler(
                    HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: DeviceServerConnection.decoder)),
                DeviceServerConnection(certificate: certificate, remoteAddress: address, closeSocket: { gate.abort() }, server.received),
            ])
            pipeline.removeHandler(handshake, promise: nil)
        } catch {
            fail("\(error)")
        }
    }

    private func fail(_ reason: String) {
        deadline?.cancel()
        deadline = nil
        server.state.logger.debug("connection of a device dropped", metadata: ["reason": "\(reason)"])
        gate?.abort()
    }

    func ended() {
        waiter?.cancel()
        waiter = nil
        deadline?.cancel()
        deadline = nil
        if let slot { server.admission.release(slot) }
        slot = nil
        if let channel { server.state.ended(channel) }
        channel = nil
        gate = nil
    }
}
