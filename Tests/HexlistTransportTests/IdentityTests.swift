import Foundation
import HexlistModel
import Testing

@testable import HexlistTransport

@Suite struct IdentityTests {
    let folder: String

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "identity-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    private var path: String { "\(folder)/identity.pem" }

    private func mode(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    private func put(_ text: String, mode: Int = 0o600) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private func fault() throws -> HexlistError {
        try #require(throws: HexlistError.self) { try Identity.load(from: folder) }
    }

    @Test("a new identity can be loaded again, and only this user can read it")
    func roundTrip() throws {
        #expect(try Identity.load(from: folder) == nil)
        let made = try Identity.create(in: folder)
        let loaded = try #require(try Identity.load(from: folder))
        #expect(loaded.fingerprint == made.fingerprint)
        #expect(loaded.certificate == made.certificate)
        #expect(loaded.privateKey == made.privateKey)
        #expect(try mode(path) == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["identity.pem"])
        #expect(made.peerID.description.dropFirst(14).first == "8")
    }

    @Test("an identity is never overwritten")
    func neverOverwritten() throws {
        let made = try Identity.create(in: folder)
        let fault = try #require(throws: HexlistError.self) { try Identity.create(in: folder) }
        #expect(fault.code == .identity)
        #expect(try Identity.load(from: folder)?.fingerprint == made.fingerprint)
    }

    @Test("a killed creation leaves nothing in the way")
    func killedCreation() throws {
        try Data("half".utf8).write(to: URL(filePath: path + ".new"))
        #expect(try Identity.load(from: folder) == nil)
        let made = try Identity.create(in: folder)
        #expect(try Identity.load(from: folder)?.fingerprint == made.fingerprint)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["identity.pem"])
    }

    @Test("the fingerprint equals openssl's, regardless of order and dates")
    func opensslFixture() throws {
        for text in [Fixtures.key + Fixtures.certificate, Fixtures.certificate + Fixtures.key] {
            try put(text)
            #expect(try Identity.load(from: folder)?.fingerprint == Fingerprint(Fixtures.fingerprint))
        }
    }

    struct Damage: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var text: String
        var says: String
    }

    private static let both = Fixtures.key + Fixtures.certificate
    static let damages: [Damage] = [
        Damage(testDescription: "empty", text: "", says: "is empty"),
        Damage(testDescription: "no PEM", text: "hello", says: "holds no key"),
        Damage(testDescription: "key alone", text: Fixtures.key, says: "holds no certificate"),
        Damage(testDescription: "certificate alone", text: Fixtures.certificate, says: "holds no key"),
        Damage(testDescription: "cut off in the certificate", text: String(both.dropLast(60)), says: "cut off"),
        Damage(testDescription: "cut off in the key", text: String(Fixtures.key.dropLast(60)), says: "cut off"),
        Damage(testDescription: "P-384 key", text: Fixtures.p384Key + Fixtures.certificate, says: "not a P-256 key"),
        Damage(testDescription: "P-384 certificate", text: Fixtures.key + Fixtures.p384Certificate, says: "is not one of a P-256 key"),
        Damage(testDescription: "not DER", text: both.replacing("MIIB", with: "AAAA"), says: "certificate cannot be read"),
        Damage(testDescription: "too long", text: String(repeating: "x", count: 70_000), says: "too long"),
    ]

    @Test("a damaged file is reported and left unchanged", arguments: damages)
    func damaged(damage: Damage) throws {
        try put(damage.text)
        let fault = try fault()
        #expect(fault.code == .identity)
        #expect(fault.message.contains(damage.says), "\(fault.message)")
        #expect(fault.message.contains(path))
        #expect(fault.hint?.contains("move it away and run `hexlistd --begin-anew`") == true)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == damage.text)
    }

    @Test("a key with another key's certificate is refused")
    func mismatch() throws {
        let other = try Identity.ephemeral()
        let certificate = try #require(other.pem.range(of: "-----BEGIN CERTIFICATE")).lowerBound
        try put(Fixtures.key + other.pem[certificate...])
        #expect(try fault().message.contains("do not belong together"))
    }

    @Test("a file readable or writable by others is refused", arguments: [0o640, 0o604, 0o660, 0o622, 0o700 + 0o1])
    func openModes(mode: Int) throws {
        try put(Fixtures.key + Fixtures.certificate, mode: mode)
        let fault = try fault()
        #expect(fault.message.contains("by other users"))
        #expect(fault.hint?.contains("chmod 600") == true)
    }

    @Test("a path that is not a regular file is refused without hanging", arguments: ["folder", "link", "fifo"])
    func noFile(kind: String) throws {
        switch kind {
        case "folder": try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        case "link":
            try Data("x".utf8).write(to: URL(filePath: folder + "/elsewhere"))
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: folder + "/elsewhere")
        default: #expect(mkfifo(path, 0o600) == 0)
        }
        let fault = try fault()
        #expect(fault.code == .identity)
        #expect(fault.hint?.contains(kind == "link" ? "Put the file itself there" : "run `hexlistd --begin-anew`") == true, "\(fault)")
    }

    @Test("a missing folder is reported")
    func missingFolder() throws {
        let fault = try #require(throws: HexlistError.self) { try Identity.create(in: folder + "/no/such") }
        #expect(fault.code == .identity)
        #expect(fault.hint?.contains("state folder") == true)
    }
}

@Suite struct SubjectPublicKeyTests {
    private func der(_ pem: String) throws -> [UInt8] {
        let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }.map { $0.filter { $0 != " " } }
        return Array(try #require(Data(base64Encoded: lines.joined())))
    }

    @Test("only P-256 keys are accepted")
    func others() throws {
        for pem in [Fixtures.p384Certificate, Fixtures.ed25519Certificate] {
            let der = try der(pem)
            #expect(throws: SubjectPublicKey.Fault.notP256) { try SubjectPublicKey.fingerprint(ofCertificate: der) }
        }
    }

    @Test("a truncated or altered certificate is read or refused, without a trap")
    func mutations() throws {
        let whole = try der(Fixtures.certificate)
        let expected = try SubjectPublicKey.fingerprint(ofCertificate: whole)
        #expect(expected == Fingerprint(Fixtures.fingerprint))
        for length in 0..<whole.count {
            #expect(throws: SubjectPublicKey.Fault.unreadable) {
                try SubjectPublicKey.fingerprint(ofCertificate: Array(whole.prefix(length)))
            }
        }
        for index in whole.indices {
            for value: UInt8 in [0, 1, 0x30, 0x7F, 0x80, 0x84, 0xFF] {
                var changed = whole
                changed[index] = value
                _ = try? SubjectPublicKey.fingerprint(ofCertificate: changed)
            }
        }
    }
}
