import Crypto

/// The private key that opens a peer's envelopes: X-Wing, which is ML-KEM-768 with X25519 (HPKE KEM 0x647A).
///
/// It is derived from the identity, so it needs no storage and no backup, and exists exactly as long as the identity.
public struct SealingPrivateKey: Sendable {
    /// The purpose for which an identity derives the secret that is used as `seed`.
    public static let purpose = "hexlist-seal-1"
    /// Bytes of a public sealing key.
    static let publicKeyBytes = 1_216

    let privateKey: XWingMLKEM768X25519.PrivateKey
    let publicKey: [UInt8]

    /// - Parameter seed: 32 secret bytes.
    /// - Throws: an error of the cryptographic library for any other count.
    public init(seed: [UInt8]) throws {
        privateKey = try XWingMLKEM768X25519.PrivateKey(seedRepresentation: seed, publicKey: nil)
        publicKey = Array(privateKey.publicKey.rawRepresentation)
    }

    /// The first 8 bytes of a public key's SHA-256, by which an envelope names the key that opens it.
    static func hash(of publicKey: some Collection<UInt8>) -> [UInt8] {
        Array(SHA256.hash(data: Array(publicKey)).prefix(8))
    }
}
