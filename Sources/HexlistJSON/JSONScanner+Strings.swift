/// A scanned string.
public struct StringToken {
    /// The position of the closing quote.
    public let end: Int
    /// Whether the string's text differs from its bytes.
    public let hasEscapes: Bool

    @inlinable
    public init(end: Int, hasEscapes: Bool) {
        self.end = end
        self.hasEscapes = hasEscapes
    }
}

extension JSONScanner {
    /// Checks a string: escapes, control characters, UTF-8.
    /// - Parameter start: the position after the opening quote.
    @inlinable @inline(__always)
    public func string(from start: Int) throws(GrammarFault) -> StringToken {
        let position = plainRun(from: start)
        if byte(position) == UInt8(ascii: "\"") { return StringToken(end: position, hasEscapes: false) }
        return try oddString(from: position)
    }

    /// The first position from `start` on with a quote, a backslash, a control character or a byte beyond ASCII; `end` if there is none.
    @inlinable @inline(__always)
    public func plainRun(from start: Int) -> Int {
        guard let marks else { return unmarkedRun(from: start) }
        var position = start
        while true {
            // The marks of 57 bytes at least. After the last byte all is marked.
            let odd = UInt64(littleEndian: marks.loadUnaligned(fromByteOffset: position &>> 3, as: UInt64.self)) &>> UInt64(position & 7)
            if odd != 0 { return position &+ odd.trailingZeroBitCount }
            position = position & ~7 &+ 64
        }
    }

    @usableFromInline @inline(never)
    func unmarkedRun(from start: Int) -> Int {
        var position = start
        while position &+ 16 <= end {
            let chunk = UnsafeRawPointer(base + position).loadUnaligned(as: SIMD16<Int8>.self)
            // Flipping bit 1 makes the quote 0x20 and leaves the control characters under it, with space and `!` above; bytes
            // over 0x7F are negative. Each vector is spelled out: with a scalar, or a type to infer, on one side Swift
            // compares lane by lane, ten times slower.
            let flipped = chunk ^ SIMD16<Int8>(repeating: 2)
            let odd = (flipped .<= SIMD16<Int8>(repeating: 0x20)) .| (chunk .== SIMD16<Int8>(repeating: 0x5C))
            let words = unsafeBitCast(odd, to: SIMD2<UInt64>.self)
            let low = UInt64(littleEndian: words[0])
            let high = UInt64(littleEndian: words[1])
            // Bytes of 0 and 0xFF only, so the sum is 0 where both are. An `or` becomes a slower comparison of vectors.
            if low &+ high != 0 {
                // Without a branch on which half it is, which nothing predicts: 64 bits of zeros are followed by those of the other half.
                let zeros = low.trailingZeroBitCount
                return position &+ (zeros &+ high.trailingZeroBitCount & (0 &- zeros &>> 6)) &>> 3
            }
            position &+= 16
        }
        return plainTail(from: position)
    }

    /// The first such position among the last 15 bytes.
    @usableFromInline @inline(never)
    func plainTail(from start: Int) -> Int {
        var position = start
        while position < end, Self.isPlain(base[position]) { position &+= 1 }
        return position
    }

    @inlinable @inline(__always)
    static func isPlain(_ byte: UInt8) -> Bool {
        byte &- 0x20 < 0x60 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    /// Checks the rest of a string.
    /// - Parameter start: the first byte that is not plain.
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

    /// - Parameter start: the position of a backslash.
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

    /// Checks one UTF-8 sequence of two to four bytes: no overlong form, no surrogate, nothing above U+10FFFF.
    /// - Returns: the position after it.
    @inlinable @inline(__always)
    func multibyte(at start: Int) throws(GrammarFault) -> Int {
        let first = base[start]
        let second = byte(start &+ 1)
        switch first {
        case 0xC2...0xDF:
            if isContinuation(second) { return start &+ 2 }
        case 0xE0...0xEF:
            let least: UInt8 = first == 0xE0 ? 0xA0 : 0x80
            let most: UInt8 = first == 0xED ? 0x9F : 0xBF
            if second >= least, second <= most, isContinuation(byte(start &+ 2)) { return start &+ 3 }
        case 0xF0...0xF4:
            let least: UInt8 = first == 0xF0 ? 0x90 : 0x80
            let most: UInt8 = first == 0xF4 ? 0x8F : 0xBF
            if second >= least, second <= most, isContinuation(byte(start &+ 2)), isContinuation(byte(start &+ 3)) { return start &+ 4 }
        default:
            break
        }
        throw GrammarFault(reason: .utf8, offset: start)
    }

    /// The four digits of a `\u`, inside the bytes; more than 0xFFFF if they are no digits.
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

// MARK: - Whole numbers

extension JSONScanner {
    /// A scanned number that is written as an integer, clamped to the range of `Int64`; `nil` for a fraction or an exponent.
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

    /// A frame's number by T21: an integer 1 … 2^63 - 1 written in digits; `nil` for any other value of any kind.
    /// - Returns: the number and the position after it.
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
