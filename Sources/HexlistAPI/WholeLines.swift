/// Cuts a stream into pieces that end where a line ends, so that it can be stopped at any piece and no line is half sent.
///
/// A line longer than `limit` is let through in parts, as it will be refused whole or not.
public struct WholeLines: Sendable {
    private let limit: Int
    private var rest: [UInt8] = []
    /// Line ends let through so far.
    public private(set) var lines = 0

    /// - Parameter limit: bytes kept back at most, in the hope of a line end.
    public init(limit: Int) { self.limit = limit }

    /// What can be sent of all that came so far; may be empty.
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

    /// The last line, where it has no end.
    public mutating func finish() -> [UInt8] {
        if !rest.isEmpty { lines += 1 }
        defer { rest = [] }
        return rest
    }
}
