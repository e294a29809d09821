/// A name as names are compared: without regard to case, to runs of white space, and to what shows nothing.
///
/// Every Unicode scalar is taken to its upper case and then to its lower case (so `ß` is `ss`, and the Kelvin sign is `k`), white space
/// becomes one space between words, default-ignorable scalars (joiners, variation selectors, direction marks) count for nothing, and
/// canonically equivalent texts are equal. Letters that only look alike stay different.
public struct NameKey: Hashable, Sendable {
    /// Of UTF-8, as long as a name may be. `String`'s own equality, quadratic on hostile text of any length, is cheap on so few.
    public static let bytes = ProtocolLimits.nameBytes

    let text: String

    /// `nil` for a text that names nobody: a longer one, or one that shows nothing.
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

    /// Whether `NameKey(name)` is this one. It reads no more of the name than tells the two apart, so that a look among thousands of
    /// names that are slow to fold stays one.
    public func isKey(of name: String) -> Bool { name.utf8.count <= Self.bytes && isKey(of: name.unicodeScalars) }

    /// - Parameter name: of `bytes` bytes at most.
    func isKey(of name: some Sequence<Unicode.Scalar>) -> Bool {
        var wanted = text.utf8.makeIterator()
        var isSame = true
        // Of ASCII: no other scalar that folding leaves is canonically equivalent to ASCII, alone or beside others, but for two.
        let isASCII = text.utf8.allSatisfy { $0 < 0x80 }
        var folded = String.UnicodeScalarView()
        var room = isASCII ? 0 : text.unicodeScalars.count * Self.longestDecomposition
        Self.fold(name) { scalar in
            if isASCII {
                let plain = scalar == "\u{37E}" ? ";" : scalar == "\u{1FEF}" ? "`" : scalar
                isSame = wanted.next().map { UInt32($0) == plain.value } ?? false
            } else {
                // A longer name stays longer than the key, however the two are composed.
                isSame = room > 0
                room -= 1
                folded.append(scalar)
            }
            return isSame
        }
        guard isSame else { return false }
        return isASCII ? wanted.next() == nil : String(folded) == text
    }

    /// Scalars a canonical decomposition has at most, as of every version of Unicode.
    private static let longestDecomposition = 4

    /// - Parameter body: given each scalar of the key; `false` ends it.
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

    /// Of the some 2 900 scalars beyond ASCII that case changes. Asked one by one, the mappings take microseconds.
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
    /// One line of printable text with single spaces between its words. What is not to be shown becomes U+FFFD.
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
