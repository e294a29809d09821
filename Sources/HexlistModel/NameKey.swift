/// The normalized form for comparing names: ignores case, repeated white space, and invisible characters.
///
/// Each Unicode scalar is mapped to upper and then to lower case (so `ß` becomes `ss`, and the Kelvin sign `k`), runs of white space become
/// one space, default-ignorable scalars (joiners, variation selectors, direction marks) are dropped, and canonically equivalent texts are
/// equal. Letters that merely look alike remain different.
/// canonically equivalent texts are equal. Letters that only look alike stay different.
public struct NameKey: Hashable, Sendable {
    /// Maximum UTF-8 bytes of a name that has a key. Comparing strings takes quadratic time for hostile text, so they must be short.
    public static let bytes = ProtocolLimits.nameBytes

    let text: String

    /// `nil` if the text is longer than `bytes` or has no visible character.
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

    /// Whether `NameKey(name) == self`. Stops at the first difference, so that searching thousands of names is fast even if folding them is
    /// slow.
    public func isKey(of name: String) -> Bool { name.utf8.count <= Self.bytes && isKey(of: name.unicodeScalars) }

    /// - Parameter name: at most `bytes` bytes of UTF-8.
    func isKey(of name: some Sequence<Unicode.Scalar>) -> Bool {
        var wanted = text.utf8.makeIterator()
        var isSame = true
        // Only two scalars that can remain after folding are canonically equivalent to ASCII; `plain` maps them.
        let isASCII = text.utf8.allSatisfy { $0 < 0x80 }
        var folded = String.UnicodeScalarView()
        var room = isASCII ? 0 : text.unicodeScalars.count * Self.longestDecomposition
        Self.fold(name) { scalar in
            if isASCII {
                let plain = scalar == "\u{37E}" ? ";" : scalar == "\u{1FEF}" ? "`" : scalar
                isSame = wanted.next().map { UInt32($0) == plain.value } ?? false
            } else {
                // A longer name stays longer than the key after composition.
                isSame = room > 0
                room -= 1
                folded.append(scalar)
            }
            return isSame
        }
        guard isSame else { return false }
        return isASCII ? wanted.next() == nil : String(folded) == text
    }

    /// Maximum scalars of a canonical decomposition in any version of Unicode.
    private static let longestDecomposition = 4

    /// - Parameter body: called for each scalar of the key; returns `false` to stop.
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

    /// Case folding of the about 2 900 non-ASCII scalars with a case. A lookup in Unicode's own tables takes microseconds.
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
    /// Formats a name as one line of printable text with single spaces. Other characters become U+FFFD.
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
