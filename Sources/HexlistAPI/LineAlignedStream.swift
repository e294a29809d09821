/// Regroups a stream of bytes into chunks that end at line ends, so that the receiver has no partial line if sending stops after a chunk.
///
/// A line longer than `limit` is split into several chunks, because the receiver refuses it anyway.
public struct LineAlignedStream: Sendable {
    private let limit: Int
    private var rest: [UInt8] = []
    /// The number of line ends in the bytes added so far.
    public private(set) var lines = 0

    /// - Parameter limit: maximum number of bytes that are buffered until a line end arrives.
    public init(limit: Int) { self.limit = limit }

    /// Adds a chunk. Returns the bytes that can be sent now, possibly none.
    public mutating func feed(_ piece: [UInt8]) -> [UInt8] {
        let (count, end) = piece.withUnsafeBytes { bytes in
            var count = 0
            var position = 0
            while let end = bytes.lineEnd(from: position) {
                position = end + 1
                count += 1
            }
            return (count, position)
        }
        lines += count
        if end == 0, rest.count + piece.count <= limit {
            rest += piece
            return []
        }
        let cut = end == 0 ? piece.count : end
        defer { rest = Array(piece[cut...]) }
        return rest.isEmpty && cut == piece.count ? piece : rest + piece[..<cut]
    }

    /// Returns the bytes after the last line end, at the end of the stream; empty if there are none.
    public mutating func finish() -> [UInt8] {
        if !rest.isEmpty { lines += 1 }
        defer { rest = [] }
        return rest
    }
}
