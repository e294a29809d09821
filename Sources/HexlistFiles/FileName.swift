import HexlistModel

/// The name under which a receiver puts a file or a folder of a peer: one path component that can be typed and shown.
///
/// - Characters that are not shown (`TerminalText.isShown`), `/`, `\`, and what was no UTF-8 become `_`; white space at both ends goes.
/// - No dots, dashes or white space at its beginning: the file is neither hidden nor taken for an option.
/// - 1 to 255 bytes, cut on a character's edge before the suffix.
public struct FileName: Sendable, CustomStringConvertible {
    /// The most bytes of a name, as file systems have it.
    public static let maximumBytes = 255
    /// The name of what has none.
    public static let unnamed = "file"

    private let stem: String
    /// `.pdf`, `.tar.gz`; empty where there is none.
    private let suffix: String

    /// - Parameter text: of anybody, of any length.
    public init(_ text: String) {
        // What is far beyond the limit is never looked at, except for the suffix.
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

    /// - Parameter bytes: a name as a file system has it, which may be no UTF-8.
    public init(bytes: some Collection<UInt8>) { self.init(String(decoding: bytes, as: UTF8.self)) }

    private init(stem: String, suffix: String) {
        self.stem = stem
        self.suffix = suffix
    }

    public var description: String { stem + suffix }

    /// The n-th name to try: ` (2)` and so on before the suffix, at most 255 bytes. The first is the name itself.
    public func numbered(_ number: Int) -> FileName {
        guard number > 1 else { return self }
        let mark = " (\(number))"
        let room = Self.maximumBytes - suffix.utf8.count - mark.utf8.count
        return FileName(stem: Self.cut(stem, bytes: room) + mark, suffix: suffix)
    }

    /// The most numbers that are tried.
    static let mostNumbers = 1 << 20

    /// Finds a free numbered name by exponential, then binary search. It is the first free one if no number before it is free.
    /// - Parameter isTaken: looks whether there is something of this name; called 40 times at most.
    /// - Returns: `nil` if none was found.
    func firstFree(_ isTaken: (FileName) throws(FileFault) -> Bool) throws(FileFault) -> FileName? {
        guard try isTaken(self) else { return self }
        var (last, free) = (1, 2)
        while try isTaken(numbered(free)) {
            guard free < Self.mostNumbers else { return nil }
            (last, free) = (free, 2 * free)
        }
        while free - last > 1 {
            let middle = (last + free) / 2
            if try isTaken(numbered(middle)) { last = middle } else { free = middle }
        }
        return numbered(free)
    }

    /// The name of the file that is this one while it is partial: `.NAME.ID.part`, at most 255 bytes.
    /// - Parameter id: letters and digits, at most 64; whatever else is left out.
    func partName(_ id: String) -> String {
        let end = ".\(String(decoding: id.utf8.lazy.filter(ASCII.isAlphanumeric).prefix(64), as: UTF8.self)).part"
        return "." + Self.cut(description, bytes: Self.maximumBytes - 1 - end.utf8.count) + end
    }

    private static func isKept(_ scalar: Unicode.Scalar) -> Bool {
        TerminalText.isShown(scalar) && scalar != "/" && scalar != "\\" && scalar != "\u{FFFD}"
    }

    // MARK: Suffix

    /// The most bytes of a suffix that is kept when a name is cut.
    private static let suffixBytes = 16
    /// The most bytes of a text that are cleaned: a name of four times the limit may have characters that fall away.
    private static let rawBytes = 4 * maximumBytes

    /// The beginning and the end of a long text.
    private static func shortened(_ text: String) -> String {
        let end = String(decoding: text.utf8.suffix(suffixBytes + 8), as: UTF8.self)
        return PeerName.cut(text, bytes: rawBytes) + split(end).suffix
    }

    /// Splits before the last dot, or before that of `.tar`, if letters and digits follow that make a suffix.
    private static func split(_ name: String) -> (stem: String, suffix: String) {
        let bytes = Array(name.utf8)
        guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, (1...suffixBytes).contains(bytes.count - dot - 1),
            bytes[(dot + 1)...].allSatisfy(ASCII.isAlphanumeric)
        else { return (name, "") }
        let tar = Array(".tar".utf8)
        let start = dot > tar.count && bytes[..<dot].suffix(tar.count).map(ASCII.lowercased) == tar ? dot - tar.count : dot
        return (String(decoding: bytes[..<start], as: UTF8.self), String(decoding: bytes[start...], as: UTF8.self))
    }

    /// The longest beginning of whole characters that fits; of one character that is too long by itself, whole scalars.
    private static func cut(_ text: String, bytes limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        // Characters are looked for only in what is little longer: finding them in hostile text is quadratic.
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
    public static func == (left: FileName, right: FileName) -> Bool { PeerText.areEqual(left.description, right.description) }
}
