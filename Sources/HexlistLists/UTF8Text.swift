/// A text as UTF-8 bytes. It is compared byte by byte, because `String` comparisons normalise Unicode: texts with different bytes can be
/// equal, and hostile text takes quadratic time.
public struct UTF8Text: Hashable, Comparable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// Valid UTF-8.
    public let bytes: [UInt8]

    public init(_ text: String) { bytes = Array(text.utf8) }
    /// - Parameter bytes: valid UTF-8.
    public init(utf8 bytes: [UInt8]) { self.bytes = bytes }
    public init(stringLiteral text: String) { self.init(text) }

    public static let empty = UTF8Text("")

    public var isEmpty: Bool { bytes.isEmpty }
    public var count: Int { bytes.count }
    public var description: String { String(decoding: bytes, as: UTF8.self) }

    public static func < (left: UTF8Text, right: UTF8Text) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }
}
