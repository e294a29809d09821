import HexlistModel
import Logging
import NIOCore
import NIOSSL

/// An accepted TCP connection until its peer is authenticated. The steps are admission, the first byte and the TLS handshake. Together they
/// may take `TransportLimits.handshakeSeconds`.
final class AcceptedChannel: ChannelGateOwner {
    /// The first byte of a TLS handshake record.
    private static let tlsHandshake: UInt8 = 0x16
    /// The first byte of a frame on plain TCP: frames have less than 16 MiB (Docs/Protocol.md, "Framing").
    private static let frame: UInt8 = 0x00
    /// The first letters of the HTTP methods: GET, POST and PUT, HEAD, OPTIONS, DELETE.
    private static let methods = Array("GPHOD".utf8)

    private let state: TransportState
    private var channel: (any Channel)?
    private var gate: ChannelGate?
    private var slot: Admission.Slot?
    private var waiter: HandshakeRateLimit.Waiter?
    private var deadline: Scheduled<Void>?
    private var hasFailed = false
    private var openedAt = ContinuousClock.now

    /// Adds the handlers for an accepted connection to its channel.
    /// - Throws: an error of the channel. The caller then closes the channel.
    static func install(on channel: any Channel, state: TransportState) throws {
        let accepted = AcceptedChannel(state: state)
        try SocketOptions.apply(to: channel)
        let gate = ChannelGate(phase: .firstByte, owner: accepted)
        accepted.gate = gate
        try channel.pipeline.syncOperations.addHandler(gate)
    }

    private init(state: TransportState) { self.state = state }

    func activated(_ channel: any Channel) -> Bool {
        guard !state.isStopping, let gate, let address = channel.remoteAddress.flatMap(IPAddress.init) else { return false }
        do {
            slot = try state.admission.admit(address)
        } catch {
            state.logger.debug(
                "connection refused", metadata: ["remote.address": "\(address.host)", "limit": "\(error.rawValue)"])
            state.metrics.refused(.init(error))
            return false
        }
        self.channel = channel
        openedAt = ContinuousClock.now
        state.opened(channel, gate)
        let seconds = Int64(max(1, state.admission.limits.handshakeSeconds))
        deadline = state.eventLoop.assumeIsolated().scheduleTask(in: .seconds(seconds)) {
            self.fail("no handshake in time", .timeout)
        }
        return true
    }

    func firstByte(_ byte: UInt8, on channel: any Channel) -> ChannelGate.FirstByte {
        switch byte {
        case Self.tlsHandshake:
            guard let slot else { return .refused }
            waiter = (slot.isReserved ? state.reservedHandshakes : state.handshakes).enter { self.startDelayedHandshake(on: channel) }
            guard waiter == nil else { return .later }
            return beginHandshake(on: channel) ? .handshake : .refused
        case Self.frame where state.acceptsPlain:
            connect(nil, on: channel, replacing: nil)
            return .frame
        case let byte where Self.methods.contains(byte) && state.plainHTTP.isOpen(): return servePlainHTTP(on: channel)
        default:
            fail("neither TLS nor a frame", .notHexlist)
            return .refused
        }
    }

    /// Passes a connection to the server of plain HTTP. It no longer counts for the limits of peer connections, but for those of that
    /// server.
    private func servePlainHTTP(on channel: any Channel) -> ChannelGate.FirstByte {
        guard let slot, let address = channel.remoteAddress.flatMap(IPAddress.init) else { return .refused }
        switch state.plainSlots.enter(ObjectIdentifier(channel), from: state.admission.network(of: address)) {
        case .entered: break
        case .enteredInstead(let other): state.abort(other)
        case .refused:
            fail("too many connections of plain HTTP", .connections)
            return .refused
        }
        state.admission.release(slot)
        self.slot = nil
        deadline?.cancel()
        deadline = nil
        do {
            try state.plainHTTP.serve(channel)
        } catch {
            fail("\(error)", .notHexlist)
            return .refused
        }
        state.metrics.accepted.increment()
        return .frame
    }

    private func startDelayedHandshake(on channel: any Channel) {
        waiter = nil
        if beginHandshake(on: channel) { gate?.beginHandshake() }
    }

    /// Installs the handlers for the TLS handshake.
    /// - Returns: `false` if a handler could not be installed.
    private func beginHandshake(on channel: any Channel) -> Bool {
        let tls = state.contexts.makeServerHandler()
        let pipeline = channel.pipeline.syncOperations
        do {
            try pipeline.addHandler(tls)
            try pipeline.addHandler(
                HandshakeHandler(tls: tls) { handshake, result in
                    switch result {
                    case .success(let peer):
                        switch peer.purpose {
                        case .session: self.connect(peer.fingerprint, on: channel, replacing: handshake)
                        case .files: self.serve(peer.fingerprint, on: channel, replacing: handshake)
                        case .servingFiles: self.takeFiles(of: peer.fingerprint, on: channel, replacing: handshake)
                        }
                    case .failure(let fault): self.fail("\(fault)", .handshake)
                    }
                })
            return true
        } catch {
            fail("\(error)", .handshake)
            return false
        }
    }

    private func connect(_ fingerprint: Fingerprint?, on channel: any Channel, replacing handshake: HandshakeHandler?) {
        deadline?.cancel()
        deadline = nil
        guard let gate, slot != nil else { return }
        gate.handshakeCompleted()
        let connection = PeerConnection(
            channel: channel, gate: gate,
            origin: .init(
                role: .acceptor, fingerprint: fingerprint, openedAt: openedAt,
                network: channel.remoteAddress.flatMap(IPAddress.init).map(state.admission.network)),
            identified: { self.identified() })
        do {
            try connection.install(replacing: handshake)
        } catch {
            return fail("\(error)", .handshake)
        }
        state.connected(connection, on: channel)
        state.accepted(connection)
    }

    /// Prepares a connection on which the peer fetches files, if the `FileConnectionHost` permits another one.
    private func serve(_ fingerprint: Fingerprint, on channel: any Channel, replacing handshake: HandshakeHandler) {
        deadline?.cancel()
        deadline = nil
        guard let gate, let address = channel.remoteAddress.flatMap(IPAddress.init), slot != nil else { return }
        guard let host = state.host(serving: fingerprint) else { return fail("files are not for it", .handshake) }
        gate.handshakeCompleted()
        identified()
        let connection = FileServerConnection(
            channel: channel, gate: gate, peer: fingerprint, remoteAddress: address.host, threads: state.fileThreads,
            firstHead: host.firstHead)
        do {
            try connection.install(replacing: handshake)
        } catch {
            return fail("\(error)", .handshake)
        }
        state.serves(connection)
    }

    /// Prepares a connection on which the peer serves files, if this machine has requested it to dial.
    private func takeFiles(of fingerprint: Fingerprint, on channel: any Channel, replacing handshake: HandshakeHandler) {
        deadline?.cancel()
        deadline = nil
        guard let gate, slot != nil else { return }
        guard state.expectsFiles(of: fingerprint) else { return fail("nobody asked it for files", .handshake) }
        gate.handshakeCompleted()
        identified()
        let connection = FileClientConnection(channel: channel, gate: gate, peer: fingerprint)
        do {
            try connection.install(replacing: handshake)
        } catch {
            return fail("\(error)", .handshake)
        }
        state.filesConnected(on: connection)
    }

    private func identified() {
        guard var slot else { return }
        state.admission.identified(&slot)
        self.slot = slot
    }

    private func fail(_ reason: String, _ refusal: TransportMetrics.Refusal) {
        if !hasFailed { state.metrics.refused(refusal) }
        hasFailed = true
        deadline?.cancel()
        deadline = nil
        state.logger.debug(
            "connection dropped",
            metadata: [
                "remote.address": "\(channel?.remoteAddress.flatMap(IPAddress.init)?.host ?? "?")", "reason": "\(reason)",
            ])
        gate?.abort()
    }

    /// Keeps the slot of the connection, and permits longer reads.
    func authenticated() {
        guard let channel else { return }
        state.plainSlots.authenticate(ObjectIdentifier(channel))
        SocketOptions.permitLongReads(on: channel)
    }

    func ended() {
        deadline?.cancel()
        deadline = nil
        waiter?.cancel()
        waiter = nil
        if let slot { state.admission.release(slot) }
        slot = nil
        if let channel {
            state.plainSlots.leave(ObjectIdentifier(channel))
            state.ended(channel)
        }
        channel = nil
        gate = nil
    }
}
