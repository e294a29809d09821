import HexlistModel

/// Goes over JSON text once, strictly (RFC 8259) and without building anything.
struct JSONScanner {
    private let bytes: ArraySlice<UInt8>
    private(set) var position: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    var isAtEnd: Bool { position == bytes.endIndex }
    private var current: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    mutating func skipSpace() {
        while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    /// Moves behind one value, which is checked.
    mutating func value(depth: Int) throws(JSONFault) {
        switch current {
        case UInt8(ascii: "{"): try container(depth: depth + 1, isObject: true)
        case UInt8(ascii: "["): try container(depth: depth + 1, isObject: false)
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "t"): try word("true")
        case UInt8(ascii: "f"): try word("false")
        case UInt8(ascii: "n"): try word("null")
        case UInt8(ascii: "-"), 0x30?, 0x31?, 0x32?, 0x33?, 0x34?, 0x35?, 0x36?, 0x37?, 0x38?, 0x39?: try number()
        default: throw JSONFault(offset: position, isAtEnd ? "the text ends where a value belongs" : "no JSON value")
        }
    }

    private mutating func container(depth: Int, isObject: Bool) throws(JSONFault) {
        guard depth <= JSONValue.maximumDepth else { throw JSONFault(offset: position, "nesting over \(JSONValue.maximumDepth)") }
        let close = isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
        position += 1
        skipSpace()
        if current == close {
            position += 1
            return
        }
        while true {
            if isObject {
                guard current == UInt8(ascii: "\"") else { throw JSONFault(offset: position, "a member name belongs here") }
                try string()
                skipSpace()
                try byte(UInt8(ascii: ":"))
                skipSpace()
            }
            try value(depth: depth)
            skipSpace()
            if current == close { break }
            try byte(UInt8(ascii: ","))
            skipSpace()
        }
        position += 1
    }

    private mutating func byte(_ expected: UInt8) throws(JSONFault) {
        guard current == expected else {
            throw JSONFault(offset: position, "`\(Character(Unicode.Scalar(expected)))` belongs here")
        }
        position += 1
    }

    private mutating func word(_ expected: String) throws(JSONFault) {
        for byte in expected.utf8 {
            guard current == byte else { throw JSONFault(offset: position, "no JSON value") }
            position += 1
        }
    }

    private mutating func digits() throws(JSONFault) {
        guard let first = current, ASCII.isDigit(first) else { throw JSONFault(offset: position, "a digit belongs here") }
        while let byte = current, ASCII.isDigit(byte) { position += 1 }
    }

    private mutating func number() throws(JSONFault) {
        if current == UInt8(ascii: "-") { position += 1 }
        if current == UInt8(ascii: "0") {
            position += 1
        } else {
            try digits()
        }
        if current == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            position += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
    }

    private mutating func string() throws(JSONFault) {
        position += 1
        let start = position
        var isASCII = true
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                guard isASCII || String(validating: bytes[start..<position], as: UTF8.self) != nil else {
                    throw JSONFault(offset: start, "invalid UTF-8")
                }
                position += 1
                return
            case UInt8(ascii: "\\"): try escape()
            case 0..<0x20: throw JSONFault(offset: position, "a control character in a string")
            case 0x80...: isASCII = false; position += 1
            default: position += 1
            }
        }
        throw JSONFault(offset: start, "a string without an end")
    }

    private mutating func escape() throws(JSONFault) {
        position += 1
        switch current {
        case UInt8(ascii: "u"):
            position += 1
            for _ in 0..<4 {
                guard let digit = current, Hexadecimal.value(of: digit) != nil else {
                    throw JSONFault(offset: position, "a hexadecimal digit belongs here")
                }
                position += 1
            }
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
            UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        default: throw JSONFault(offset: position, "no such escape")
        }
    }
}

/// Walking through what was checked before.
extension JSONScanner {
    /// The next element of an array whose `[` is behind; `nil` at its end.
    mutating func nextElement() -> ArraySlice<UInt8>? {
        skipSeparators()
        guard current != UInt8(ascii: "]") else { return nil }
        return passedValue()
    }

    /// The next name, still escaped and without its quotes, and its value; `nil` at the end of the object.
    mutating func nextMember() -> (name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)? {
        skipSeparators()
        guard current == UInt8(ascii: "\""), let name = passedValue() else { return nil }
        skipSeparators()
        return passedValue().map { (name.dropFirst().dropLast(), $0) }
    }

    private mutating func skipSeparators() {
        skipSpace()
        while current == UInt8(ascii: ",") || current == UInt8(ascii: ":") {
            position += 1
            skipSpace()
        }
    }

    private mutating func passedValue() -> ArraySlice<UInt8>? {
        let start = position
        guard (try? value(depth: 0)) != nil else { return nil }
        return bytes[start..<position]
    }

    /// The text of a checked string's inside. Pairs of surrogates are joined; a lone one becomes U+FFFD.
    static func unescape(_ bytes: ArraySlice<UInt8>) -> String {
        guard bytes.contains(UInt8(ascii: "\\")) else { return String(decoding: bytes, as: UTF8.self) }
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let kind = rest.popFirst() else {
                text.append(byte)
                continue
            }
            switch kind {
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "u"): text.append(contentsOf: String(Character(scalar(from: &rest))).utf8)
            default: text.append(kind)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The scalar of the four digits at the front, and of a second escape where the first is a high surrogate.
    private static func scalar(from rest: inout ArraySlice<UInt8>) -> Unicode.Scalar {
        let replacement: Unicode.Scalar = "\u{FFFD}"
        guard let unit = codeUnit(rest) else { return replacement }
        rest = rest.dropFirst(4)
        guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) ?? replacement }
        guard rest.starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "u")]), let low = codeUnit(rest.dropFirst(2)),
            (0xDC00..<0xE000).contains(low)
        else { return replacement }
        rest = rest.dropFirst(6)
        return Unicode.Scalar(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)) ?? replacement
    }

    private static func codeUnit(_ bytes: ArraySlice<UInt8>) -> UInt32? {
        guard bytes.count >= 4 else { return nil }
        var unit: UInt32 = 0
        for byte in bytes.prefix(4) {
            guard let digit = Hexadecimal.value(of: byte) else { return nil }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }
}
