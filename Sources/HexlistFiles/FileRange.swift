import HexlistModel

/// The byte range in a `Range` field of HTTP (RFC 9110, 14.1.2).
public enum FileRange: Hashable, Sendable, CustomStringConvertible {
    /// The bytes from the first offset through the second one, inclusive; to the end of the file if the second is `nil`.
    case from(Int64, through: Int64?)
    /// The last bytes of the file. The value is the number of bytes.
    case last(Int64)

    /// Parses a `Range` field. Returns `nil` if it is invalid, has several ranges, or has a unit other than bytes. The field is then
    /// ignored, and the whole file is sent. Numbers above `Int64.max` are clamped.
    public init?(_ field: some StringProtocol) {
        let text = Array(field.utf8)
        let unit = Array("bytes=".utf8)
        guard text.count <= 64, text.prefix(unit.count).map(ASCII.lowercased) == unit else { return nil }
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        var range = text[unit.count...].drop(while: isSpace)
        while let last = range.last, isSpace(last) { range = range.dropLast() }
        let ends = range.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2, ends.joined().allSatisfy(ASCII.isDigit) else { return nil }
        switch (ends[0].isEmpty, ends[1].isEmpty) {
        case (true, true): return nil
        case (true, false): self = .last(Self.number(ends[1]))
        case (false, true): self = .from(Self.number(ends[0]), through: nil)
        case (false, false):
            let (first, last) = (Self.number(ends[0]), Self.number(ends[1]))
            guard first <= last else { return nil }
            self = .from(first, through: last)
        }
    }

    /// Parses a number, clamped to `Int64.max`.
    /// - Parameter digits: ASCII digits only.
    static func number(_ digits: some Sequence<UInt8>) -> Int64 {
        var number: Int64 = 0
        for digit in digits {
            let (tens, isOver) = number.multipliedReportingOverflow(by: 10)
            let (sum, isMore) = tens.addingReportingOverflow(Int64(digit & 0x0F))
            if isOver || isMore { return .max }
            number = sum
        }
        return number
    }

    /// Returns the offsets that the range selects in a file of this size. `nil` if it selects nothing; the response then has status 416.
    public func bytes(ofSize size: Int64) -> Range<Int64>? {
        switch self {
        case .from(let first, let last):
            guard first < size else { return nil }
            return first..<min(size, last.map { $0 == .max ? .max : $0 + 1 } ?? size)
        case .last(let count):
            guard count > 0, size > 0 else { return nil }
            return max(0, size - count)..<size
        }
    }

    /// The value of a `Range` field, such as `bytes=2-4`.
    public var description: String {
        switch self {
        case .from(let first, let last): "bytes=\(first)-\(last.map(String.init) ?? "")"
        case .last(let count): "bytes=-\(count)"
        }
    }
}

/// The value of a `Content-Range` field (RFC 9110, 14.4).
public enum ContentRange: Hashable, Sendable, CustomStringConvertible {
    /// The bytes that are sent, at least one, and the size of the file, such as `bytes 2-4/10`.
    case bytes(Range<Int64>, of: Int64)
    /// The size of the file, in a response with status 416, such as `bytes */10`.
    case none(of: Int64)

    /// Parses an untrusted value. Returns `nil` for any other form, for an unknown size (`*`), and for inconsistent numbers.
    public init?(_ field: some StringProtocol) {
        let text = Array(field.utf8)
        let unit = Array("bytes ".utf8)
        guard text.count <= 80, text.prefix(unit.count).map(ASCII.lowercased) == unit else { return nil }
        let parts = text[unit.count...].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2, let size = Self.number(parts[1]) else { return nil }
        if parts[0].elementsEqual("*".utf8) {
            self = .none(of: size)
            return
        }
        let ends = parts[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last, last < size else {
            return nil
        }
        self = .bytes(first..<(last + 1), of: size)
    }

    /// Parses 1 to 18 digits; `nil` for anything else.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        (1...18).contains(digits.count) && digits.allSatisfy(ASCII.isDigit) ? FileRange.number(digits) : nil
    }

    public var description: String {
        switch self {
        case .bytes(let range, let size): "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
        case .none(let size): "bytes */\(size)"
        }
    }
}
