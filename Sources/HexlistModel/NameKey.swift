/// A name as names are compared: without regard to case, to runs of white space, and to what shows nothing.
///
/// Every Unicode scalar is taken to its upper case and then to its lower case (so `ß` is `ss`, and the Kelvin sign is `k`), white space
/// becomes one space between words, default-ignorable scalars (joiners, variation selectors, direction marks) count for nothing, and
/// canonically equivalent texts are equal. Letters that only look alike stay different.
public struct NameKey: Hashable, Sendable {
    /// Of UTF-8, as long as a name may be. `String`'s own equality, quadratic on hostile text of any length, is cheap on so few.
    public static let bytes = ProtocolLimits.nameBytes

    private let text: String

    /// `nil` for a text that names nobody: a longer one, or one that shows nothing.
    public init?(_ name: String) {
        guard name.utf8.count <= Self.bytes else { return nil }
        var key = String.UnicodeScalarView()
        var isBetweenWords = false
        for scalar in name.unicodeScalars {
            guard !scalar.isSpace else {
                isBetweenWords = !key.isEmpty
                continue
            }
            if !scalar.isASCII, scalar.properties.isDefaultIgnorableCodePoint { continue }
            if isBetweenWords { key.append(" ") }
            isBetweenWords = false
            if scalar.isASCII {
                key.append(Unicode.Scalar(ASCII.lowercased(UInt8(truncatingIfNeeded: scalar.value))))
            } else {
                for upper in scalar.properties.uppercaseMapping.unicodeScalars {
                    key.append(contentsOf: upper.properties.lowercaseMapping.unicodeScalars)
                }
            }
        }
        guard !key.isEmpty else { return nil }
        text = String(key)
    }
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
