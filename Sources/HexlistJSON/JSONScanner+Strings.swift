/// The result of scanning a string.
public struct StringToken {
    /// The position of the closing quote.
    public let end: Int
    /// Whether the string has escapes, so that its text differs from its bytes.
    public let hasEscapes: Bool

    @inlinable
    public init(end: Int, hasEscapes: Bool) {
        self.end = end
        self.hasEscapes = hasEscapes
    }
}

extension JSONScanner {
    /// Validates a string, including its escapes and its UTF-8. Control characters are errors.
    /// - Parameter start: the position after the opening quote.
    @inlinable @inline(__always)
    public func string(from start: Int) throws(GrammarFault) -> StringToken {
        let position = plainRun(from: start)
        if byte(position) == UInt8(ascii: "\"") { return StringToken(end: position, hasEscapes: false) }
        return try oddString(from: position)
    }

    /// Returns the position of the first byte from `start` on that is a quote, backslash, control character or not ASCII; `end` if there is
    /// none.
    @inlinable
    public func plainRun(from start: Int) -> Int {
        var position = start
        while position &+ 8 <= end {
            let word = UInt64(littleEndian: UnsafeRawPointer(base + position).loadUnaligned(as: UInt64.self))
            let ends = Self.runEnds(in: word)
            if ends != 0 { return position &+ ends.trailingZeroBitCount &>> 3 }
            position &+= 8
        }
        while position < end, Self.isPlain(base[position]) { position &+= 1 }
        return position
    }

    /// Returns a word in which the high bit of the first byte that ends a run of plain ASCII is set. The bits of later bytes may be wrong,
    /// because the subtraction can borrow.
    @inlinable @inline(__always)
    static func runEnds(in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        // Flipping bit 1 turns the quote (0x22) into 0x20. Control characters remain below 0x20, while space and `!` become greater than
        // 0x20.
        let quotes = (word ^ ones &* 0x02) &- ones &* 0x21
        let backslashes = (word ^ ones &* 0x5C) &- ones
        return (quotes | backslashes | word) & (ones &* 0x80)
    }

    @inlinable @inline(__always)
    static func isPlain(_ byte: UInt8) -> Bool {
        byte &- 0x20 < 0x60 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    /// Validates the rest of a string that is not only plain ASCII.
    /// - Parameter start: the position of the first byte that is not plain.
    @inline(never)
    public func oddString(from start: Int) throws(GrammarFault) -> StringToken {
        var position = start
        var hasEscapes = false
        while position < end {
            let byte = base[position]
            if byte >= 0x80 {
                position = try multibyte(at: position)
            } else if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                position = try escape(at: position)
            } else if byte == UInt8(ascii: "\"") {
                return StringToken(end: position, hasEscapes: hasEscapes)
            } else if byte < 0x20 {
                throw fault(at: position, .control)
            } else {
                position = plainRun(from: position)
            }
        }
        throw fault(at: end, .openString)
    }

    /// Validates and skips an escape.
    /// - Parameter start: the position of the backslash.
    /// - Returns: the position after the escape.
    @inlinable @inline(__always)
    func escape(at start: Int) throws(GrammarFault) -> Int {
        switch byte(start &+ 1) {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
            UInt8(ascii: "r"), UInt8(ascii: "t"):
            return start &+ 2
        case UInt8(ascii: "u"):
            guard start &+ 6 <= end, unit(at: start) <= 0xFFFF else { throw fault(at: start, .digits) }
            return start &+ 6
        default:
            throw fault(at: start &+ 1, .escape)
        }
    }

    /// Validates a UTF-8 sequence of two to four bytes. Overlong forms, surrogates and code points above U+10FFFF are errors.
    /// - Returns: the position after the sequence.
    @inlinable @inline(__always)
    func multibyte(at start: Int) throws(GrammarFault) -> Int {
        let first = base[start]
        let second = byte(start &+ 1)
        switch first {
        case 0xC2...0xDF:
            if isContinuation(second) { return start &+ 2 }
        case 0xE0...0xEF:
            let lowest: UInt8 = first == 0xE0 ? 0xA0 : 0x80
            let highest: UInt8 = first == 0xED ? 0x9F : 0xBF
            if second >= lowest, second <= highest, isContinuation(byte(start &+ 2)) { return start &+ 3 }
        case 0xF0...0xF4:
            let lowest: UInt8 = first == 0xF0 ? 0x90 : 0x80
            let highest: UInt8 = first == 0xF4 ? 0x8F : 0xBF
            if second >= lowest, second <= highest, isContinuation(byte(start &+ 2)), isContinuation(byte(start &+ 3)) { return start &+ 4 }
        default:
            break
        }
        throw GrammarFault(reason: .utf8, offset: start)
    }

    /// Returns the value of the four hexadecimal digits after `\u`; a value above 0xFFFF if they are not valid.
    /// - Parameter backslash: the position of the backslash.
    @inlinable @inline(__always)
    public func unit(at backslash: Int) -> UInt32 {
        func digit(_ offset: Int) -> UInt32 {
            let byte = base[backslash &+ offset]
            let decimal = byte &- UInt8(ascii: "0")
            let letter = (byte | 0x20) &- UInt8(ascii: "a")
            return decimal < 10 ? UInt32(decimal) : letter < 6 ? UInt32(letter &+ 10) : 0x1_0000
        }
        let high = digit(2) << 12 | digit(3) << 8
        return high | digit(4) << 4 | digit(5)
    }

    @inlinable @inline(__always)
    func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }
}

// MARK: - Integers

extension JSONScanner {
    /// Returns the value of an integer, clamped to the range of `Int64`; `nil` if the number has a fraction or an exponent.
    @inlinable
    public func integer(_ start: Int, _ stop: Int) -> Int64? {
        let isNegative = byte(start) == UInt8(ascii: "-")
        var magnitude: Int64 = 0
        var isClamped = false
        for position in (isNegative ? start &+ 1 : start)..<stop {
            let digit = base[position] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            let (product, overflow) = magnitude.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(Int64(digit))
            if overflow || carry { isClamped = true } else { magnitude = sum }
        }
        if isClamped { return isNegative ? .min : .max }
        return isNegative ? -magnitude : magnitude
    }

    /// Reads the sequence number of a frame, an integer from 1 to 2^63 - 1 in decimal digits (Docs/Protocol.md, rule T21).
    /// - Returns: the number and the position after it; `nil` for any other value.
    @inlinable @inline(__always)
    public func sequence(at start: Int) -> (Int64, end: Int)? {
        guard byte(start) != UInt8(ascii: "0") else { return nil }
        var sequence: Int64 = 0
        var position = start
        while true {
            let digit = byte(position) &- UInt8(ascii: "0")
            guard digit < 10 else { break }
            let (product, overflow) = sequence.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(Int64(digit))
            if overflow || carry { return nil }
            sequence = sum
            position &+= 1
        }
        switch byte(position) {
        case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): return nil
        default: return position > start ? (sequence, end: position) : nil
        }
    }
}
