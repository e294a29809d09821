public import Crypto
import HexlistModel

/// A strong entity tag (RFC 9110, 8.8.3): it changes when the file does.
///
/// The own ones are a keyed hash of the file's identity, so that they tell nothing of it. Those of others are taken as they come.
public struct EntityTag: Hashable, Sendable, CustomStringConvertible {
    /// The most bytes of a tag, quotes included; of others one that is longer is none.
    public static let maximumBytes = 128

    /// The tag in its quotes: printable ASCII.
    public let description: String

    /// The tag of a file: HMAC-SHA256, cut to 16 bytes.
    /// - Parameter key: of this machine, the same after a restart, so that what was begun goes on.
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

    /// Reads a strong tag as a field has it, such as `ETag` and `If-Range`; `nil` for a weak one, a date and anything else.
    public init?(_ field: some StringProtocol) {
        let bytes = Array(field.utf8)
        guard (2...Self.maximumBytes).contains(bytes.count), bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") })
        else { return nil }
        description = String(decoding: bytes, as: UTF8.self)
    }

    /// Whether it is among the tags of an `If-None-Match` or `If-Match` field, or that is `*`. A `W/` before a tag is passed over, as
    /// `If-None-Match` wants it.
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
