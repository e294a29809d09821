import Crypto

/// The private key that opens a peer's envelopes: X-Wing, which is ML-KEM-768 with X25519 (HPKE KEM 0x647A).
///
/// It is derived from the identity key, so it needs no storage or backup, and changes only with the identity.
public struct SealingPrivateKey: Sendable {
    /// The label for deriving `seed` from the identity key.
    public static let purpose = "hexlist-seal-1"
    /// Bytes of a public sealing key.
    static let publicKeyBytes = 1_216

    let privateKey: XWingMLKEM768X25519.PrivateKey
    let publicKey: [UInt8]

    /// - Parameter seed: 32 secret bytes.
    /// - Throws: an error of the cryptographic library if the seed has another size.
    public init(seed: [UInt8]) throws {
        privateKey = try XWingMLKEM768X25519.PrivateKey(seedRepresentation: seed, publicKey: nil)
        publicKey = Array(privateKey.publicKey.rawRepresentation)
    }

    /// The first 8 bytes of a public key's SHA-256. An envelope contains them, so that the recipient knows which key opens it.
    static func hash(of publicKey: some Collection<UInt8>) -> [UInt8] {
        Array(SHA256.hash(data: Array(publicKey)).prefix(8))
    }
}
