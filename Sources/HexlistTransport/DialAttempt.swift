import HexlistModel
import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// One attempt to connect to one address, up to the end of the TLS handshake.
final class DialAttempt: ChannelGateOwner {
    /// Timeout of the TCP connection and the TLS handshake together. A host on the same network answers within milliseconds.
    static let time = TimeAmount.seconds(3)

    /// An established connection, in the form that its purpose requires.
    enum Established {
        case session(PeerConnection)
        case files(FileClientConnection)
        case serving(FileServerConnection)

        func abort() {
            switch self {
            case .session(let connection): connection.abort()
            case .files(let connection): connection.abort()
            case .serving(let connection): connection.abort()
            }
        }
    }

    let target: DialTarget
    private let address: IPAddress
    private let purpose: ConnectionProtocol
    private let expected: PeerID?
    /// The identity in the server's certificate, if another one was expected.
    private var other: PeerID?
    private let state: TransportState
    private let openedAt = ContinuousClock.now
    private var completion: ((DialAttempt, Result<Established, DialError>) -> Void)?
    private var gate: ChannelGate?
    private var channel: (any Channel)?
    private var deadline: Scheduled<Void>?

    /// - Parameters:
    ///   - expected: the peer that has to answer; `nil` for any peer. If another one answers, the attempt fails with `otherIdentity`.
    ///   - completion: called exactly once.
    init(
        target: DialTarget, address: IPAddress, purpose: ConnectionProtocol, expecting expected: PeerID?, state: TransportState,
        completion: @escaping (DialAttempt, Result<Established, DialError>) -> Void
    ) {
        self.target = target
        self.address = address
        self.purpose = purpose
        self.expected = expected
        self.state = state
        self.completion = completion
    }

    func start() {
        guard let address = address.socketAddress(port: target.port), target.port > 0 else {
            return end(.failure(.failed("\(target) is no address")))
        }
        deadline = state.eventLoop.assumeIsolated().scheduleTask(in: Self.time) { self.fail(.timeout) }
        let bound = NIOLoopBound(self, eventLoop: state.eventLoop)
        ClientBootstrap(group: state.eventLoop)
            .connectTimeout(Self.time)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try bound.value.install(on: channel) }
            }
            .connect(to: address)
            .assumeIsolated().whenFailure { self.fail(Self.classify($0)) }
    }

    func cancel() { fail(.cancelled) }

    private func install(on channel: any Channel) throws {
        guard completion != nil else { throw DialError.cancelled }
        try SocketOptions.apply(to: channel)
        let gate = ChannelGate(phase: .handshaking(bytes: 0), owner: self)
        self.gate = gate
        let tls = try state.contexts.makeClientHandler(for: purpose) { [weak self] in self?.isWanted($0) ?? false }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(gate)
        try pipeline.addHandler(tls)
        try pipeline.addHandler(
            HandshakeHandler(tls: tls) { handshake, result in
                switch result {
                case .success(let peer): self.connect(peer.fingerprint, on: channel, replacing: handshake)
                case .failure(.closed): self.fail(.closed)
                case .failure(.foreign(let why)): self.fail(.notHexlist(why))
                }
            })
    }

    /// Whether to continue the handshake with this peer. An unexpected peer does not get this machine's certificate.
    private func isWanted(_ peer: PeerID) -> Bool {
        guard let expected, peer != expected else { return true }
        other = peer
        return false
    }

    private func connect(_ fingerprint: Fingerprint, on channel: any Channel, replacing handshake: HandshakeHandler) {
        guard completion != nil, let gate else { return }
        if let expected, fingerprint.peerID != expected { return fail(.otherIdentity(fingerprint.peerID)) }
        gate.handshakeCompleted()
        switch purpose {
        case .session: break
        case .files: return connectForFiles(fingerprint, on: channel, gate, replacing: handshake)
        case .servingFiles: return serveFiles(to: fingerprint, on: channel, gate, replacing: handshake)
        }
        let connection = PeerConnection(
            channel: channel, gate: gate,
            origin: .init(role: .dialer, target: target, fingerprint: fingerprint, openedAt: openedAt))
        do {
            try connection.install(replacing: handshake)
        } catch {
            return fail(.failed("\(error)"))
        }
        state.connected(connection, on: channel)
        end(.success(.session(connection)))
    }

    private func connectForFiles(
        _ fingerprint: Fingerprint, on channel: any Channel, _ gate: ChannelGate, replacing handshake: HandshakeHandler
    ) {
        let connection = FileClientConnection(channel: channel, gate: gate, peer: fingerprint)
        do {
            try connection.install(replacing: handshake)
        } catch {
            return fail(.failed("\(error)"))
        }
        end(.success(.files(connection)))
    }

    private func serveFiles(
        to fingerprint: Fingerprint, on channel: any Channel, _ gate: ChannelGate, replacing handshake: HandshakeHandler
    ) {
        guard let host = state.host(serving: fingerprint) else { return fail(.failed("files are not for it")) }
        let connection = FileServerConnection(
            channel: channel, gate: gate, peer: fingerprint, remoteAddress: address.host, threads: state.fileThreads,
            firstHead: host.firstHead)
        do {
            try connection.install(replacing: handshake)
        } catch {
            return fail(.failed("\(error)"))
        }
        end(.success(.serving(connection)))
    }

    private func fail(_ error: DialError) {
        let gate = gate
        end(.failure(error == .cancelled ? error : other.map { .otherIdentity($0) } ?? error))
        gate?.abort()
    }

    private func end(_ result: Result<Established, DialError>) {
        deadline?.cancel()
        deadline = nil
        let completion = completion
        self.completion = nil
        completion?(self, result)
    }

    // MARK: ChannelGateOwner

    func activated(_ channel: any Channel) -> Bool {
        guard completion != nil, let gate else { return false }
        self.channel = channel
        state.opened(channel, gate)
        return true
    }

    func firstByte(_ byte: UInt8, on channel: any Channel) -> ChannelGate.FirstByte { .refused }  // never called for a dialled connection

    func ended() {
        // If the socket was never connected, `start` reports the error of the connection attempt, which says more than `closed`.
        if let channel {
            fail(.closed)
            state.ended(channel)
        }
        channel = nil
        gate = nil
    }

    /// Converts an error that occurred before the end of the handshake.
    static func classify(_ error: any Error) -> DialError {
        switch error {
        case let error as DialError: return error
        case ChannelError.connectTimeout: return .timeout
        case let error as IOError:
            let text = String(cString: strerror(error.errnoCode))
            switch error.errnoCode {
            case ECONNREFUSED: return .refused
            case ETIMEDOUT: return .timeout
            case ECONNRESET, EPIPE: return .closed
            case EACCES: return .unreachable("a firewall, or a rule of this machine, rejects it")
            case EPERM: return .unreachable("this machine's own firewall does not let it out")
            case ENETUNREACH, EHOSTUNREACH, EHOSTDOWN, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT, EINVAL, ENODEV, ENXIO:
                return .unreachable(text)
            default: return .failed(text)
            }
        default: return .failed(TerminalText.clean("\(error)", columns: 200))
        }
    }
}
