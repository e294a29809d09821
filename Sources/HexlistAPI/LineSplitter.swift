#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Takes a stream of bytes apart into lines as they arrive. Keeps one line at most, and no more of it than `limit`.
///
/// A line ends with `\n`; a `\r` before it stays, as white space at the end of JSON. The last line needs no end.
public struct LineSplitter: Sendable {
    /// Bytes of one line.
    public let limit: Int
    /// Lines so far, blank ones too.
    public private(set) var count = 0
    private var pending: [UInt8] = []
    private var isTooLong = false

    public init(limit: Int) { self.limit = limit }

    /// Calls `body` with each line these bytes complete: its number, from 1, and its bytes, `nil` where it is longer than `limit`.
    public mutating func feed(_ bytes: [UInt8], _ body: (_ number: Int, _ line: [UInt8]?) throws -> Void) rethrows {
        try bytes.withUnsafeBytes { try feed($0, body) }
    }

    public mutating func feed(
        _ bytes: UnsafeRawBufferPointer, _ body: (_ number: Int, _ line: [UInt8]?) throws -> Void
    ) rethrows {
        var start = 0
        while let end = bytes.lineEnd(from: start) {
            add(bytes[start..<end])
            try handOut(body)
            start = end + 1
        }
        add(bytes[start...])
    }

    /// The last line, where it has no end.
    public mutating func finish(_ body: (_ number: Int, _ line: [UInt8]?) throws -> Void) rethrows {
        if isTooLong || !pending.isEmpty { try handOut(body) }
    }

    private mutating func add(_ bytes: Slice<UnsafeRawBufferPointer>) {
        guard !isTooLong, !bytes.isEmpty else { return }
        if pending.count + bytes.count <= limit {
            pending.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes))
        } else {
            isTooLong = true
            pending = []
        }
    }

    private mutating func handOut(_ body: (_ number: Int, _ line: [UInt8]?) throws -> Void) rethrows {
        count += 1
        let line = isTooLong ? nil : pending
        pending = []
        isTooLong = false
        try body(count, line)
    }
}

extension UnsafeRawBufferPointer {
    /// The offset of the first `\n` at or behind `start`.
    func lineEnd(from start: Int) -> Int? {
        guard let base = baseAddress, start < count else { return nil }
        return memchr(base + start, Int32(UInt8(ascii: "\n")), count - start).map { base.distance(to: UnsafeRawPointer($0)) }
    }
}
