import Crypto
import Foundation
import HexlistEnvelope
import HexlistModel

/// Measures envelopes on one core, and makes peers and letters for `Benchmarks/routes`.
///
///     envelope-bench measure [SECONDS]                    processor time of sealing and opening 4 KiB, beside bare HPKE and ECDSA
///     envelope-bench peers COUNT                          a roster of peers with cards, one JSON object per line
///     envelope-bench letters CARD COUNT FRAMES FILE       one letter per line of FRAMES, from COUNT peers in turn, each preceded by its
///                                                         length (UInt32, big-endian)
@main
enum EnvelopeBench {
    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "measure": try measure(seconds: arguments.count > 1 ? Double(arguments[1]) ?? 1 : 1)
        case "peers" where arguments.count == 2:
            for number in 0..<(Int(arguments[1]) ?? 0) { print(try BenchPeer(number).rosterLine) }
        case "letters" where arguments.count == 5:
            guard let card = Card(text: arguments[1]), let count = Int(arguments[2]) else { exit(2) }
            try writeLetters(to: card, from: count, frames: arguments[3], file: arguments[4])
        default:
            print("usage: envelope-bench measure [SECONDS] | peers COUNT | letters CARD COUNT FRAMES FILE")
            exit(2)
        }
    }

    private static func writeLetters(to card: Card, from count: Int, frames: String, file: String) throws {
        let peers = try (0..<count).map { try BenchPeer($0) }
        let lines = try String(contentsOfFile: frames, encoding: .utf8).split(separator: "\n")
        var bytes = Data()
        for (number, line) in lines.enumerated() {
            let envelope = try peers[number % count].letter([Array(line.utf8)], to: card)
            withUnsafeBytes(of: UInt32(envelope.bytes.count).bigEndian) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: envelope.bytes)
        }
        try bytes.write(to: URL(fileURLWithPath: file))
    }

    /// Measures sealing, opening and the bare operations alternately, and prints the median of each in milliseconds per envelope.
    private static func measure(seconds: Double) throws {
        let (ada, bob) = (try BenchPeer(1), try BenchPeer(2))
        let frame = Array(repeating: UInt8(ascii: "x"), count: 4_096)
        let opener = EnvelopeOpener(key: bob.sealingKey, fingerprint: bob.card.fingerprint)
        let now = Int64(Date.now.timeIntervalSince1970 * 1_000)
        let envelope = try ada.letter([frame], to: bob.card)
        // The least work for a letter of this size: one encapsulation and one signature, one decapsulation and one check of a signature.
        let suite = HPKE.Ciphersuite.XWingMLKEM768X25519_SHA256_AES_GCM_256
        let key = try XWingMLKEM768X25519.PrivateKey.generate()
        let plaintext = Array(repeating: UInt8(0), count: envelope.bytes.count - 1_164)
        var (ours, bare, stranger): ([Double], [Double], [Double]) = ([], [], [])
        let end = processorTime() + seconds
        while processorTime() < end || ours.count < 5 {
            ours.append(
                try time {
                    let envelope = try ada.letter([frame], to: bob.card)
                    _ = try opener.open(envelope.bytes, now: now) { _ in .trusted }
                })
            bare.append(
                try time {
                    var sender = try HPKE.Sender(recipientKey: key.publicKey, ciphersuite: suite, info: Data())
                    let sealed = try sender.seal(plaintext)
                    let signature = try ada.key.signature(for: plaintext)
                    var recipient = try HPKE.Recipient(
                        privateKey: key, ciphersuite: suite, info: Data(), encapsulatedKey: sender.encapsulatedKey)
                    _ = try recipient.open(sealed)
                    _ = ada.key.publicKey.isValidSignature(signature, for: plaintext)
                })
            stranger.append(
                try time {
                    do { _ = try opener.open(envelope.bytes, now: now) { _ in .stranger } } catch {}
                })
        }
        print(
            """
            {"seal_and_open_ms":\(median(ours)),"hpke_and_ecdsa_ms":\(median(bare)),"ratio":\(median(ours) / median(bare)),\
            "stranger_ms":\(median(stranger)),"runs":\(ours.count)}
            """)
    }

    /// The mean processor time of one call in milliseconds, of ten calls.
    private static func time(_ body: () throws -> Void) throws -> Double {
        let start = processorTime()
        for _ in 0..<10 { try body() }
        return (processorTime() - start) * 100
    }

    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}

/// A peer whose keys are derived from its number.
struct BenchPeer {
    let key: P256.Signing.PrivateKey
    let sealingKey: SealingPrivateKey
    let card: Card
    private let signer: IdentitySigner

    init(_ number: Int) throws {
        let seed = Array(SHA256.hash(data: Array("benchmark \(number)".utf8)))
        key = try P256.Signing.PrivateKey(rawRepresentation: seed)
        sealingKey = try SealingPrivateKey(seed: seed)
        signer = IdentitySigner(key)
        card = try Card(of: signer, sealingKey: sealingKey)
    }

    func letter(_ frames: [[UInt8]], to recipient: Card) throws -> Envelope {
        let now = UInt64(Date.now.timeIntervalSince1970 * 1_000)
        return try Letter.seal(frames, at: now, boot: BootNonce(1), card: card, signer: signer, for: recipient)
    }

    var rosterLine: String {
        """
        {"uuid":"\(card.fingerprint.peerID)","fingerprint":"\(card.fingerprint)","name":"peer","trust":"trusted","addresses":[],\
        "card":"\(card.base64)"}
        """
    }
}
