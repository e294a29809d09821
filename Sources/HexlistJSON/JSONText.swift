import HexlistModel

/// Escapes text for JSON: on the wire, in the store and in the local API.
public enum JSONText {
    /// Appends a text with its quotes. Escapes only what RFC 8259 requires: quotes, backslashes and characters below U+0020.
    /// - Parameter utf8: valid UTF-8.
    public static func append(_ utf8: UnsafeRawBufferPointer, to json: inout [UInt8]) {
        // Appending typed memory to the array is a memcpy; appending raw memory is not.
        let bytes = utf8.assumingMemoryBound(to: UInt8.self)
        json.append(UInt8(ascii: "\""))
        var run = 0
        var position = 0
        while true {
            position = firstEscaped(in: utf8, from: position)
            json.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[run..<position]))
            guard position < utf8.count else { break }
            appendEscaped(utf8[position], to: &json)
            position += 1
            run = position
        }
        json.append(UInt8(ascii: "\""))
    }

    public static func append(_ text: some StringProtocol, to json: inout [UInt8]) {
        var text = String(text)
        text.withUTF8 { append(UnsafeRawBufferPointer($0), to: &json) }
    }

    /// Returns an object with string values, such as `{"code":"blocked"}`. Members whose value is `nil` are omitted.
    public static func object(_ members: [(String, String?)]) -> String {
        var json: [UInt8] = []
        for (name, value) in members {
            guard let value else { continue }
            json.append(json.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
            append(name, to: &json)
            json.append(UInt8(ascii: ":"))
            append(value, to: &json)
        }
        return json.isEmpty ? "{}" : String(decoding: json, as: UTF8.self) + "}"
    }

    /// Changes JSON so that it can be displayed on one line of a terminal, without changing its meaning. Inside strings, characters that
    /// are not displayable (`TerminalText.isShown`) are escaped; between tokens, tabs and line breaks become spaces.
    /// - Parameters:
    ///   - json: bytes that are valid JSON, or a part of valid JSON, from offset `start` on.
    public static func makePrintable(_ json: inout [UInt8], from start: Int = 0) {
        let first = json.withUnsafeBytes { firstOutsidePrintableASCII(in: $0, from: start) }
        guard first < json.count else { return }
        let rest = Array(json[first...])
        json.removeSubrange(first...)
        rest.withUnsafeBufferPointer { bytes in
            var position = 0
            while position < bytes.count {
                var end = position
                while end < bytes.count, bytes[end] < 0x20 || bytes[end] >= 0x7F { end += 1 }
                appendPrintable(UnsafeBufferPointer(rebasing: bytes[position..<end]), to: &json)
                position = firstOutsidePrintableASCII(in: UnsafeRawBufferPointer(bytes), from: end)
                json.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[end..<position]))
            }
        }
    }

    /// Appends a part of JSON that has no printable ASCII characters.
    private static func appendPrintable(_ utf8: UnsafeBufferPointer<UInt8>, to json: inout [UInt8]) {
        for scalar in String(decoding: utf8, as: UTF8.self).unicodeScalars {
            if scalar.value < 0x20 {
                json.append(0x20)  // strings in valid JSON have no control characters, so it is between tokens
            } else if TerminalText.isShown(scalar) {
                json.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            } else {
                for unit in String(scalar).utf16 { appendUnit(unit, to: &json) }
            }
        }
    }

    /// Returns the position of the first byte from `start` on that is not a printable ASCII character; the end if there is none.
    private static func firstOutsidePrintableASCII(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var position = start
        while position < bytes.count, bytes[position] >= 0x20, bytes[position] < 0x7F { position &+= 1 }
        return position
    }

    /// Returns the position of the first byte from `start` on that must be escaped; the end of the text if there is none.
    @inline(__always)
    private static func firstEscaped(in utf8: UnsafeRawBufferPointer, from start: Int) -> Int {
        var position = start
        while position &+ 16 <= utf8.count {
            let chunk = utf8.loadUnaligned(fromByteOffset: position, as: SIMD16<UInt8>.self)
            let escaped =
                (chunk .< SIMD16<UInt8>(repeating: 0x20)) .| (chunk .== SIMD16<UInt8>(repeating: 0x22))
                .| (chunk .== SIMD16<UInt8>(repeating: 0x5C))
            let words = unsafeBitCast(escaped, to: SIMD2<UInt64>.self)
            let low = UInt64(littleEndian: words[0])
            if low != 0 { return position &+ low.trailingZeroBitCount &>> 3 }
            let high = UInt64(littleEndian: words[1])
            if high != 0 { return position &+ 8 &+ high.trailingZeroBitCount &>> 3 }
            position &+= 16
        }
        while position < utf8.count {
            let byte = utf8[position]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { break }
            position &+= 1
        }
        return position
    }

    private static func appendEscaped(_ byte: UInt8, to json: inout [UInt8]) {
        let letter: UInt8
        switch byte {
        case 0x08: letter = UInt8(ascii: "b")
        case 0x09: letter = UInt8(ascii: "t")
        case 0x0A: letter = UInt8(ascii: "n")
        case 0x0C: letter = UInt8(ascii: "f")
        case 0x0D: letter = UInt8(ascii: "r")
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): letter = byte
        default: return appendUnit(UInt16(byte), to: &json)
        }
        json.append(UInt8(ascii: "\\"))
        json.append(letter)
    }

    /// Appends a UTF-16 unit as an escape, such as `\u009b`.
    private static func appendUnit(_ unit: UInt16, to json: inout [UInt8]) {
        json.append(UInt8(ascii: "\\"))
        json.append(UInt8(ascii: "u"))
        for shift in [12, 8, 4, 0] as [UInt16] {
            let digit = UInt8(truncatingIfNeeded: unit >> shift) & 15
            json.append(digit < 10 ? digit | 0x30 : digit + 0x57)
        }
    }
}
