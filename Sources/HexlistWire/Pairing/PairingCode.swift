import Crypto
import HexlistModel

/// 32 random bytes of one machine, used for a single exchange of a pairing.
public struct PairingNonce: Sendable, Equatable {
    let bytes: [UInt8]

    public init(using generator: inout some RandomNumberGenerator) {
        bytes = (0..<4).flatMap { _ in withUnsafeBytes(of: generator.next() as UInt64) { Array($0) } }
    }

    /// Returns a nonce from the system's random number generator.
    public static func random() -> PairingNonce {
        var generator = SystemRandomNumberGenerator()
        return PairingNonce(using: &generator)
    }

    /// Parses the base64 form of 32 bytes; `nil` for any other text.
    init?(base64 text: String) {
        guard let bytes = Base64.decode(text, count: 32) else { return nil }
        self.bytes = bytes
    }

    var base64: String { Base64.encode(bytes) }
}

/// Computes the digits that the users compare, and the commitment that prevents a man in the middle from choosing them (Docs/Protocol.md,
/// "Pairing"). `asker` is the machine that sent the commitment, `asked` the other one. The asker's data comes first in all hashes.
enum PairingCode {
    /// Returns the commitment: a SHA-256 (32 bytes) that binds the asker to its nonce before it receives the other machine's nonce.
    static func commitment(nonce: PairingNonce, asker: Fingerprint, asked: Fingerprint) -> [UInt8] {
        hash("hexlist-pair-1", nonce.bytes, asker.bytes, asked.bytes)
    }

    /// Returns the six decimal digits of a pairing.
    static func digits(asker: Fingerprint, asked: Fingerprint, askerNonce: PairingNonce, askedNonce: PairingNonce) -> String {
        let digest = hash("hexlist-sas-1", asker.bytes, asked.bytes, askerNonce.bytes, askedNonce.bytes)
        let number = digest.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) } % 1_000_000
        let digits = String(number)
        return String(repeating: "0", count: 6 - digits.utf8.count) + digits
    }

    private static func hash(_ label: String, _ parts: [UInt8]...) -> [UInt8] {
        var hasher = SHA256()
        hasher.update(data: Array(label.utf8))
        for part in parts { hasher.update(data: part) }
        return Array(hasher.finalize())
    }

    /// Compares two byte strings. The time depends only on their length.
    static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return zip(left, right).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
