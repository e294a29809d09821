/// The state of the pieces in which one file is uploaded. A piece is accepted completely or not at all, so an interrupted upload resumes at
/// the end of the last complete piece. Performs no IO.
struct PieceSequence {
    /// Maximum size of a piece in bytes.
    static let largest: Int64 = 4 << 20

    /// Identifies one attempt to send a piece.
    struct Attempt: Equatable {
        fileprivate let number: Int
    }

    enum Beginning: Equatable {
        case accepted(Attempt)
        /// The piece has another offset than the next one to receive, which is `at`.
        case elsewhere(at: Int64)
        /// The piece is empty, longer than `largest`, or longer than the rest of the file.
        case wrongLength
    }

    /// Size of the file in bytes.
    let size: Int64
    /// Offset of the next piece.
    private(set) var at: Int64 = 0
    /// The attempt in progress, its announced length, and the number of bytes received so far; `nil` if there is none.
    private var current: (attempt: Attempt, length: Int64, received: Int64)?
    private var lastNumber = 0

    init(size: Int64) { self.size = size }

    var isComplete: Bool { at == size }

    /// Begins an attempt to receive a piece. Replaces an attempt in progress, because a client repeats a piece only after it has given up
    /// the earlier request.
    mutating func begin(at offset: Int64, length: Int64) -> Beginning {
        guard offset == at else { return .elsewhere(at: at) }
        guard (1...Self.largest).contains(length), length <= size - at else { return .wrongLength }
        lastNumber += 1
        let attempt = Attempt(number: lastNumber)
        current = (attempt, length, 0)
        return .accepted(attempt)
    }

    /// Counts bytes of an attempt before they are written.
    /// - Returns: `false` if a later attempt replaced this one, or if the piece has more bytes than announced.
    mutating func receive(_ count: Int64, of attempt: Attempt) -> Bool {
        guard let piece = current, piece.attempt == attempt, count <= piece.length - piece.received else { return false }
        current?.received += count
        return true
    }

    /// Ends an attempt.
    /// - Returns: the offset of the next piece; `nil` if a later attempt replaced this one, or if bytes are missing. The client then has to
    ///   send the piece again.
    mutating func complete(_ attempt: Attempt) -> Int64? {
        guard let piece = current, piece.attempt == attempt, piece.received == piece.length else { return nil }
        at += piece.length
        current = nil
        return at
    }
}
