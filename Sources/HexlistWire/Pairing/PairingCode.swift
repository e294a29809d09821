import Crypto
import HexlistModel

/// 32 random bytes of one side of a pairing, used once.
public struct PairingNonce: Sendable, Equatable {
    let bytes: [UInt8]

    public init(using generator: inout some RandomNumberGenerator) {
        bytes = (0..<4).flatMap { _ in withUnsafeBytes(of: generator.next() as UInt64) { Array($0) } }
    }

    /// A nonce from the system's random number generator.
    public static func random() -> PairingNonce {
        var generator = SystemRandomNumberGenerator()
        return PairingNonce(using: &generator)
    }

    /// Parses 32 bytes in base64; `nil` for anything else.
    init?(base64 text: String) {
        guard let bytes = Base64.decode32(text) else { return nil }
        self.bytes = bytes
    }

    var base64: String { Base64.encode(bytes) }
}

/// The digits that the users compare, and the commitment that prevents a man in the middle from choosing them (Docs/Protocol.md,
/// "Pairing"). `asker` is the side that sent the commitment; it comes first in all hashes.
enum PairingCode {
    /// The SHA-256 (32 bytes) that commits the asker to its nonce before it receives the other one.
    static func commitment(nonce: PairingNonce, asker: Fingerprint, asked: Fingerprint) -> [UInt8] {
        hash("hexlist-pair-1", nonce.bytes, asker.bytes, asked.bytes)
    }

    /// The six decimal digits of a pairing.
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

    /// Compares two byte strings in constant time for a given length.
    static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return zip(left, right).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// Base64 (RFC 4648) for 32 bytes: 43 characters and a `=`.
enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0 as UInt32) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
            for position in 0..<4 {
                text.append(position <= group.count ? digits[Int(bits >> (18 - 6 * UInt32(position)) & 63)] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes 32 bytes; `nil` for other lengths or alphabets, missing padding, or unused bits that are not zero.
    static func decode32(_ text: String) -> [UInt8]? {
        let utf8 = Array(text.utf8)
        guard utf8.count == 44, utf8.last == UInt8(ascii: "=") else { return nil }
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        for (position, character) in utf8.dropLast().enumerated() {
            guard let value = value(of: character) else { return nil }
            bits = bits << 6 | UInt32(value)
            if position % 4 == 3 {
                for shift in [16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
                bits = 0
            }
        }
        // The last three characters have 16 bits of data and two that must be zero.
        guard bits & 3 == 0 else { return nil }
        for shift in [10, 2] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
        return bytes
    }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
