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
    mutating func string(_ text: some StringProtocol) { JSONText.append(text, to: &bytes) }

    /// - Parameter utf8: valid UTF-8.
    mutating func string(_ utf8: UnsafeRawBufferPointer) { JSONText.append(utf8, to: &bytes) }
}
