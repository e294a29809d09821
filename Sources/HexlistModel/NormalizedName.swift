/// The normalized form of a name, for comparisons that ignore case, repeated white space and invisible characters.
///
/// Each Unicode scalar is mapped to upper case and then to lower case (so `ß` becomes `ss`, and the Kelvin sign becomes `k`). Runs of white
/// space become one space. Default-ignorable scalars, such as joiners, variation selectors and direction marks, are removed. Canonically
/// equivalent texts are equal. Letters that only look alike remain different.
public struct NormalizedName: Hashable, Sendable {
    /// Maximum UTF-8 bytes of a name. A longer name has no key, because comparing strings takes quadratic time for hostile text.
    public static let bytes = ProtocolLimits.nameBytes

    let text: String

    /// Creates the key of a name; `nil` if the name is longer than `bytes` or has no visible character.
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

    /// Whether `name` has this key. Faster than creating the key of `name`, because it stops at the first difference. Searches compare
    /// thousands of names.
    public func isKey(of name: String) -> Bool { name.utf8.count <= Self.bytes && isKey(of: name.unicodeScalars) }

    /// Whether a name has this key.
    /// - Parameter name: the scalars of a name of at most `bytes` bytes of UTF-8.
    func isKey(of name: some Sequence<Unicode.Scalar>) -> Bool {
        var wanted = text.utf8.makeIterator()
        var isSame = true
        // If the key is ASCII, scalars are compared one by one. `plain` replaces the only two non-ASCII scalars that, after folding, are
        // canonically equivalent to an ASCII character.
        let isASCII = text.utf8.allSatisfy { $0 < 0x80 }
        var folded = String.UnicodeScalarView()
        var room = isASCII ? 0 : text.unicodeScalars.count * Self.longestDecomposition
        Self.fold(name) { scalar in
            if isASCII {
                let plain = scalar == "\u{37E}" ? ";" : scalar == "\u{1FEF}" ? "`" : scalar
                isSame = wanted.next().map { UInt32($0) == plain.value } ?? false
            } else {
                // `room` began as the maximum number of scalars that can compose to the key. A name with more scalars has another key.
                isSame = room > 0
                room -= 1
                folded.append(scalar)
            }
            return isSame
        }
        guard isSame else { return false }
        return isASCII ? wanted.next() == nil : String(folded) == text
    }

    /// Maximum number of scalars in a canonical decomposition, in any version of Unicode.
    private static let longestDecomposition = 4

    /// Normalizes a name and passes it to `body` scalar by scalar, until `body` returns `false`.
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

    /// Case folding of about 2 900 non-ASCII scalars. Cached, because a lookup in the Unicode tables takes microseconds.
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
    /// Formats a name as one line of printable text with single spaces. Characters that are not displayable become U+FFFD.
    public static func line(_ name: String) -> String {
        var line = String.UnicodeScalarView()
        var isBetweenWords = false
        for scalar in TerminalText.clean(cut(name, bytes: NormalizedName.bytes)).unicodeScalars {
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
