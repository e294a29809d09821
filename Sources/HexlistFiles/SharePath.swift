import HexlistModel

/// The path of something in a share: names from the share's folder on, each of which can only be an entry of the folder before it.
///
/// It says nothing of whether there is such an entry, or whether it may be seen (`ShareRoot`).
public struct SharePath: Sendable, CustomStringConvertible {
    /// The most names.
    public static let maximumDepth = 64
    /// The most bytes of a name, as file systems have it.
    public static let maximumNameBytes = 255
    /// The most bytes of all names with a `/` between them: less than `PATH_MAX`.
    public static let maximumBytes = 4_000

    /// The names; none for the share's own folder.
    public let names: [String]

    /// The share's own folder.
    public static let root = SharePath(unchecked: [])

    private init(unchecked names: [String]) { self.names = names }

    /// `nil` if one of the names is none (`isName`), or there are too many of them.
    public init?(_ names: [String]) {
        guard names.count <= Self.maximumDepth, names.allSatisfy(Self.isName),
            names.reduce(0, { $0 + $1.utf8.count + 1 }) <= Self.maximumBytes + 1
        else { return nil }
        self.init(unchecked: names)
    }

    /// The path of an entry of this folder; `nil` as above.
    public func appending(_ name: String) -> SharePath? { SharePath(names + [name]) }

    /// The path from the first name's folder on; the root of the root.
    public var withoutFirst: SharePath { SharePath(unchecked: Array(names.dropFirst())) }

    /// Reads a path as a person writes it: names with `/` between them, one at either end passed over. `nil` as above.
    public init?(typed text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        var names = parts.map { String(decoding: $0, as: UTF8.self) }[...]
        if names.first?.isEmpty ?? false { names.removeFirst() }
        if names.last?.isEmpty ?? false { names.removeLast() }
        self.init(Array(names))
    }

    /// Reads percent-encoded names with a `/` between them; each is decoded once.
    ///
    /// `nil` for a name that is empty, `.` or `..`, that has an encoded `.`, `/` or NUL, or that is not UTF-8, and for a character that does
    /// not stand in the path of a URL.
    /// - Parameter text: without a `/` at its beginning; empty for the share's own folder.
    public init?(percentEncoded text: some Collection<UInt8>) {
        guard !text.isEmpty else {
            self = .root
            return
        }
        // Each byte takes up to three.
        guard text.count <= 3 * Self.maximumBytes else { return nil }
        var names: [String] = []
        for part in text.split(separator: UInt8(ascii: "/"), maxSplits: Self.maximumDepth, omittingEmptySubsequences: false) {
            guard let name = Self.name(percentEncoded: part) else { return nil }
            names.append(name)
        }
        self.init(names)
    }

    /// Whether a text can be the name of an entry: 1 to 255 bytes without NUL and `/`, neither `.` nor `..`.
    public static func isName(_ name: String) -> Bool {
        let bytes = name.utf8
        guard (1...maximumNameBytes).contains(bytes.count), !bytes.contains(0), !bytes.contains(UInt8(ascii: "/")) else { return false }
        return bytes.count > 2 || !bytes.allSatisfy { $0 == UInt8(ascii: ".") }
    }

    /// One name; `nil` as for a path.
    static func name(percentEncoded part: some Collection<UInt8>) -> String? {
        guard let name = text(percentEncoded: part), isName(name) else { return nil }
        return name
    }

    /// Any text but one in which something is encoded that only serves to mislead: `.`, `/` and NUL, or that has characters which no path of
    /// a URL has.
    static func text(percentEncoded part: some Collection<UInt8>) -> String? {
        guard part.allSatisfy({ isPathByte($0) || $0 == UInt8(ascii: "%") }) else { return nil }
        let encoded = String(decoding: part, as: UTF8.self)
        guard let text = PercentEncoding.decode(encoded) else { return nil }
        let dots = part.count { $0 == UInt8(ascii: ".") }
        guard text.utf8.count(where: { $0 == UInt8(ascii: ".") }) == dots, !text.utf8.contains(0), !text.utf8.contains(UInt8(ascii: "/"))
        else { return nil }
        return text
    }

    /// RFC 3986, `pchar` without what is encoded.
    private static func isPathByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || "-._~!$&'()*+,;=:@".utf8.contains(byte)
    }

    /// The names percent-encoded, with a `/` between them.
    public var percentEncoded: String { names.map { PercentEncoding.encode($0) }.joined(separator: "/") }

    /// The names as they are, with a `/` between them; empty for the share's own folder. Text of a peer.
    public var description: String { names.joined(separator: "/") }
}

extension SharePath: Equatable {
    public static func == (left: SharePath, right: SharePath) -> Bool {
        left.names.count == right.names.count && zip(left.names, right.names).allSatisfy { PeerText.areEqual($0, $1) }
    }
}
