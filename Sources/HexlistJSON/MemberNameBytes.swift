/// The bytes of a member's name, without escapes. Names are equal if their bytes are equal.
public struct MemberNameBytes {
    public let start: UnsafeRawPointer
    public let count: Int

    @inlinable
    public init(start: UnsafeRawPointer, count: Int) {
        self.start = start
        self.count = count
    }

    /// - Parameter name: the name to compare with. Callers first switch on `count`, so it has the same length.
    @inlinable @inline(__always)
    public func equals(_ name: StaticString) -> Bool {
        let other = UnsafeRawPointer(name.utf8Start)
        let length = name.utf8CodeUnitCount
        guard count == length else { return false }
        // Compares with overlapping loads inside the name and a single branch.
        if length > 16, length <= 24 {
            return differs(UInt64.self, other, 0) | differs(UInt64.self, other, 8) | differs(UInt64.self, other, length &- 8) == 0
        }
        if length >= 8, length <= 16 { return differs(UInt64.self, other, 0) | differs(UInt64.self, other, length &- 8) == 0 }
        if length >= 4, length < 8 { return differs(UInt32.self, other, 0) | differs(UInt32.self, other, length &- 4) == 0 }
        for index in 0..<length where differs(UInt8.self, other, index) != 0 { return false }
        return true
    }

    @inlinable @inline(__always)
    func differs<Word: FixedWidthInteger & BitwiseCopyable>(_: Word.Type, _ other: UnsafeRawPointer, _ offset: Int) -> Word {
        start.loadUnaligned(fromByteOffset: offset, as: Word.self) ^ other.loadUnaligned(fromByteOffset: offset, as: Word.self)
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes are exactly the given name.
    @inlinable @inline(__always)
    public func equals(_ name: StaticString) -> Bool {
        guard count == name.utf8CodeUnitCount, let start = baseAddress else { return false }
        return MemberNameBytes(start: start, count: count).equals(name)
    }
}
