/// The SHA-256 hash of a peer's public key (DER SubjectPublicKeyInfo), 32 bytes. The user's trust applies to a fingerprint, not to a name.
public struct Fingerprint: Hashable, Sendable, CustomStringConvertible {
    public let bytes: [UInt8]

    /// - Parameter bytes: exactly 32 bytes. For any other count the result is `nil`.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 32 else { return nil }
        self.bytes = Array(bytes)
    }

    /// Parses 64 hexadecimal digits. Ignores colons, spaces and letter case.
    public init?(_ text: some StringProtocol) {
        let digits = String(decoding: text.utf8.filter { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: " ") }, as: UTF8.self)
        guard let bytes = Hexadecimal.decode(digits) else { return nil }
        self.init(bytes: bytes)
    }

    public var description: String { Hexadecimal.encode(bytes) }

    /// The peer ID: the first 16 bytes as a UUID of version 8. Only the holder of the key can prove that the ID is theirs
    /// (Docs/Protocol.md, "Identity").
    public var peerID: PeerID {
        guard let uuid = UUIDBytes(bytes: bytes.prefix(16)) else { return PeerID(.nil) }  // never happens: there are 32 bytes
        return PeerID(uuid.with(version: 8))
    }
}

/// The ID of one installation, derived from its key (`Fingerprint.peerID`).
public struct PeerID: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let uuid: UUIDBytes

    public init(_ uuid: UUIDBytes) { self.uuid = uuid }

    public init?(_ text: some StringProtocol) {
        guard let uuid = UUIDBytes(text) else { return nil }
        self.uuid = uuid
    }

    public var description: String { uuid.description }
    /// The first 8 digits of the UUID, for users and logs. They may not be unique, so no decision depends on them.
    public var shortID: String { String(description.prefix(8)) }

    public static func < (left: PeerID, right: PeerID) -> Bool { left.uuid < right.uuid }
}

/// The ID of one hex, created by its sender. The receiver detects duplicates by this ID together with the sender's key.
public struct MessageID: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let uuid: UUIDBytes

    public init(_ uuid: UUIDBytes) { self.uuid = uuid }

    public init?(_ text: some StringProtocol) {
        guard let uuid = UUIDBytes(text) else { return nil }
        self.uuid = uuid
    }

    /// Creates a UUIDv7 (RFC 9562 section 5.7): 48 bits of Unix time in milliseconds, then random bits.
    public init(milliseconds: UInt64, random: UInt64, _ more: UInt64) {
        uuid = UUIDBytes(high: milliseconds << 16 | random & 0xFFFF, low: more).with(version: 7)
    }

    /// Creates a UUIDv4 (RFC 9562 section 5.4), which consists of random bits.
    public static func random() -> MessageID {
        MessageID(UUIDBytes(high: .random(in: 0...(.max)), low: .random(in: 0...(.max))).with(version: 4))
    }

    public var description: String { uuid.description }

    public static func < (left: MessageID, right: MessageID) -> Bool { left.uuid < right.uuid }
}

/// A random number of 64 bits, created at each start of the process. Peers use it to detect restarts, and machines that share an identity.
public struct BootNonce: Hashable, Sendable, CustomStringConvertible {
    public let value: UInt64

    public init(_ value: UInt64) { self.value = value }

    /// Returns a random nonce that is not 0.
    public static var random: BootNonce { BootNonce(UInt64.random(in: 1...(.max))) }

    /// Parses exactly 16 hexadecimal digits.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count == 16, let bytes = Hexadecimal.decode(text) else { return nil }
        value = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The nonce as 16 hexadecimal digits in lower case, as in TXT records and `Hello`.
    public var description: String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}
