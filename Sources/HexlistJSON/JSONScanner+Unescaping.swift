// Replaces the escapes in scanned strings by their characters.
extension JSONScanner {
    /// Appends the text of a scanned string. Lone surrogates and U+0000 become U+FFFD (Docs/Protocol.md, rule T20).
    /// - Returns: whether a character was replaced by U+FFFD.
    public func appendText(_ start: Int, _ stop: Int, to text: inout [UInt8]) -> Bool {
        var wasRepaired = false
        unescape(start, stop, into: &text) { unit in
            guard unit == 0 || unit & 0xF800 == 0xD800 else { return unit }
            wasRepaired = true
            return 0xFFFD
        }
        return wasRepaired
    }

    /// Appends the text of a scanned string. Lone surrogates become U+FFFD.
    func appendString(_ start: Int, _ stop: Int, to text: inout [UInt8]) {
        unescape(start, stop, into: &text) { $0 & 0xF800 == 0xD800 ? 0xFFFD : $0 }
    }

    /// Appends a member's name, to be compared with other names. Lone surrogates are kept (as WTF-8), because replacing them would make
    /// different names equal.
    public func appendName(_ start: Int, _ stop: Int, to name: inout [UInt8]) {
        unescape(start, stop, into: &name) { $0 }
    }

    /// Appends a string without its escapes. The text is never longer than the source, so its length is sufficient as capacity.
    /// - Parameter lone: returns the replacement for an escaped UTF-16 unit that is not part of a surrogate pair.
    @inline(__always)
    private func unescape(_ start: Int, _ stop: Int, into text: inout [UInt8], lone: (UInt32) -> UInt32) {
        text.append(addingCapacity: stop &- start) { span in
            span.withUnsafeMutableBufferPointer { room, count in
                guard let room = room.baseAddress else { return }
                var output = UnescapedBuffer(next: room + count)
                unescape(start, stop, into: &output, lone: lone)
                count = output.next - room
            }
        }
    }

    @inline(__always)
    private func unescape(_ start: Int, _ stop: Int, into output: inout UnescapedBuffer, lone: (UInt32) -> UInt32) {
        var position = start
        while true {
            position = copyRun(position, stop, into: &output)
            guard position &+ 1 < stop else { return }
            let escape = base[position &+ 1]
            guard escape == UInt8(ascii: "u") else {
                output.append(Self.escaped(escape))
                position &+= 2
                continue
            }
            let unit = unit(at: position)
            position &+= 6
            if unit & 0xFC00 == 0xD800, position &+ 6 <= stop, base[position] == UInt8(ascii: "\\"),
                base[position &+ 1] == UInt8(ascii: "u")
            {
                let trail = self.unit(at: position)
                if trail & 0xFC00 == 0xDC00 {
                    position &+= 6
                    output.append(scalar: 0x1_0000 &+ (unit & 0x3FF) << 10 &+ (trail & 0x3FF))
                    continue
                }
            }
            output.append(scalar: lone(unit))
        }
    }

    /// Copies the bytes before the next backslash.
    /// - Returns: the position of the backslash, or `stop` if there is none.
    @inline(__always)
    private func copyRun(_ start: Int, _ stop: Int, into output: inout UnescapedBuffer) -> Int {
        var position = start
        while position &+ 16 <= stop {
            // Always copies 16 bytes. The bytes from a backslash on are overwritten later. The output is never longer than the source, so
            // it does not exceed the capacity.
            let chunk = UnsafeRawPointer(base + position).loadUnaligned(as: SIMD16<UInt8>.self)
            UnsafeMutableRawPointer(output.next).storeBytes(of: chunk, as: SIMD16<UInt8>.self)
            let words = unsafeBitCast(chunk .== SIMD16<UInt8>(repeating: 0x5C), to: SIMD2<UInt64>.self)
            let low = UInt64(littleEndian: words[0])
            let high = UInt64(littleEndian: words[1])
            if low | high != 0 {
                let run = (low != 0 ? low.trailingZeroBitCount : 64 &+ high.trailingZeroBitCount) &>> 3
                output.next += run
                return position &+ run
            }
            output.next += 16
            position &+= 16
        }
        while position < stop, base[position] != UInt8(ascii: "\\") {
            output.append(base[position])
            position &+= 1
        }
        return position
    }

    /// Returns the byte for the character that follows a backslash. `"`, `\` and `/` stand for themselves.
    @inline(__always)
    private static func escaped(_ character: UInt8) -> UInt8 {
        switch character {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: character
        }
    }
}

/// The memory to which a string is unescaped. The caller has reserved sufficient capacity.
private struct UnescapedBuffer {
    var next: UnsafeMutablePointer<UInt8>

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        next.initialize(to: byte)
        next += 1
    }

    /// - Parameter scalar: a code point below 0x11_0000. A surrogate is written as WTF-8.
    mutating func append(scalar: UInt32) {
        switch scalar {
        case ..<0x80:
            append(UInt8(truncatingIfNeeded: scalar))
        case ..<0x800:
            append(UInt8(truncatingIfNeeded: 0xC0 | scalar >> 6))
            append(continuation: scalar)
        case ..<0x1_0000:
            append(UInt8(truncatingIfNeeded: 0xE0 | scalar >> 12))
            append(continuation: scalar >> 6)
            append(continuation: scalar)
        default:
            append(UInt8(truncatingIfNeeded: 0xF0 | scalar >> 18))
            append(continuation: scalar >> 12)
            append(continuation: scalar >> 6)
            append(continuation: scalar)
        }
    }

    @inline(__always)
    private mutating func append(continuation bits: UInt32) { append(UInt8(truncatingIfNeeded: 0x80 | bits & 0x3F)) }
}
