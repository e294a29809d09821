import HexlistModel

/// Writes JSON, one token after the other; the caller places commas.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []

    init() {}

    init(capacity: Int) { bytes.reserveCapacity(capacity) }

    /// JSON as it is.
    mutating func raw(_ json: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: json.utf8Start, count: json.utf8CodeUnitCount))
    }
    mutating func raw(_ json: some Collection<UInt8>) { bytes.append(contentsOf: json) }
    mutating func raw(_ integer: some BinaryInteger) { bytes.append(contentsOf: String(integer).utf8) }

    /// A UUID as a string: 36 bytes, digits in upper case.
    mutating func uuid(_ uuid: UUIDBytes) {
        bytes.append(UInt8(ascii: "\""))
        for digit in 0..<32 {
            if digit == 8 || digit == 12 || digit == 16 || digit == 20 { bytes.append(UInt8(ascii: "-")) }
            let nibble = UInt8(truncatingIfNeeded: (digit < 16 ? uuid.high : uuid.low) >> UInt64(60 - digit % 16 * 4)) & 15
            bytes.append(nibble < 10 ? nibble | 0x30 : nibble + 0x37)
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// A string with its quotes. Only what JSON wants escaped is.
    mutating func string(_ text: some StringProtocol) {
        var text = String(text)
        text.withUTF8 { string(UnsafeRawBufferPointer($0)) }
    }

    /// - Parameter utf8: valid UTF-8.
    mutating func string(_ utf8: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        var run = 0
        for (index, byte) in utf8.enumerated() where byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
            bytes.append(contentsOf: utf8[run..<index])
            run = index + 1
            escape(byte)
        }
        bytes.append(contentsOf: utf8[run...])
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case 0x08: raw(#"\b"#)
        case 0x09: raw(#"\t"#)
        case 0x0A: raw(#"\n"#)
        case 0x0C: raw(#"\f"#)
        case 0x0D: raw(#"\r"#)
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            bytes.append(UInt8(ascii: "\\"))
            bytes.append(byte)
        default:
            raw(#"\u00"#)
            bytes.append(byte >> 4 | 0x30)  // 0 or 1
            bytes.append(byte & 15 < 10 ? byte & 15 | 0x30 : byte & 15 + 0x57)
        }
    }
}
