import HexlistModel

/// The value of a header field with parameters, such as `form-data; name="file"; filename="a.jpg"` (RFC 9110 section 5.6.6).
struct ParameterizedField {
    /// The part before the parameters, in lower case.
    let value: String
    private var parameters: [String: String] = [:]

    /// - Parameter text: the untrusted text of the field. If it is malformed, the parameters before the error are used.
    init(_ text: String) {
        var rest = Array(text.utf8)[...]
        value = Self.word(&rest, upTo: ";").lowercased()
        while rest.popFirst() != nil {  // the semicolon
            let name = Self.word(&rest, upTo: "=").lowercased()
            guard rest.popFirst() != nil else { return }
            rest = rest.drop { $0 == UInt8(ascii: " ") }
            let value = rest.first == UInt8(ascii: "\"") ? Self.quoted(&rest) : Self.word(&rest, upTo: ";")
            if parameters[name] == nil { parameters[name] = value }
            rest = rest.drop { $0 != UInt8(ascii: ";") }
        }
    }

    subscript(name: String) -> String? { parameters[name] }

    /// The file name of a `Content-Disposition`; `nil` if it has none. Untrusted text.
    var fileName: String? {
        if let encoded = parameters["filename*"], encoded.lowercased().hasPrefix("utf-8''") {
            return PercentEncoding.decode(encoded.dropFirst("utf-8''".count))
        }
        return parameters["filename"]
    }

    private static func word(_ rest: inout ArraySlice<UInt8>, upTo end: Unicode.Scalar) -> String {
        let word = rest.prefix { $0 != UInt8(ascii: end) }
        rest = rest.dropFirst(word.count)
        let isSpace = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        return String(decoding: word.drop(while: isSpace).reversed().drop(while: isSpace).reversed(), as: UTF8.self)
    }

    /// Reads a quoted text. A backslash escapes a quote or a backslash. Before any other character it is part of the text, because browsers
    /// do not escape other characters.
    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> String {
        var text: [UInt8] = []
        rest = rest.dropFirst()
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\"), let next = rest.first, next == UInt8(ascii: "\"") || next == byte {
                text.append(next)
                rest = rest.dropFirst()
            } else {
                text.append(byte)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
