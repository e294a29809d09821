import HexlistModel

/// A syntax error in JSON and its position. A frame with such an error is `malformed` (Docs/Protocol.md, rule T22).
public struct GrammarFault: Error {
    /// The kind of syntax error: the token that is expected at the position, or the defect of the byte at the position.
    public enum Reason: UInt8, Sendable {
        /// Expected: a value (`value`), or `true`, `false` or `null` (`word`).
        case value, word
        /// Expected: the name of a member, the colon after a name, or a comma or closing bracket after a value.
        case name, colon, comma
        /// In a string: a control character, a missing closing quote, an unknown escape, or `\u` without four hexadecimal digits.
        case control, openString, escape, digits
        case utf8, number, nesting, trailing, notObject
    }

    public let reason: Reason
    /// The offset of the error in bytes. For `digits`, the offset of the backslash.
    public let offset: Int
    /// Whether the error is that the input ends too early.
    public let isAtEnd: Bool

    @inlinable
    public init(reason: Reason, offset: Int, isAtEnd: Bool = false) {
        self.reason = reason
        self.offset = offset
        self.isAtEnd = isAtEnd
    }

    /// The error message for the peer whose frame was refused.
    public var message: String {
        let what =
            switch reason {
            case _ where isAtEnd: "the JSON ends early"
            case .value, .word, .name, .colon, .comma, .openString: "a character that is not allowed here"
            case .control: "a control character inside a string"
            case .escape, .digits: "an unknown escape sequence"
            case .utf8: "not UTF-8"
            case .number: "not a JSON number"
            case .nesting: "nested deeper than \(JSONScanner.maximumDepth) levels"
            case .trailing: "text after the object"
            case .notObject: "not a JSON object"
            }
        return "\(what), at byte \(offset)"
    }
}

/// The error for text that is not valid JSON, or whose value is not the expected one.
public struct JSONFault: Error, Sendable, CustomStringConvertible {
    /// The offset of the syntax error in bytes; `nil` if the syntax is valid but the value is wrong.
    public var offset: Int?
    public var message: String

    public init(offset: Int? = nil, _ message: String) {
        self.offset = offset
        self.message = message
    }

    public var description: String { offset.map { "\(message) at byte \($0)" } ?? message }

    /// Creates an error with a message for the author of the JSON.
    init(_ fault: GrammarFault, in json: JSONScanner) {
        let message =
            switch fault.reason {
            case .value: fault.isAtEnd ? "the text ends where a value is expected" : "no JSON value"
            case .word, .notObject: "no JSON value"
            case .name: "a member name is expected"
            case .colon: "`:` belongs here"
            case .comma: "`,` belongs here"
            case .control: "a control character in a string"
            case .openString: "an unterminated string"
            case .escape: "no such escape"
            case .digits: "a hexadecimal digit is expected"
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

    /// Returns the offset of the string that has no closing quote. The JSON before it is valid, so each quote that is not escaped begins or
    /// ends a string.
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
