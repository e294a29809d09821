import Crypto
import Foundation
import HexlistModel
import NIOCore
import NIOSSL
import Testing

@testable import HexlistTransport

@Suite(.timeLimit(.minutes(5))) struct HandshakeTests {
    // MARK: Strangers

    private static func certificates(_ pem: String) throws -> [NIOSSLCertificateSource] {
        try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)).map { .certificate($0) }
    }

    private static func key(_ pem: String) throws -> NIOSSLPrivateKeySource {
        .privateKey(try NIOSSLPrivateKey(bytes: Array(pem.utf8), format: .pem))
    }

    /// A client that differs from a Hexlist peer only by `change`.
    private static func client(
        certificate: String = Fixtures.certificate, key: String = Fixtures.key, _ change: (inout TLSConfiguration) -> Void = { _ in }
    ) throws -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.applicationProtocols = ["hexlist/1"]
        configuration.certificateChain = try certificates(certificate)
        configuration.privateKey = try Self.key(key)
        change(&configuration)
        return configuration
    }

    private static func server(
        certificate: String = Fixtures.certificate, key: String = Fixtures.key, _ change: (inout TLSConfiguration) -> Void = { _ in }
    ) throws -> TLSConfiguration {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try certificates(certificate), privateKey: try Self.key(key))
        configuration.applicationProtocols = ["hexlist/1"]
        change(&configuration)
        return configuration
    }

    // MARK: Both sides

    @Test("each side sees the other's key")
    func identities() async throws {
        let pair = try await Endpoint.pair()
        #expect(pair.dialled.peerFingerprint == pair.right.identity.fingerprint)
        #expect(pair.accepted.peerFingerprint == pair.left.identity.fingerprint)
        #expect(pair.dialled.role == .dialer)
        #expect(pair.accepted.role == .acceptor)
        #expect(pair.dialled.isTLS && pair.accepted.isTLS)
        #expect(pair.dialled.remoteAddress == "127.0.0.1")
        #expect(pair.dialled.remotePort == pair.right.port)
        #expect(pair.dialled.target == pair.right.target)
        #expect(pair.accepted.target == nil)
        await pair.shutdown()
    }

    @Test("a peer may dial itself, and detects it")
    func ownIdentity() async throws {
        let peer = try await Endpoint()
        let connection = try await peer.dial(peer, expecting: peer.identity.peerID)
        #expect(connection.peerFingerprint == peer.identity.fingerprint)
        await peer.transport.shutdown()
    }

    @Test("an expired certificate is accepted, because clocks may be wrong")
    func expired() async throws {
        let past = CertificateValidity(from: Date(timeIntervalSince1970: 0), until: Date(timeIntervalSince1970: 86_400))
        let future = CertificateValidity(
            from: Date(timeIntervalSince1970: 4_000_000_000), until: Date(timeIntervalSince1970: 4_000_086_400))
        let left = try await Endpoint(identity: .make(key: .init(), validity: past))
        let right = try await Endpoint(identity: .make(key: .init(), validity: future))
        let connection = try await left.dial(right, expecting: right.identity.peerID)
        #expect(try await right.accepted.next().peerFingerprint == left.identity.fingerprint)
        #expect(connection.isTLS)
        await left.transport.shutdown()
        await right.transport.shutdown()
    }

    @Test("a foreign program with a P-256 certificate and the ALPN is a peer")
    func foreignPeer() async throws {
        let peer = try await Endpoint()
        let (_, channel) = try await RawPeer.connect(to: peer.port, tls: Self.client())
        let accepted = try await peer.accepted.next()
        #expect(accepted.peerFingerprint == Fingerprint(Fixtures.fingerprint))
        try await channel.close()
        await peer.transport.shutdown()
    }

    // MARK: Refused clients

    struct Stranger: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var client: @Sendable () throws -> TLSConfiguration
    }

    static let strangers: [Stranger] = [
        Stranger(testDescription: "no certificate") {
            try client {
                $0.certificateChain = []
                $0.privateKey = nil
            }
        },
        Stranger(testDescription: "TLS 1.2") { try client { $0.maximumTLSVersion = .tlsv12 } },
        Stranger(testDescription: "no ALPN") { try client { $0.applicationProtocols = [] } },
        Stranger(testDescription: "another ALPN") { try client { $0.applicationProtocols = ["h2", "hexlist/2"] } },
        Stranger(testDescription: "P-384") { try client(certificate: Fixtures.p384Certificate, key: Fixtures.p384Key) },
        Stranger(testDescription: "two certificates") {
            try client(certificate: Fixtures.certificate + Fixtures.p384Certificate)
        },
    ]

    @Test("a client that is not a peer is refused without any information", arguments: strangers)
    func refused(stranger: Stranger) async throws {
        let peer = try await Endpoint()
        let (raw, _) = try await RawPeer.connect(to: peer.port, tls: stranger.client())
        #expect(try await raw.bytes() == [])
        try await peer.reaches([0, 0])
        #expect(peer.accepted.now.isEmpty)
        await peer.transport.shutdown()
    }

    /// Signs with a key that does not belong to the certificate.
    private struct StolenCertificateKey: NIOSSLCustomPrivateKey, Hashable {
        private static let own = P256.Signing.PrivateKey()
        var signatureAlgorithms: [SignatureAlgorithm] { [.ecdsaSecp256R1Sha256] }
        var derBytes: [UInt8] { [] }

        func sign(channel: any Channel, algorithm: SignatureAlgorithm, data: ByteBuffer) -> EventLoopFuture<ByteBuffer> {
            channel.eventLoop.makeCompletedFuture {
                ByteBuffer(bytes: try Self.own.signature(for: Array(data.readableBytesView)).derRepresentation)
            }
        }

        func decrypt(channel: any Channel, data: ByteBuffer) -> EventLoopFuture<ByteBuffer> {
            channel.eventLoop.makeFailedFuture(NIOSSLError.noSuchFilesystemObject)
        }
    }

    @Test("another's certificate without its key is refused")
    func stolenCertificate() async throws {
        let peer = try await Endpoint()
        let client = try Self.client { $0.privateKey = .privateKey(NIOSSLPrivateKey(customPrivateKey: StolenCertificateKey())) }
        let (raw, _) = try await RawPeer.connect(to: peer.port, tls: client)
        #expect(try await raw.bytes() == [])
        try await peer.reaches([0, 0])
        #expect(peer.accepted.now.isEmpty)
        await peer.transport.shutdown()
    }

    @Test(
        "bytes that are not TLS are closed without a reply",
        arguments: [
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\0\0\0\u{2}{}", "\u{80}\u{1}", "\u{15}\u{3}\u{1}", "{",
        ])
    func noTLS(greeting: String) async throws {
        let peer = try await Endpoint()
        let (raw, _) = try await RawPeer.connect(to: peer.port, greeting: Array(greeting.utf8))
        #expect(try await raw.bytes() == [])
        #expect(peer.accepted.now.isEmpty)
        await peer.transport.shutdown()
    }

    @Test(
        "malformed TLS ends within the bounds of a handshake",
        arguments: [
            // A ClientHello that announces 16 MiB in a record of the maximum size; an invalid record type; many records of one byte.
            [0x16, 3, 1, 0x40, 0, 1, 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 7, count: 1 << 20),
            [0x16] + [UInt8](repeating: 0xFF, count: 100_000),
            (0..<50_000).flatMap { _ in [0x16, 3, 1, 0, 1, 1] as [UInt8] },
        ])
    func garbage(greeting: [UInt8]) async throws {
        let peer = try await Endpoint()
        let (raw, _) = try await RawPeer.connect(to: peer.port, greeting: greeting)
        // A TLS alert may come, but no session byte.
        #expect(try await raw.bytes().count < 64)
        try await peer.reaches([0, 0])
        #expect(peer.accepted.now.isEmpty)
        await peer.transport.shutdown()
    }

    @Test("a handshake that does not finish in time is closed", arguments: [[], [0x16], [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC]])
    func handshakeTime(greeting: [UInt8]) async throws {
        var limits = TransportLimits()
        limits.handshakeSeconds = 1
        let peer = try await Endpoint(limits)
        let begin = ContinuousClock.now
        let (raw, _) = try await RawPeer.connect(to: peer.port, greeting: greeting)
        #expect(try await raw.bytes() == [])
        #expect(.milliseconds(900) < begin.duration(to: .now))
        try await peer.reaches([0, 0])
        await peer.transport.shutdown()
    }

    // MARK: Refused servers

    struct Foreigner: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var server: @Sendable () throws -> TLSConfiguration
    }

    static let foreigners: [Foreigner] = [
        Foreigner(testDescription: "TLS 1.2") { try server { $0.maximumTLSVersion = .tlsv12 } },
        Foreigner(testDescription: "no ALPN") { try server { $0.applicationProtocols = [] } },
        Foreigner(testDescription: "another ALPN") { try server { $0.applicationProtocols = ["h2"] } },
        Foreigner(testDescription: "P-384") { try server(certificate: Fixtures.p384Certificate, key: Fixtures.p384Key) },
        Foreigner(testDescription: "two certificates") { try server(certificate: Fixtures.certificate + Fixtures.p384Certificate) },
    ]

    @Test("a dialer refuses a server that is not a peer", arguments: foreigners)
    func foreignServer(foreigner: Foreigner) async throws {
        let peer = try await Endpoint()
        let server = try await RawPeer.serve(tls: foreigner.server())
        let report = try await peer.transport.dial([DialTarget(host: "127.0.0.1", port: server.port)]).report.get()
        #expect(report.connection == nil)
        guard case .notHexlist = report.summary else { throw Unexpected("\(String(describing: report.summary))") }
        try await server.channel.close()
        await peer.transport.shutdown()
    }

    @Test("a dialer that finds another key than expected closes without a frame")
    func anotherKey() async throws {
        let peer = try await Endpoint()
        let wanted = try Identity.ephemeral()
        let server = try await RawPeer.serve(tls: Self.server())
        let report = try await peer.transport.dial([DialTarget(host: "127.0.0.1", port: server.port)], expecting: wanted.peerID).report
            .get()
        #expect(report.summary == .otherIdentity(try #require(Fingerprint(Fixtures.fingerprint)).peerID))
        #expect(try await server.accepted.next().bytes() == [])
        try await server.channel.close()
        await peer.transport.shutdown()
    }

    @Test("a dialer shows its certificate only to the expected peer", arguments: [true, false])
    func ownCertificate(isExpected: Bool) async throws {
        let peer = try await Endpoint()
        let there = try #require(Fingerprint(Fixtures.fingerprint)).peerID
        let seen = Inbox<[NIOSSLCertificate]>()
        let tls = try Self.server {
            $0.certificateVerification = .noHostnameVerification
            $0.trustRoots = .certificates([])
        }
        let server = try await RawPeer.serve(tls: tls, certificates: seen)
        let report = try await peer.transport.dial(
            [DialTarget(host: "127.0.0.1", port: server.port)], expecting: isExpected ? there : Identity.ephemeral().peerID
        ).report.get()
        if isExpected {
            #expect(try await seen.next() == [NIOSSLCertificate(bytes: peer.identity.certificate, format: .der)])
            try await report.connection?.on { $0.abort() }
        } else {
            #expect(report.summary == .otherIdentity(there))
            let events = try await server.accepted.next().all()
            #expect(!events.contains { if case .handshake = $0 { true } else { false } })
            #expect(seen.now.isEmpty)
        }
        try await server.channel.close()
        await peer.transport.shutdown()
    }

    @Test("a server that speaks first, and not TLS, is not a peer", arguments: ["SSH-2.0-OpenSSH_9.2\r\n", "220 mail ESMTP\r\n"])
    func banner(greeting: String) async throws {
        let peer = try await Endpoint()
        let server = try await RawPeer.serve(greeting: Array(greeting.utf8))
        let report = try await peer.transport.dial([DialTarget(host: "127.0.0.1", port: server.port)]).report.get()
        guard case .notHexlist = report.summary else { throw Unexpected("\(String(describing: report.summary))") }
        try await server.channel.close()
        await peer.transport.shutdown()
    }

    /// Records of one handshake message that BoringSSL would keep buffering: 60 KiB announced, 48 KiB sent.
    private static func endless(_ type: UInt8) -> [UInt8] {
        let record: [UInt8] = [0x16, 3, 3, 0x40, 0]
        let filler = [UInt8](repeating: 0, count: 16 << 10)
        return record + [type, 0, 0xF0, 0] + filler.dropLast(4) + record + filler + record + filler
    }

    @Test("a client that floods the handshake is cut off before the timeout")
    func floodingClient() async throws {
        var limits = TransportLimits()
        limits.handshakeSeconds = 600
        let peer = try await Endpoint(limits)
        let (raw, _) = try await RawPeer.connect(to: peer.port, greeting: Self.endless(1))
        #expect(try await raw.bytes() == [])
        await peer.transport.shutdown()
    }

    @Test("a server that floods the handshake is cut off too")
    func floodingServer() async throws {
        let peer = try await Endpoint()
        let server = try await RawPeer.serve(greeting: Self.endless(2))
        let report = try await peer.transport.dial([DialTarget(host: "127.0.0.1", port: server.port)]).report.get()
        #expect(report.summary == .closed)
        try await server.channel.close()
        await peer.transport.shutdown()
    }
}

struct Unexpected: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}
