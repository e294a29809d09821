public import HexlistModel

/// The content of an announcement's TXT record (Docs/Protocol.md, "Discovery"; RFC 6763 section 6).
///
/// The content is only a hint, because anyone on the link can announce it. Parsing never fails: missing and malformed values are `nil`.
public struct TXTRecord: Hashable, Sendable {
    /// Maximum bytes read, including the length byte of each string. RFC 6763 recommends at most 400.
    public static let maximumBytes = 400
    public static let maximumStrings = 16

    /// The value of `id`.
    public var peer: PeerID?
    /// The value of `v`, at most 64 bytes.
    public var version: String?
    /// The value of `p`, the highest protocol version.
    public var protocolVersion: Int?
    /// The value of `boot`.
    public var boot: BootNonce?

    /// - Parameter strings: the strings of the record. The first 16 that fit into 400 bytes are read. Of repeated keys the first is used;
    ///   keys are case-insensitive ASCII; strings without `=` or with an empty or unprintable key are ignored.
    public init(strings: [[UInt8]]) {
        var seen: Set<[UInt8]> = []
        for string in Self.readable(strings) {
            guard let equals = string.firstIndex(of: UInt8(ascii: "=")), equals > 0 else { continue }
            let key = string[..<equals].map(ASCII.lowercased)
            guard key.allSatisfy({ (0x20...0x7E).contains($0) }), seen.insert(key).inserted else { continue }
            read(String(decoding: key, as: UTF8.self), string[(equals + 1)...])
        }
    }

    /// The strings that are read: the first 16 that fit into 400 bytes.
    public static func readable(_ strings: [[UInt8]]) -> ArraySlice<[UInt8]> {
        var bytes = 0
        return strings.prefix(maximumStrings).prefix { string in
            bytes += string.count + 1
            return bytes <= maximumBytes
        }
    }

    private mutating func read(_ key: String, _ value: ArraySlice<UInt8>) {
        switch key {
        case "id":
            // The nil and max UUID belong to no peer.
            guard let uuid = value.withUnsafeBytes({ UUIDBytes(text: $0) }), uuid != .nil, uuid != .max else { return }
            peer = PeerID(uuid)
        case "v": version = PeerName.cut(String(decoding: value, as: UTF8.self), bytes: DirectoryLimits.versionBytes)
        case "p": protocolVersion = Int(String(decoding: value, as: UTF8.self))
        case "boot": boot = BootNonce(String(decoding: value, as: UTF8.self))
        default: break  // a key of another version
        }
    }

    /// The pairs announced by a peer, with `txtvers` first as RFC 6763 recommends.
    public static func pairs(peer: PeerID, boot: BootNonce) -> [(key: String, value: String)] {
        [
            ("txtvers", "1"), ("id", peer.description), ("v", ProtocolLimits.appVersion),
            ("p", "\(ProtocolLimits.version)"), ("boot", boot.description),
        ]
    }
}
