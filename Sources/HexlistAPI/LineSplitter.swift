#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Splits a stream into lines as it arrives. Buffers at most one line, up to `limit` bytes of it.
///
/// A line ends with `\n`. A `\r` before that is part of the line, because JSON allows white space at the end. The last line may have no
/// line end.
public struct LineSplitter: Sendable {
    /// Maximum bytes of a line.
    public let limit: Int
    /// The number of lines so far, including blank ones.
    public private(set) var count = 0
    private var pending: [UInt8] = []
    private var isTooLong = false

    public init(limit: Int) { self.limit = limit }

    /// Calls `body` with each completed line: its number, from 1, and its bytes, or `nil` if it is longer than `limit`.
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

    /// Returns the lines that these bytes complete, with the same values that `feed` passes to its `body`.
    public mutating func lines(_ bytes: UnsafeRawBufferPointer) -> [(number: Int, line: [UInt8]?)] {
        var lines: [(number: Int, line: [UInt8]?)] = []
        feed(bytes) { lines.append(($0, $1)) }
        return lines
    }

    /// Returns the last line, at the end of the stream, if it has no line end; otherwise an empty array.
    public mutating func lastLine() -> [(number: Int, line: [UInt8]?)] {
        var lines: [(number: Int, line: [UInt8]?)] = []
        finish { lines.append(($0, $1)) }
        return lines
    }

    /// Calls `body` with the last line, at the end of the stream, if it has no line end.
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
    /// Returns the offset of the first `\n` at or after `start`; `nil` if there is none.
    func lineEnd(from start: Int) -> Int? {
        guard let base = baseAddress, start < count else { return nil }
        return memchr(base + start, Int32(UInt8(ascii: "\n")), count - start).map { base.distance(to: UnsafeRawPointer($0)) }
    }
}
