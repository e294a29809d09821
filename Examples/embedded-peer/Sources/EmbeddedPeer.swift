import Foundation
import HexlistModel
import HexlistSession
import HexlistTransport
import HexlistWire
import NIOCore

/// A Hexlist peer in one file: pairs with another peer, sends it one link, and keeps the hexes that come from it as files.
///
///     embedded-peer FOLDER HOST PORT LINK
///
/// FOLDER keeps the identity, the trusted keys and the hexes. To pair, compare the digits it prints with those of `hexlist pair` on the
/// other machine, and type them. It runs until its standard input ends.
///
/// `@unchecked`: used on the event loop of its transport only, except for `keep` and `write`, which run on `files`.
@main final class EmbeddedPeer: SessionDelegate, @unchecked Sendable {
    private let folder: URL
    private let files = DispatchQueue(label: "files")
    private let identity: Identity
    private let boot = BootNonce.random
    private let transport: PeerTransport
    private let sessions: SessionTable
    private var trusted: Set<Fingerprint>
    private var pairing: (exchange: PairingStateMachine, session: PeerSession)?
    private var unsent: HexContent?

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let port = UInt16(arguments[3]) else { return say("usage: embedded-peer FOLDER HOST PORT LINK") }
        let peer = try EmbeddedPeer(folder: URL(filePath: arguments[1]), link: arguments[4])
        say("\(peer.identity.peerID) on port \(try await peer.transport.listen(addresses: [], port: 0) { peer.begin($0) })")
        let report = try await peer.transport.dial([DialTarget(host: arguments[2], port: port)]).report.get()
        guard let connection = report.connection else { throw report.summary ?? .closed }
        peer.onLoop { $0.begin(connection) }
        while let line = readLine() { peer.onLoop { $0.drive { $0.confirm(digits: line) } } }
        peer.onLoop { for session in $0.sessions.values { session.act { $0.end(.shutdown, &$1) } } }
        await peer.transport.shutdown()
    }

    init(folder: URL, link: String) throws {
        self.folder = folder
        identity = try Identity.load(from: folder.path) ?? Identity.create(in: folder.path)
        transport = try PeerTransport(identity: identity)
        sessions = SessionTable(own: identity.peerID, on: transport.eventLoop)
        trusted = Set(try FileManager.default.contentsOfDirectory(atPath: folder.path).compactMap { Fingerprint($0) })
        var hex = HexContent()
        hex.links = [LinkContent(url: hex.add(link), linkDescription: .empty, service: .empty)]
        unsent = hex
    }

    private func begin(_ connection: PeerConnection) {
        let isTrusted = connection.peerFingerprint.map(trusted.contains) ?? false
        PeerSession(connection, hello: hello(isTrusted), isTrusted: isTrusted, in: sessions, delegate: self).start()
    }

    private func hello(_ isTrusted: Bool) -> Hello {
        let frameBytes = isTrusted ? ProtocolLimits.trustedFrameBytes : ProtocolLimits.strangerFrameBytes
        return Hello(uuid: identity.peerID, name: "embedded peer", boot: boot, maxFrameBytes: frameBytes)
    }

    private func onLoop(_ body: @escaping @Sendable (EmbeddedPeer) -> Void) { transport.eventLoop.execute { body(self) } }
    private static func say(_ text: String) { FileHandle.standardOutput.write(Data("\(text)\n".utf8)) }

    func opened(_ session: PeerSession, hello: Hello, version: String) {
        session.machine.isTrusted ? sendLink(on: session) : pair(on: session)
    }

    func updated(_ session: PeerSession, hello: Hello) { sendLink(on: session) }

    func ended(_ session: PeerSession, end: Session.EndReason, closedByPeer: Bool) {
        if pairing?.session === session { drive { $0.sessionEnded() } }
        Self.say("session ended: \(end.text)")
    }

    /// Sends the link once both sides trust each other. The Hello of a peer that trusts this one permits long frames.
    private func sendLink(on session: PeerSession) {
        guard session.machine.isTrusted, session.machine.peerHello?.maxFrameBytes ?? 0 >= ProtocolLimits.trustedFrameBytes,
            let hex = unsent.take()
        else { return }
        session.send(id: 1, messageID: .random(), body: HexEncoder.encode(hex)[...])
        session.updateState()
    }

    func settled(_ hexes: [RowResult], on session: PeerSession) {
        for hex in hexes { Self.say("sent: \(hex.result)") }
    }

    func received(hexes: [IncomingHex], on session: PeerSession) {
        guard session.machine.isTrusted, let peer = session.peer else {
            return session.batchCompleted(hexes.map { _ in .refused(.notAccepting, message: "Pair first.", retryAfter: 60) })
        }
        files.async { [self] in
            let results = hexes.map { keep($0, from: peer) }
            onLoop { _ in session.batchCompleted(results) }
        }
    }

    /// Stores a hex as a file named by its sender and id, so that a repeated hex replaces its file.
    private func keep(_ hex: IncomingHex, from peer: PeerID) -> DeliveryResult {
        guard let id = hex.messageID else { return .refused(.malformed, message: "A hex without an id.") }
        return write(HexEncoder.encode(hex.content), to: "\(peer)-\(id).json") ? .stored : .refused(.internal, retryAfter: 60)
    }

    /// Writes a file, and returns whether all of it is durable.
    private func write(_ bytes: [UInt8], to name: String) -> Bool {
        let temporary = folder.appending(path: "new").path
        let (file, place) = (open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0o600), open(folder.path, O_RDONLY))
        defer { for descriptor in [file, place] { close(descriptor) } }
        return Glibc.write(file, bytes, bytes.count) == bytes.count && fsync(file) == 0
            && rename(temporary, folder.appending(path: name).path) == 0 && fsync(place) == 0
    }

    private func pair(on session: PeerSession) {
        guard pairing == nil, session.connection.role == .dialer, let key = session.connection.peerFingerprint else { return }
        let (exchange, actions) = PairingStateMachine.ask(own: identity.fingerprint, peer: key, nonce: .random(), now: .now)
        pairing = (exchange, session)
        drive { _ in actions }
    }

    func received(pairing step: Pairing, on session: PeerSession) {
        guard pairing?.session === session else { return session.refuse(step) }
        drive { $0.received(step, freshNonce: .random(), now: .now) }
    }

    /// Passes an event to the exchange, if one runs, and carries out its actions.
    private func drive(_ event: (inout PairingStateMachine) -> [PairingStateMachine.Action]) {
        guard let session = pairing?.session, var exchange = pairing?.exchange else { return }
        let actions = event(&exchange)
        let (key, deadline) = (exchange.peer, exchange.nextDeadline)
        pairing = deadline == nil ? nil : (exchange, session)
        for action in actions {
            switch action {
            case .send(let step): session.act { $0.sendPairing(step, &$1) }
            case .show(let digits): Self.say("digits: \(digits)")
            case .paired: files.async { [self] in if write([], to: "\(key)") { onLoop { $0.trust(key) } } }
            case .ended(let end, _): Self.say("pairing ended: \(end)")
            }
        }
        if let deadline { transport.eventLoop.scheduleTask(in: TimeAmount(deadline - .now)) { self.drive { $0.tick(now: .now) } } }
    }

    private func trust(_ key: Fingerprint) {
        trusted.insert(key)
        for session in sessions.sessions(of: key) {
            session.sendHello(hello(true), isTrusted: true)
            sendLink(on: session)
        }
    }
}
