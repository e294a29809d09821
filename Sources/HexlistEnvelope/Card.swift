import Crypto
public import HexlistModel

/// A peer's public keys, signed by the peer (Docs/Protocol.md, "Envelopes"):
///
///     | HXC1 | SubjectPublicKeyInfo, 91 | serial: UInt32 | sealing key, 1 216 | signature, 64 |
///
/// Sizes in bytes. Envelopes to the peer are sealed with the sealing key of its card. Having a card of a peer does not make the peer
/// trusted.
public struct Card: Sendable, Equatable {
    public static let byteCount = 1_379
    static let magic = Array("HXC1".utf8)

    /// DER of the SubjectPublicKeyInfo of a P-256 key up to the two coordinates of its point (RFC 5480).
    private static let keyInfoPrefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D,
        0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
    ]

    public let bytes: [UInt8]

    /// Reads a card. Checks size, magic and the type of the identity key, but not the signature; `nil` if one of them is wrong.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = Array(bytes)
        guard self.bytes.starts(with: Self.magic), keyInfo.starts(with: Self.keyInfoPrefix) else { return nil }
    }

    /// Creates and signs a card.
    /// - Parameter serial: the version of the card. If a peer has several valid cards, the one with the greatest serial is used.
    /// - Throws: an error of the signer.
    public init(of signer: IdentitySigner, sealingKey: SealingPrivateKey, serial: UInt32 = 1) throws {
        var bytes = Self.magic + signer.keyInfo
        bytes.append(bigEndian: serial)
        bytes += sealingKey.publicKey
        bytes += try signer.sign(Self.signedBytes(bytes[...]))
        guard let card = Card(bytes: bytes) else { throw CryptoKitError.incorrectParameterSize }
        self = card
    }

    var keyInfo: ArraySlice<UInt8> { bytes[4..<95] }
    public var serial: UInt32 { bytes[95..<99].bigEndian() }
    var sealingKey: ArraySlice<UInt8> { bytes[99..<1_315] }

    /// The fingerprint of the identity key, on which trust depends.
    public var fingerprint: Fingerprint { Fingerprint.sha256(of: keyInfo) }

    /// Whether the identity key signed the card.
    public var isSignatureValid: Bool { isValid(signature: bytes[1_315...], of: Self.signedBytes(bytes[..<1_315])) }

    /// Whether two cards are equal except for their signatures. Signing the same bytes again gives another signature, so bytes cannot be
    /// compared.
    public func hasKeys(of other: Card) -> Bool { bytes[..<1_315] == other.bytes[..<1_315] }

    /// Whether the card's identity key signed a message.
    /// - Parameter signature: r ‖ s, 64 bytes.
    func isValid(signature: ArraySlice<UInt8>, of message: [UInt8]) -> Bool {
        guard let key = try? P256.Signing.PublicKey(x963Representation: keyInfo.suffix(65)),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
        else { return false }
        return key.isValidSignature(signature, for: message)
    }

    /// Returns the bytes that the card's signature covers.
    /// - Parameter body: the card without its signature.
    private static func signedBytes(_ body: ArraySlice<UInt8>) -> [UInt8] {
        Array("hexlist-card-1".utf8) + body.dropFirst(magic.count)
    }
}

extension Fingerprint {
    static func sha256(of bytes: some Collection<UInt8>) -> Fingerprint {
        // This cannot fail: `Fingerprint` requires 32 bytes, and a SHA-256 has 32 bytes.
        guard let fingerprint = Fingerprint(bytes: Array(SHA256.hash(data: Array(bytes)))) else { fatalError("SHA-256 has 32 bytes") }
        return fingerprint
    }
}
