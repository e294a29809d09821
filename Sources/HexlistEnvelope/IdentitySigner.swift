public import Crypto

/// A peer's identity key, which signs its card and its letters.
public struct IdentitySigner: Sendable {
    /// DER of the SubjectPublicKeyInfo, 91 bytes.
    public let keyInfo: [UInt8]
    /// Returns the ECDSA signature (P-256, SHA-256) of a message as r ‖ s, 64 bytes.
    let sign: @Sendable ([UInt8]) throws -> [UInt8]

    public init(keyInfo: [UInt8], sign: @escaping @Sendable ([UInt8]) throws -> [UInt8]) {
        self.keyInfo = keyInfo
        self.sign = sign
    }

    public init(_ key: P256.Signing.PrivateKey) {
        self.init(keyInfo: Array(key.publicKey.derRepresentation)) { Array(try key.signature(for: $0).rawRepresentation) }
    }
}
