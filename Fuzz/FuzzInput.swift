/// Reads values from the front of the fuzzer's input; zeros after its end.
struct FuzzInput {
    private var rest: ArraySlice<UInt8>

    init(_ data: UnsafePointer<UInt8>?, _ count: Int) {
        rest = ArraySlice(data.map { [UInt8](UnsafeBufferPointer(start: $0, count: count)) } ?? [])
    }

    var isAtEnd: Bool { rest.isEmpty }
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }
    mutating func flag() -> Bool { byte() & 1 == 1 }
    mutating func word() -> UInt16 { UInt16(byte()) << 8 | UInt16(byte()) }

    /// A number of bytes given by the next byte, or all that are left.
    mutating func bytes() -> [UInt8] { bytes(Int(byte())) }

    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// The next bytes as text, decoded leniently.
    mutating func text() -> String { String(decoding: bytes(), as: UTF8.self) }
    mutating func all() -> [UInt8] { bytes(rest.count) }
}
