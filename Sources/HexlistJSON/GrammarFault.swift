import HexlistModel

/// The reason why bytes are not JSON, and the position (T22).
public struct GrammarFault: Error {
    /// The thing expected at the position, or the fault of the byte there.
    public enum Reason: UInt8, Sendable {
        /// A value, or one of the words `true`, `false` and `null`.
        case value, word
        /// A member's name, the colon after one, the comma or bracket after a value.
        case name, colon, comma
        /// A control character in a string, a string without an end, an unknown escape, a `\u` without its four digits.
        case control, openString, escape, digits
        case utf8, number, nesting, trailing, notObject
    }

    public let reason: Reason
    /// The bytes before the fault; for `digits`, those before the backslash.
    public let offset: Int
    /// Whether the bytes end at the fault.
    public let isAtEnd: Bool

    @inlinable
    public init(reason: Reason, offset: Int, isAtEnd: Bool = false) {
        self.reason = reason
        self.offset = offset
        self.isAtEnd = isAtEnd
    }

    /// A message for the person whose frame was refused.
    public var message: String {
        let what =
            switch reason {
            case _ where isAtEnd: "the JSON ends early"
            case .value, .word, .name, .colon, .comma, .openString: "a character that cannot stand here"
            case .control: "a control character inside a string"
            case .escape, .digits: "an escape JSON does not know"
            case .utf8: "not UTF-8"
            case .number: "not a JSON number"
            case .nesting: "nested deeper than \(JSONScanner.deepest) levels"
            case .trailing: "text after the object"
            case .notObject: "not a JSON object"
            }
        return "\(what), at byte \(offset)"
    }
}

/// The error for a text that is no JSON, or not the JSON that was expected.
public struct JSONFault: Error, Sendable, CustomStringConvertible {
    /// The offset of the fault in bytes; `nil` if the text was JSON with a wrong meaning.
    public var offset: Int?
    public var message: String

    public init(offset: Int? = nil, _ message: String) {
        self.offset = offset
        self.message = message
    }

    public var description: String { offset.map { "\(message) at byte \($0)" } ?? message }

    /// Makes a message about what was expected, for the author of the JSON.
    init(_ fault: GrammarFault, in json: JSONScanner) {
        let message =
            switch fault.reason {
            case .value: fault.isAtEnd ? "the text ends where a value belongs" : "no JSON value"
            case .word, .notObject: "no JSON value"
            case .name: "a member name belongs here"
            case .colon: "`:` belongs here"
            case .comma: "`,` belongs here"
            case .control: "a control character in a string"
            case .openString: "a string without an end"
            case .escape: "no such escape"
            case .digits: "a hexadecimal digit belongs here"
            case .utf8: "invalid UTF-8"
            case .number: "a digit belongs here"
            case .nesting: "nesting over \(JSONValue.maximumDepth)"
            case .trailing: "text after the value"
            }
        switch fault.reason {
        case .digits:
            let digits = (2..<6).prefix { Hexadecimal.value(of: json.byte(fault.offset + $0)) != nil }
            self.init(offset: fault.offset + 2 + digits.count, message)
        case .openString: self.init(offset: Self.openString(in: json), message)
        default: self.init(offset: fault.offset, message)
        }
    }

    /// The position of the string that has no end. All before it is JSON, so quotes without a backslash begin and end strings.
    private static func openString(in json: JSONScanner) -> Int {
        var (position, start) = (0, 0)
        var isOpen = false
        while position < json.end {
            let byte = json.byte(position)
            if isOpen, byte == UInt8(ascii: "\\") { position += 1 }
            if byte == UInt8(ascii: "\"") { (isOpen, start) = (!isOpen, position + 1) }
            position += 1
        }
        return start
    }
}
