import Crypto
import Foundation
import HexlistModel
import Testing

@testable import HexlistEnvelope

/// The first line of the vectors: the recipient, and the senders it knows.
private struct Setting: Decodable {
    /// PKCS #8 of the recipient's identity key.
    var recipient: String
    var sealSeed: String
    var sealKey: String
    var card: String
    var uuid: String
    var now: Int64
    var trusted: [String]
    var blocked: [String]
    var senderCard: String
}

/// One envelope and the expected result.
struct EnvelopeVector: Decodable, CustomTestStringConvertible {
    /// The frames of an opened envelope, or their number if they are long.
    enum Frames: Decodable {
        case bodies([String])
        case count(Int)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            self = if let count = try? container.decode(Int.self) { .count(count) } else { .bodies(try container.decode([String].self)) }
        }
    }

    var name: String
    /// `opened` or the reason of the fault.
    var expect: String
    var from: String?
    var id: String?
    var frames: Frames?
    /// The bytes of the envelope; base64 in the file.
    var envelope: Data

    var testDescription: String { name }
}

/// The vectors that each implementation of envelopes must satisfy. A Python program made them from the specification.
@Suite("Vectors of envelopes") struct EnvelopeVectorTests {
    private static let lines: [Data] = {
        guard let url = Bundle.module.url(forResource: "envelopes", withExtension: "ndjson", subdirectory: "Vectors"),
            let data = try? Data(contentsOf: url)
        else { return [] }
        return data.split(separator: UInt8(ascii: "\n")).map { Data($0) }
    }()

    private static let setting = lines.first.flatMap { try? JSONDecoder().decode(Setting.self, from: $0) }
    static let vectors = lines.dropFirst().compactMap { try? JSONDecoder().decode(EnvelopeVector.self, from: $0) }

    private let setting: Setting
    private let key: SealingPrivateKey
    private let fingerprint: Fingerprint

    init() throws {
        setting = try #require(Self.setting)
        let seed = try #require(Hexadecimal.decode(setting.sealSeed))
        key = try SealingPrivateKey(seed: seed)
        let der = try #require(Hexadecimal.decode(setting.recipient))
        let identity = try P256.Signing.PrivateKey(derRepresentation: der)
        fingerprint = Fingerprint.sha256(of: identity.publicKey.derRepresentation)
    }

    @Test("the file is present and complete") func file() { #expect(Self.vectors.count == 34) }

    @Test("the sealing key and the cards are those of the other implementation") func keys() throws {
        #expect(key.publicKey == Hexadecimal.decode(setting.sealKey))
        #expect(fingerprint.peerID.description == setting.uuid)
        for text in [setting.card, setting.senderCard] {
            let bytes = try #require(Hexadecimal.decode(text))
            let card = try #require(Card(bytes: bytes))
            #expect(card.isSignatureValid && card.serial == 1)
        }
        let bytes = try #require(Hexadecimal.decode(setting.card))
        let own = try #require(Card(bytes: bytes))
        #expect(own.fingerprint == fingerprint && Array(own.sealingKey) == key.publicKey)
    }

    @Test("an envelope gives the expected result", arguments: vectors) func results(_ vector: EnvelopeVector) throws {
        let opener = EnvelopeOpener(key: key, fingerprint: fingerprint)
        let trusted = try setting.trusted.map { try #require(Fingerprint($0)) }
        let blocked = try setting.blocked.map { try #require(Fingerprint($0)) }
        let bytes = Array(vector.envelope)
        let from = try vector.from.map { try #require(Fingerprint($0)) }
        do {
            let letter = try opener.open(bytes, now: setting.now) {
                trusted.contains($0) ? .trusted : blocked.contains($0) ? .blocked : .stranger
            }
            #expect(vector.expect == "opened" && letter.sender == from)
            switch vector.frames {
            case .bodies(let bodies): #expect(letter.frames.map { String(decoding: $0, as: UTF8.self) } == bodies)
            case .count(let count): #expect(letter.frames.count == count)
            case nil: Issue.record("no frames")
            }
        } catch {
            #expect(error.reason.rawValue == vector.expect && error.sender == from)
        }
        if let envelope = Envelope(bytes: bytes) { #expect(envelope.id == vector.id.flatMap { Envelope.ID($0) }) }
    }
}
