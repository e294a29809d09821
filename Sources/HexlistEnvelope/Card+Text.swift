extension Card {
    private static let textPrefix = "hexlist-card-1:"
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let values: [UInt8?] = (0...255 as ClosedRange<UInt8>).map { byte in
        digits.firstIndex(of: byte).map { UInt8($0) }
    }

    /// The form for people: `hexlist-card-1:` and base64url without padding.
    public var text: String {
        var text = Array(Self.textPrefix.utf8)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let number = group.reduce(0 as UInt32) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for digit in 0...group.count { text.append(Self.digits[Int(number >> UInt32(18 - 6 * digit) & 63)]) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads `text`; `nil` for any other text.
    public init?(text: String) {
        guard text.utf8.starts(with: Self.textPrefix.utf8) else { return nil }
        let digits = Array(text.utf8.dropFirst(Self.textPrefix.utf8.count).prefix(2 * Self.byteCount))
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        for start in stride(from: 0, to: digits.count, by: 4) {
            let group = digits[start..<min(start + 4, digits.count)]
            var number: UInt32 = 0
            for digit in group {
                guard let value = Self.values[Int(digit)] else { return nil }
                number = number << 6 | UInt32(value)
            }
            number <<= UInt32(6 * (4 - group.count))
            for index in 0..<group.count - 1 { bytes.append(UInt8(truncatingIfNeeded: number >> UInt32(16 - 8 * index))) }
        }
        // Bits after the last byte have to be zero, so that a card has only one text.
        guard let card = Card(bytes: bytes), card.text.utf8.elementsEqual(text.utf8) else { return nil }
        self = card
    }
}
