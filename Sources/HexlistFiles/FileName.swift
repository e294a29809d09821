import HexlistModel

/// A safe name for saving a file or folder of a peer: one path component that can be typed and displayed.
///
/// - Characters that cannot be displayed (`TerminalText.isShown`), `/`, `\` and invalid UTF-8 become `_`. White space at both ends is
///   removed.
/// - Leading dots, dashes and white space are removed, so the file is not hidden, and programs do not take its name for an option.
/// - The length is 1 to 255 bytes. A longer name is cut between characters, before the suffix.
public struct FileName: Sendable, CustomStringConvertible {
    /// Maximum bytes of a name on Linux file systems (NAME_MAX).
    public static let maximumBytes = 255
    /// The name that is used if all characters were removed.
    public static let unnamed = "file"

    private let stem: String
    /// The suffix with its dot, such as `.pdf` or `.tar.gz`; empty if there is none.
    private let suffix: String

    /// Makes a safe name of a text.
    /// - Parameter text: untrusted text of any length.
    public init(_ text: String) {
        // To bound the work, only the beginning and the suffix of a long text are used.
        let raw = text.utf8.count > Self.rawBytes ? Self.shortened(text) : text
        var scalars = String.UnicodeScalarView()
        for scalar in raw.unicodeScalars {
            if scalar.properties.isWhitespace {
                scalars.append(scalar.value < 0x80 || !TerminalText.isShown(scalar) ? " " : scalar)
            } else {
                scalars.append(Self.isKept(scalar) ? scalar : "_")
            }
        }
        let isSpace = { (scalar: Unicode.Scalar) in scalar.properties.isWhitespace }
        while let last = scalars.last, isSpace(last) { scalars.removeLast() }
        let name = scalars.drop { isSpace($0) || $0 == "." || $0 == "-" || $0.properties.isDefaultIgnorableCodePoint }
        let clean = name.isEmpty ? Self.unnamed : String(name)
        let (stem, suffix) = Self.split(clean)
        self.init(stem: Self.cut(stem, bytes: Self.maximumBytes - suffix.utf8.count), suffix: suffix)
    }

    /// Makes a safe name of bytes.
    /// - Parameter bytes: a name from a file system, which may not be valid UTF-8.
    public init(bytes: some Collection<UInt8>) { self.init(String(decoding: bytes, as: UTF8.self)) }

    private init(stem: String, suffix: String) {
        self.stem = stem
        self.suffix = suffix
    }

    public var description: String { stem + suffix }

    /// The name with ` (NUMBER)` before its suffix, cut to 255 bytes. For number 1, the name without a number.
    public func numbered(_ number: Int) -> FileName {
        guard number > 1 else { return self }
        let mark = " (\(number))"
        let room = Self.maximumBytes - suffix.utf8.count - mark.utf8.count
        return FileName(stem: Self.cut(stem, bytes: room) + mark, suffix: suffix)
    }

    /// The greatest number that `firstFree` tries.
    static let maximumNumbers = 1 << 20

    /// Finds a numbered name that is free, with about 40 lookups at most: the number is doubled until a name is free, then a binary search
    /// follows. The result has the lowest free number if the used numbers have no gaps.
    /// - Parameter isTaken: returns whether a file of this name exists.
    /// - Returns: the name; `nil` if all tried names are taken.
    func firstFree(_ isTaken: (FileName) throws(FileFault) -> Bool) throws(FileFault) -> FileName? {
        guard try isTaken(self) else { return self }
        var (last, free) = (1, 2)
        while try isTaken(numbered(free)) {
            guard free < Self.maximumNumbers else { return nil }
            (last, free) = (free, 2 * free)
        }
        while free - last > 1 {
            let middle = (last + free) / 2
            if try isTaken(numbered(middle)) { last = middle } else { free = middle }
        }
        return numbered(free)
    }

    /// Returns the name of the partial file: `.NAME.ID.part`, at most 255 bytes.
    /// - Parameter id: at most 64 letters and digits; any other characters are omitted.
    func partName(_ id: String) -> String {
        let end = ".\(String(decoding: id.utf8.lazy.filter(ASCII.isAlphanumeric).prefix(64), as: UTF8.self)).part"
        return "." + Self.cut(description, bytes: Self.maximumBytes - 1 - end.utf8.count) + end
    }

    private static func isKept(_ scalar: Unicode.Scalar) -> Bool {
        TerminalText.isShown(scalar) && scalar != "/" && scalar != "\\" && scalar != "\u{FFFD}"
    }

    // MARK: Suffix

    /// Maximum bytes of a suffix. A longer one counts as part of the name, and may be cut.
    private static let suffixBytes = 16
    /// Maximum bytes of a text that are used. It is four times the length of a name, because unsafe characters may be removed.
    private static let rawBytes = 4 * maximumBytes

    /// Returns the first `rawBytes` of a long text, followed by its suffix.
    private static func shortened(_ text: String) -> String {
        let end = String(decoding: text.utf8.suffix(suffixBytes + 8), as: UTF8.self)
        return PeerName.cut(text, bytes: rawBytes) + split(end).suffix
    }

    /// Splits a name before the last dot, or before `.tar` if it directly precedes the last dot. The suffix is empty if it is longer than
    /// `suffixBytes` or not alphanumeric.
    private static func split(_ name: String) -> (stem: String, suffix: String) {
        let bytes = Array(name.utf8)
        guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, (1...suffixBytes).contains(bytes.count - dot - 1),
            bytes[(dot + 1)...].allSatisfy(ASCII.isAlphanumeric)
        else { return (name, "") }
        let tar = Array(".tar".utf8)
        let start = dot > tar.count && bytes[..<dot].suffix(tar.count).map(ASCII.lowercased) == tar ? dot - tar.count : dot
        return (String(decoding: bytes[..<start], as: UTF8.self), String(decoding: bytes[start...], as: UTF8.self))
    }

    /// Returns the longest prefix of whole characters that fits into `limit` bytes. If the first character alone is longer, it is cut
    /// between Unicode scalars.
    private static func cut(_ text: String, bytes limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        // Splitting hostile text into characters takes quadratic time, so the text is cut near the limit first.
        let near = PeerName.cut(text, bytes: limit + 32)
        var kept = ""
        for character in near {
            guard kept.utf8.count + character.utf8.count <= limit else { break }
            kept.append(character)
        }
        if kept.isEmpty { kept = PeerName.cut(near, bytes: limit) }
        while kept.unicodeScalars.count > 1, let last = kept.unicodeScalars.last, last.properties.isWhitespace {
            kept.unicodeScalars.removeLast()
        }
        return kept
    }
}

extension FileName: Equatable {
    public static func == (left: FileName, right: FileName) -> Bool { PeerTextComparison.areEqual(left.description, right.description) }
}
