import HexlistModel

/// A syntax error in JSON and its position (T22).
public struct GrammarFault: Error {
    /// The kind of error: the expected token, or the fault of the byte at the position.
    public enum Reason: UInt8, Sendable {
        /// A value, or one of `true`, `false` and `null`.
        case value, word
        /// A member's name, the colon after it, or the comma or bracket after a value.
        case name, colon, comma
        /// A control character in a string, an unterminated string, an unknown escape, or `\u` without four digits.
        case control, openString, escape, digits
        case utf8, number, nesting, trailing, notObject
    }

    public let reason: Reason
    /// The offset of the fault in bytes; for `digits`, that of the backslash.
    public let offset: Int
    /// Whether the input ends at the fault.
    public let isAtEnd: Bool

    @inlinable
    public init(reason: Reason, offset: Int, isAtEnd: Bool = false) {
        self.reason = reason
        self.offset = offset
        self.isAtEnd = isAtEnd
    }

    /// The message for the peer whose frame was refused.
    public var message: String {
        let what =
            switch reason {
            case _ where isAtEnd: "the JSON ends early"
            case .value, .word, .name, .colon, .comma, .openString: "a character that cannot stand here"
            case .control: "a control character inside a string"
            case .escape, .digits: "an escape JSON does not know"
            case .utf8: "not UTF-8"
            case .number: "not a JSON number"
            case .nesting: "nested deeper than \(JSONScanner.maximumDepth) levels"
            case .trailing: "text after the object"
            case .notObject: "not a JSON object"
            }
        return "\(what), at byte \(offset)"
    }
}

/// The error for text that is not JSON, or not the expected value.
public struct JSONFault: Error, Sendable, CustomStringConvertible {
    /// The offset of a syntax error in bytes; `nil` if the JSON is valid but its value is wrong.
    public var offset: Int?
    public var message: String

    public init(offset: Int? = nil, _ message: String) {
        self.offset = offset
        self.message = message
    }

    public var description: String { offset.map { "\(message) at byte \($0)" } ?? message }

    /// A message about the syntax error, for the author of the JSON.
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

    /// The offset of the unterminated string. Everything before it is valid, so quotes without a backslash start and end strings.
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
