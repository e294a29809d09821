/// The fuzzer's bytes, taken from the front; zeros after their end.
struct FuzzInput {
    private var rest: ArraySlice<UInt8>

    init(_ data: UnsafePointer<UInt8>?, _ count: Int) {
        rest = ArraySlice(data.map { [UInt8](UnsafeBufferPointer(start: $0, count: count)) } ?? [])
    }

    var isAtEnd: Bool { rest.isEmpty }
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }
    mutating func flag() -> Bool { byte() & 1 == 1 }
    mutating func word() -> UInt16 { UInt16(byte()) << 8 | UInt16(byte()) }

    /// As many bytes as the next one says, or as there are left.
    mutating func bytes() -> [UInt8] { bytes(Int(byte())) }

    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// The next bytes as the text that a lenient reader makes of them.
    mutating func text() -> String { String(decoding: bytes(), as: UTF8.self) }
    mutating func all() -> [UInt8] { bytes(rest.count) }
}
