/// The form in which names are compared: regardless of case, of runs of white space, and of characters that show nothing.
///
/// Every Unicode scalar is mapped to its upper case and then to its lower case (so `ß` is `ss`, and the Kelvin sign is `k`), white space
/// becomes one space between words, default-ignorable scalars (joiners, variation selectors, direction marks) are dropped, and
/// canonically equivalent texts are equal. Letters that only look alike stay different.
public struct NameKey: Hashable, Sendable {
    /// The most bytes of UTF-8 in a name that has a key. `String`'s equality, quadratic on hostile text, is cheap for so few bytes.
    public static let bytes = ProtocolLimits.nameBytes

    let text: String

    /// `nil` for a text that can name nobody: it is longer than `bytes`, or shows nothing.
    public init?(_ name: String) {
        guard name.utf8.count <= Self.bytes else { return nil }
        var key = String.UnicodeScalarView()
        Self.fold(name.unicodeScalars) { scalar in
            key.append(scalar)
            return true
        }
        guard !key.isEmpty else { return nil }
        text = String(key)
    }

    /// Whether `NameKey(name)` is this key. Reads no more of the name than it needs to tell the two apart, so that a search among thousands
    /// of names that are slow to fold stays fast.
    public func isKey(of name: String) -> Bool { name.utf8.count <= Self.bytes && isKey(of: name.unicodeScalars) }

    /// - Parameter name: a name of at most `bytes` bytes.
    func isKey(of name: some Sequence<Unicode.Scalar>) -> Bool {
        var wanted = text.utf8.makeIterator()
        var isSame = true
        // Only two scalars that folding leaves are canonically equivalent to ASCII, alone or next to others; `plain` maps them.
        let isASCII = text.utf8.allSatisfy { $0 < 0x80 }
        var folded = String.UnicodeScalarView()
        var room = isASCII ? 0 : text.unicodeScalars.count * Self.longestDecomposition
        Self.fold(name) { scalar in
            if isASCII {
                let plain = scalar == "\u{37E}" ? ";" : scalar == "\u{1FEF}" ? "`" : scalar
                isSame = wanted.next().map { UInt32($0) == plain.value } ?? false
            } else {
                // A name that is longer than this stays longer than the key, however the two are composed.
                isSame = room > 0
                room -= 1
                folded.append(scalar)
            }
            return isSame
        }
        guard isSame else { return false }
        return isASCII ? wanted.next() == nil : String(folded) == text
    }

    /// The most scalars of a canonical decomposition, in every version of Unicode.
    private static let longestDecomposition = 4

    /// - Parameter body: called with each scalar of the key; returns `false` to end the loop.
    private static func fold(_ name: some Sequence<Unicode.Scalar>, _ body: (Unicode.Scalar) -> Bool) {
        var (isBetweenWords, isEmpty) = (false, true)
        for scalar in name {
            guard !scalar.isSpace else {
                isBetweenWords = !isEmpty
                continue
            }
            if !scalar.isASCII, scalar.properties.isDefaultIgnorableCodePoint { continue }
            if isBetweenWords, !body(" ") { return }
            (isBetweenWords, isEmpty) = (false, false)
            if scalar.isASCII {
                guard body(Unicode.Scalar(ASCII.lowercased(UInt8(truncatingIfNeeded: scalar.value)))) else { return }
            } else {
                for folded in foldings[scalar] ?? [scalar] {
                    guard body(folded) else { return }
                }
            }
        }
    }

    /// The folded forms of the some 2 900 scalars beyond ASCII that have a case. Looking one up in Unicode's tables takes microseconds.
    private static let foldings: [Unicode.Scalar: [Unicode.Scalar]] = {
        var foldings: [Unicode.Scalar: [Unicode.Scalar]] = [:]
        for scalar in (UInt32(0x80)...0x1_FFFF).lazy.compactMap(Unicode.Scalar.init)
        where scalar.properties.changesWhenUppercased || scalar.properties.changesWhenLowercased {
            foldings[scalar] = scalar.properties.uppercaseMapping.unicodeScalars.flatMap(\.properties.lowercaseMapping.unicodeScalars)
        }
        return foldings
    }()
}

extension Unicode.Scalar {
    fileprivate var isSpace: Bool { isASCII ? value == 0x20 || (0x09...0x0D).contains(value) : properties.isWhitespace }
}

extension PeerName {
    /// A name as one line of printable text with single spaces between its words. Characters that are not shown become U+FFFD.
    static func line(_ name: String) -> String {
        var line = String.UnicodeScalarView()
        var isBetweenWords = false
        for scalar in TerminalText.clean(cut(name, bytes: NameKey.bytes)).unicodeScalars {
            guard !scalar.isSpace else {
                isBetweenWords = !line.isEmpty
                continue
            }
            if isBetweenWords { line.append(" ") }
            isBetweenWords = false
            line.append(scalar)
        }
        return String(line)
    }
}
