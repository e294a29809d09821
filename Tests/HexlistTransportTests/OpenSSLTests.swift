import Foundation
import HexlistModel
import HexlistTransport
import NIOCore
import Testing

/// Peers made with the openssl command line. Skipped if it is not installed.
@Suite(.timeLimit(.minutes(5)), .enabled(if: OpenSSL.isThere)) struct OpenSSLTests {
    let folder: String

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "openssl-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Data((Fixtures.key + Fixtures.certificate).utf8).write(to: URL(filePath: folder + "/p256.pem"))
    }

    private func connect(_ peer: Endpoint, _ arguments: [String], input: String = "") async throws -> OpenSSL.Output {
        try await OpenSSL.run(
            ["s_client", "-connect", "127.0.0.1:\(peer.port)", "-quiet", "-no_ign_eof"] + arguments, input: Array(input.utf8))
    }

    private var p256: [String] { ["-cert", folder + "/p256.pem", "-key", folder + "/p256.pem", "-alpn", "hexlist/1", "-tls1_3"] }

    @Test("an RSA certificate is refused")
    func rsa() async throws {
        let made = try await OpenSSL.run([
            "req", "-new", "-newkey", "rsa:2048", "-nodes", "-x509", "-subj", "/CN=rsa", "-days", "1", "-keyout", folder + "/rsa.pem",
            "-out", folder + "/rsa.crt",
        ])
        try #require(made.status == 0, "\(made.text)")
        let peer = try await Endpoint()
        _ = try await connect(
            peer, ["-cert", folder + "/rsa.crt", "-key", folder + "/rsa.pem", "-alpn", "hexlist/1", "-tls1_3"])
        try await peer.reaches([0, 0])
        #expect(peer.accepted.now.isEmpty)
        await peer.transport.shutdown()
    }

    /// Properties of a certificate made by `openssl x509` or `req`, and whether a peer may have it.
    struct Form: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var extensions = ""
        var signsItself = true
        var isVersion1 = false
        var isTaken = true
    }

    static let forms = [
        Form(testDescription: "version 1, so without extensions", isVersion1: true),
        Form(testDescription: "a signature of another key", signsItself: false),
        Form(
            testDescription: "no authority, for e-mail only",
            extensions: "basicConstraints=critical,CA:FALSE\nextendedKeyUsage=emailProtection\n"),
        Form(testDescription: "a name of somebody", extensions: "subjectAltName=DNS:example.org\n"),
        Form(testDescription: "key usage that allows signatures", extensions: "keyUsage=critical,digitalSignature\n"),
        Form(testDescription: "key usage without signatures", extensions: "keyUsage=critical,keyAgreement\n", isTaken: false),
    ]

    @Test("of a certificate only the key counts, and a key usage that forbids signatures", arguments: forms)
    func certificate(form: Form) async throws {
        let (key, other, issuer) = (folder + "/k.pem", folder + "/other.pem", folder + "/issuer.pem")
        let (request, certificate, extensions) = (folder + "/r.pem", folder + "/c.pem", folder + "/e.cnf")
        for path in [key, other] {
            try await make(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path])
        }
        try await make(["req", "-new", "-key", key, "-subj", "/CN=form", "-out", request])
        try Data("[e]\n\(form.extensions)".utf8).write(to: URL(filePath: extensions))
        try await make(["req", "-x509", "-new", "-key", other, "-subj", "/CN=issuer", "-days", "1", "-out", issuer])
        let signer = form.signsItself ? ["-signkey", key] : ["-CA", issuer, "-CAkey", other, "-set_serial", "7"]
        let more = form.isVersion1 ? [] : ["-extfile", extensions, "-extensions", "e"]
        try await make(["x509", "-req", "-in", request, "-days", "1", "-out", certificate] + signer + more)
        let peer = try await Endpoint()
        async let client = connect(peer, ["-cert", certificate, "-key", key, "-alpn", "hexlist/1", "-tls1_3"], input: "\0\0\0\u{2}{}")
        if form.isTaken {
            let accepted = try await peer.accepted.next()
            let recorder = try await accepted.record()
            #expect(try await recorder.frames(1) == [Array("{}".utf8)])
            try await accepted.on { $0.close() }
        }
        _ = try await client
        try await peer.reaches([0, 0])
        #expect(peer.accepted.now.isEmpty)
        await peer.transport.shutdown()
    }

    private func make(_ arguments: [String]) async throws {
        let made = try await OpenSSL.run(arguments)
        try #require(made.status == 0, "\(arguments): \(made.text)")
    }

    @Test("older TLS versions get no handshake", arguments: ["-tls1_2", "-tls1_1"])
    func oldVersion(version: String) async throws {
        let peer = try await Endpoint()
        let certificate = p256.filter { $0 != "-tls1_3" }
        let output = try await OpenSSL.run(
            ["s_client", "-connect", "127.0.0.1:\(peer.port)", "-no_ign_eof", "-cipher", "DEFAULT:@SECLEVEL=0", version] + certificate)
        #expect(output.text.contains("Cipher is (NONE)"), "\(output.text)")
        try await peer.reaches([0, 0])
        #expect(peer.accepted.now.isEmpty)
        await peer.transport.shutdown()
    }

    @Test("a P-256 certificate gets a session, and its frames are read")
    func session() async throws {
        let peer = try await Endpoint()
        async let client = connect(peer, p256, input: "\0\0\0\u{2}{}")
        let accepted = try await peer.accepted.next()
        #expect(accepted.peerFingerprint == Fingerprint(Fixtures.fingerprint))
        let recorder = try await accepted.record()
        #expect(try await recorder.frames(1) == [Array("{}".utf8)])
        try await accepted.on { $0.close() }
        #expect(try await recorder.end() == .closed(nil))
        _ = try await client
        await peer.transport.shutdown()
    }

    @Test("a resumed session, without a certificate check, belongs to the same peer")
    func resumption() async throws {
        let peer = try await Endpoint()
        let ticket = folder + "/session"
        for resume in [["-sess_out", ticket], ["-sess_in", ticket]] {
            // A byte from the acceptor makes the client read, including the tickets sent before.
            async let client = OpenSSL.run(
                ["s_client", "-connect", "127.0.0.1:\(peer.port)", "-no_ign_eof"] + p256 + resume)
            let accepted = try await peer.accepted.next()
            #expect(accepted.peerFingerprint == Fingerprint(Fixtures.fingerprint))
            let recorder = try await accepted.record()
            try await accepted.on { connection in
                connection.write(ByteBuffer(string: "hello\n"))
                connection.close()
            }
            #expect(try await recorder.end() == .closed(nil))
            let output = try await client
            #expect(output.text.contains(resume[0] == "-sess_in" ? "Reused, TLSv1.3" : "New, TLSv1.3"), "\(output.text)")
        }
        await peer.transport.shutdown()
    }
}
