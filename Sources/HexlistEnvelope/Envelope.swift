import Crypto
import HexlistModel

#if canImport(FoundationEssentials)
    import struct FoundationEssentials.Data
#else
    import struct Foundation.Data
#endif

/// A letter as it travels, encrypted for one recipient (Docs/Protocol.md, "Envelopes"):
///
///     | HXE1 | recipient's UUID, 16 | hash of its sealing key, 8 | encapsulated key, 1 120 | ciphertext and tag |
///
/// Sizes in bytes. The envelope reveals the recipient and the padded size of the letter, but not the sender or the number of hexes.
public struct Envelope: Sendable, Equatable {
    static let magic = Array("HXE1".utf8)
    static let headerBytes = 28
    static let encapsulatedKeyBytes = 1_120
    static let tagBytes = 16
    static let overhead = headerBytes + encapsulatedKeyBytes + tagBytes
    /// The valid sizes of an envelope, in bytes.
    public static let sizes = Letter.plaintextSizes.lowerBound + overhead...Letter.plaintextSizes.upperBound + overhead

    /// Identifies an envelope: the first 16 bytes of the SHA-256 of its encapsulated key, which is random.
    public struct ID: Hashable, Sendable, CustomStringConvertible {
        public let bytes: [UInt8]

        /// Parses 32 hexadecimal digits in either letter case.
        public init?(_ text: some StringProtocol) {
            guard let bytes = Hexadecimal.decode(text), bytes.count == 16 else { return nil }
            self.bytes = bytes
        }

        init(encapsulatedKey: ArraySlice<UInt8>) {
            bytes = Array(SHA256.hash(data: Array(encapsulatedKey)).prefix(16))
        }

        /// 32 hexadecimal digits in upper case.
        public var description: String { Hexadecimal.encode(bytes) }
    }

    public let bytes: [UInt8]
    public let id: ID

    /// Reads an envelope without decrypting it; `nil` if its size or magic is wrong.
    public init?(bytes: [UInt8]) {
        guard Self.sizes.contains(bytes.count), bytes.starts(with: Self.magic) else { return nil }
        self.bytes = bytes
        id = ID(encapsulatedKey: bytes[Self.headerBytes..<Self.headerBytes + Self.encapsulatedKeyBytes])
    }

    /// Seals a letter.
    /// - Parameter recipient: the recipient's card. The caller has checked its signature, and that its key is trusted.
    /// - Throws: an error of the cryptographic library; none is known for valid keys.
    init(sealing plaintext: [UInt8], for recipient: Card) throws {
        var bytes = Self.magic + recipient.fingerprint.peerID.uuid.bytes + SealingPrivateKey.hash(of: recipient.sealingKey)
        let key = try XWingMLKEM768X25519.PublicKey(rawRepresentation: Array(recipient.sealingKey))
        var sender = try HPKE.Sender(recipientKey: key, ciphersuite: Self.ciphersuite, info: Self.info(bytes))
        let ciphertext = try sender.seal(plaintext)
        bytes += sender.encapsulatedKey
        bytes += ciphertext
        guard let envelope = Envelope(bytes: bytes) else { throw CryptoKitError.incorrectParameterSize }
        self = envelope
    }

    var recipient: ArraySlice<UInt8> { bytes[4..<20] }
    var sealingKeyHash: ArraySlice<UInt8> { bytes[20..<28] }

    /// Decrypts the letter; `nil` if the envelope was altered, or was sealed with another key.
    func plaintext(openedBy key: SealingPrivateKey) -> [UInt8]? {
        let ciphertext = Self.headerBytes + Self.encapsulatedKeyBytes
        let header = Array(bytes[..<Self.headerBytes])
        guard
            var recipient = try? HPKE.Recipient(
                privateKey: key.privateKey, ciphersuite: Self.ciphersuite, info: Self.info(header),
                encapsulatedKey: Data(bytes[Self.headerBytes..<ciphertext])),
            let plaintext = try? recipient.open(bytes[ciphertext...])
        else { return nil }
        return Array(plaintext)
    }

    private static var ciphersuite: HPKE.Ciphersuite { .XWingMLKEM768X25519_SHA256_AES_GCM_256 }

    private static func info(_ header: [UInt8]) -> Data { Data(Array("hexlist-envelope-1".utf8) + header) }
}
