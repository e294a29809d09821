/// The state of the pieces in which one file is uploaded. A piece begins at the end of the received bytes, so an interrupted upload resumes
/// there. Performs no IO.
struct PieceSequence {
    /// Identifies one attempt to send a piece.
    struct Attempt: Equatable {
        fileprivate let number: Int
    }

    enum Beginning: Equatable {
        case accepted(Attempt)
        /// The piece has another offset than the next byte to receive, which is `at`.
        case elsewhere(at: Int64)
        /// The piece is empty, or longer than the rest of the file.
        case wrongLength
    }

    /// Size of the file in bytes.
    let size: Int64
    /// Offset of the next byte.
    private(set) var at: Int64 = 0
    /// The attempt in progress, the offset after the last byte of its piece, and the time when the client sent it; `nil` if there is none.
    private var current: (attempt: Attempt, end: Int64, sentAt: Int64)?
    private var lastNumber = 0

    init(size: Int64) { self.size = size }

    var isComplete: Bool { at == size }

    /// Begins an attempt to receive a piece. Replaces an attempt in progress, because a client sends a piece only after it has given up the
    /// earlier request.
    /// - Parameter sentAt: when the client sent the request, by the client's clock in milliseconds.
    mutating func begin(at offset: Int64, length: Int64, sentAt: Int64 = 0) -> Beginning {
        guard offset == at else { return .elsewhere(at: at) }
        guard length > 0, length <= size - at else { return .wrongLength }
        lastNumber += 1
        let attempt = Attempt(number: lastNumber)
        current = (attempt, at + length, sentAt)
        return .accepted(attempt)
    }

    /// Counts bytes of an attempt before they are written.
    /// - Returns: `false` if the attempt has ended, or if the piece has more bytes than announced.
    mutating func receive(_ count: Int64, of attempt: Attempt) -> Bool {
        guard let piece = current, piece.attempt == attempt, count <= piece.end - at else { return false }
        at += count
        return true
    }

    /// Ends the attempt in progress, unless it was sent after the request that asks for this. A network can deliver a request of a page late,
    /// when the reloaded page already sends the rest of the file.
    /// - Parameter time: when the client sent the request, by the client's clock in milliseconds.
    mutating func interrupt(sentAt time: Int64) {
        if let current, current.sentAt <= time { self.current = nil }
    }

    /// Ends the attempt in progress after an error.
    /// - Parameter end: the number of bytes in the file, which is the offset of the next byte.
    mutating func interrupt(at end: Int64) {
        current = nil
        at = end
    }
}
