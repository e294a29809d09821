import HexlistModel

/// The name of an envelope's file in a mailbox folder: `<time, 12 digits>-<id, 32 digits>.hxe`, hexadecimal in upper case.
public struct EnvelopeFileName: Hashable, Sendable, CustomStringConvertible {
    private static let suffix = ".hxe"
    /// The greatest time that fits into 12 hexadecimal digits, in the year 10889.
    private static let latest: Int64 = 0xFFFF_FFFF_FFFF

    /// Milliseconds since 1970 at which the envelope was posted.
    public let postedAt: Int64
    public let id: Envelope.ID

    public init(postedAt: Int64, id: Envelope.ID) {
        self.postedAt = min(max(postedAt, 0), Self.latest)
        self.id = id
    }

    /// Parses the name of an envelope's file; `nil` for any other name.
    public init?(_ text: String) {
        guard text.utf8.count == 12 + 1 + 32 + 4 else { return nil }
        let parts = text.dropLast(Self.suffix.count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 12, let time = Hexadecimal.decode(parts[0]), let id = Envelope.ID(parts[1]) else {
            return nil
        }
        self.init(postedAt: time.reduce(0) { $0 << 8 | Int64($1) }, id: id)
        guard description.utf8.elementsEqual(text.utf8) else { return nil }
    }

    public var description: String {
        let time = (0..<6).map { UInt8(truncatingIfNeeded: postedAt >> (40 - 8 * $0)) }
        return Hexadecimal.encode(time) + "-" + id.description + Self.suffix
    }
}
