import HexlistModel

/// The path of a file or folder relative to the root of a share, as a list of names without `.` and `..`.
///
/// A valid path need not exist in the share; `ShareRoot` opens it, and checks whether it is visible.
public struct SharePath: Sendable, CustomStringConvertible {
    /// Maximum number of names in a path.
    public static let maximumDepth = 64
    /// Maximum bytes of a name on Linux file systems (NAME_MAX).
    public static let maximumNameBytes = 255
    /// Maximum bytes of all names joined by `/`, less than `PATH_MAX` (4 096).
    public static let maximumBytes = 4_000

    /// The names of the path; empty for the root of the share.
    public let names: [String]

    public static let root = SharePath(unchecked: [])

    private init(unchecked names: [String]) { self.names = names }

    /// Creates a path; `nil` if a name is invalid (`isName`), or the path exceeds a limit.
    public init?(_ names: [String]) {
        guard names.count <= Self.maximumDepth, names.allSatisfy(Self.isName),
            names.reduce(0, { $0 + $1.utf8.count + 1 }) <= Self.maximumBytes + 1
        else { return nil }
        self.init(unchecked: names)
    }

    /// The path of an entry of this folder; `nil` if the name is invalid, or the path exceeds a limit.
    public func appending(_ name: String) -> SharePath? { SharePath(names + [name]) }

    /// The path without its first name. The root stays the root.
    public var withoutFirst: SharePath { SharePath(unchecked: Array(names.dropFirst())) }

    /// Parses a path that a user typed: names separated by `/`. It may begin and end with `/`. Returns `nil` if it is invalid.
    public init?(typed text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        var names = parts.map { String(decoding: $0, as: UTF8.self) }[...]
        if names.first?.isEmpty ?? false { names.removeFirst() }
        if names.last?.isEmpty ?? false { names.removeLast() }
        self.init(Array(names))
    }

    /// Parses percent-encoded names separated by `/`. Percent-escapes are decoded once.
    ///
    /// Returns `nil` if a name is empty, `.` or `..`, or not UTF-8. Also if `.`, `/` or NUL is encoded, or a character is not allowed in
    /// URL paths.
    /// - Parameter text: the path without a leading `/`; empty for the root.
    public init?(percentEncoded text: some Collection<UInt8>) {
        guard !text.isEmpty else {
            self = .root
            return
        }
        // A percent-encoded byte takes three bytes.
        guard text.count <= 3 * Self.maximumBytes else { return nil }
        var names: [String] = []
        for part in text.split(separator: UInt8(ascii: "/"), maxSplits: Self.maximumDepth, omittingEmptySubsequences: false) {
            guard let name = Self.name(percentEncoded: part) else { return nil }
            names.append(name)
        }
        self.init(names)
    }

    /// Whether a text is a valid name of an entry: 1 to 255 bytes, without NUL and `/`, and neither `.` nor `..`.
    public static func isName(_ name: String) -> Bool {
        let bytes = name.utf8
        guard (1...maximumNameBytes).contains(bytes.count), !bytes.contains(0), !bytes.contains(UInt8(ascii: "/")) else { return false }
        return bytes.count > 2 || !bytes.allSatisfy { $0 == UInt8(ascii: ".") }
    }

    /// Decodes one percent-encoded name; `nil` if the encoding or the name is invalid.
    static func name(percentEncoded part: some Collection<UInt8>) -> String? {
        guard let name = text(percentEncoded: part), isName(name) else { return nil }
        return name
    }

    /// Decodes a percent-encoded text. Returns `nil` if a character is not allowed in URL paths, or if `.`, `/` or NUL is encoded: nobody
    /// needs to encode them, except to mislead.
    static func text(percentEncoded part: some Collection<UInt8>) -> String? {
        guard part.allSatisfy({ isPathByte($0) || $0 == UInt8(ascii: "%") }) else { return nil }
        let encoded = String(decoding: part, as: UTF8.self)
        guard let text = PercentEncoding.decode(encoded) else { return nil }
        let dots = part.count { $0 == UInt8(ascii: ".") }
        guard text.utf8.count(where: { $0 == UInt8(ascii: ".") }) == dots, !text.utf8.contains(0), !text.utf8.contains(UInt8(ascii: "/"))
        else { return nil }
        return text
    }

    /// Whether a byte may stand unencoded in a path of a URL (`pchar` of RFC 3986).
    private static func isPathByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || "-._~!$&'()*+,;=:@".utf8.contains(byte)
    }

    /// The percent-encoded names joined by `/`.
    public var percentEncoded: String { names.map { PercentEncoding.encode($0) }.joined(separator: "/") }

    /// The names joined by `/`; empty for the root. Untrusted text.
    public var description: String { names.joined(separator: "/") }
}

extension SharePath: Equatable {
    public static func == (left: SharePath, right: SharePath) -> Bool {
        left.names.count == right.names.count && zip(left.names, right.names).allSatisfy { PeerTextComparison.areEqual($0, $1) }
    }
}
