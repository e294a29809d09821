public import Crypto
import HexlistModel

/// A strong entity tag of HTTP (RFC 9110, 8.8.3). It changes when the file changes.
///
/// Tags of this machine are a keyed hash of the file's identity, so they reveal nothing about the file. Tags of peers are compared byte for
/// byte only.
public struct EntityTag: Hashable, Sendable, CustomStringConvertible {
    /// Maximum length in bytes with quotes. A longer tag of a peer is ignored.
    public static let maximumBytes = 128

    /// The tag with its quotes, in printable ASCII.
    public let description: String

    /// Creates the tag of a local file: the first 16 bytes of an HMAC-SHA256.
    /// - Parameter key: the key is the same after a restart, so that peers can resume downloads.
    public init(of identity: FileIdentity, key: SymmetricKey) {
        var authentication = HMAC<SHA256>(key: key)
        authentication.update(data: Array("hexlist-files/1 entity tag".utf8))
        for number in [identity.device, identity.inode]
            + [identity.size, identity.modified, identity.changed].map(UInt64.init(bitPattern:))
        {
            authentication.update(data: (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) })
        }
        let digits = Hexadecimal.encode(Array(authentication.finalize()).prefix(16)).utf8.map(ASCII.lowercased)
        description = "\"\(String(decoding: digits, as: UTF8.self))\""
    }

    /// Parses a strong tag in a field such as `ETag` or `If-Range`; `nil` for a weak tag, a date or anything else.
    public init?(_ field: some StringProtocol) {
        let bytes = Array(field.utf8)
        guard (2...Self.maximumBytes).contains(bytes.count), bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") })
        else { return nil }
        description = String(decoding: bytes, as: UTF8.self)
    }

    /// Whether an `If-None-Match` or `If-Match` field is `*` or contains this tag. A `W/` prefix is ignored, because `If-None-Match`
    /// compares weakly.
    public func isListed(in field: some StringProtocol) -> Bool {
        let bytes = Array(field.utf8)
        guard bytes.count <= 4_096 else { return false }
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        return bytes.split(separator: UInt8(ascii: ",")).contains { part in
            var tag = part.drop(while: isSpace)
            while let last = tag.last, isSpace(last) { tag = tag.dropLast() }
            if tag.starts(with: "W/".utf8) { tag = tag.dropFirst(2) }
            return tag.elementsEqual("*".utf8) && bytes.count <= part.count || tag.elementsEqual(description.utf8)
        }
    }
}
