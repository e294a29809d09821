import HexlistEnvelope
import HexlistModel
import HexlistWire

/// The envelopes in one peer's mailbox that have no receipt yet.
struct PostedEnvelopes: Sendable, Equatable {
    /// Bounds for one peer.
    static let maximumEnvelopes = 64
    static let maximumBytes = 32 << 20
    /// Milliseconds after which a posting without a receipt is forgotten.
    private static let lifetime: Int64 = 60 * 86_400_000
    /// Milliseconds without a receipt after which a row is posted again, by the number of earlier posts. A fifth post is the last.
    private static let repetitions: [Int64] = [1, 3, 7, 14].map { $0 * 86_400_000 }

    struct Posting: Sendable, Equatable {
        var file: EnvelopeFileName
        /// The rows of the outbox, in the order of the frames.
        var rows: [ClosedRange<Int64>]
        var bytes: Int
        /// The number of times that the rows were posted, this one included.
        var posts: Int
        /// The number of the last frame with a result.
        var through: Int64 = 0

        var rowCount: Int { rows.reduce(0) { $0 + $1.count } }
    }

    private(set) var all: [Posting] = []

    var isFull: Bool { all.count >= Self.maximumEnvelopes || all.reduce(0) { $0 + $1.bytes } >= Self.maximumBytes }

    /// The last posted row; rows after it were not posted.
    var lastRow: Int64 { all.compactMap { $0.rows.last?.upperBound }.max() ?? 0 }

    mutating func add(_ posting: Posting) { all.append(posting) }

    /// Applies a receipt of the peer. An impossible one is ignored.
    /// - Returns: the results of rows.
    mutating func settle(_ envelope: Envelope.ID, _ receipt: Receipt) -> [RowResult] {
        guard let index = all.firstIndex(where: { $0.file.id == envelope }) else { return [] }
        let posting = all[index]
        let count = Int64(posting.rowCount)
        guard receipt.through > posting.through, receipt.through <= count else { return [] }
        var rejections: [Int64: Rejection] = [:]
        for rejection in receipt.rejected {
            guard rejection.sequence > posting.through, rejection.sequence <= receipt.through, !rejection.code.isTemporary,
                rejections.updateValue(rejection, forKey: rejection.sequence) == nil
            else { return [] }
        }
        let rows = Array(posting.rows.joined())
        var results: [RowResult] = []
        for number in posting.through + 1...receipt.through {
            let row = rows[Int(number) - 1]
            if let rejection = rejections[number] {
                results.append(RowResult(id: row, .refused(rejection.code, message: rejection.message)))
            } else {
                guard let status = receipt.status else { return [] }
                results.append(RowResult(id: row, DeliveryResult(status, of: receipt.of)))
            }
        }
        all[index].through = receipt.through
        if receipt.through == count { all.remove(at: index) }
        return results
    }

    /// Removes the postings that are too old, and those whose rows are to be posted again.
    /// - Parameter isThere: whether an envelope's file is still in the mailbox, so that the peer may still read it.
    /// - Returns: the rows to be posted again, with the number of earlier posts.
    mutating func due(at now: Int64, isThere: (EnvelopeFileName) -> Bool) -> [(rows: [ClosedRange<Int64>], posts: Int)] {
        var again: [(rows: [ClosedRange<Int64>], posts: Int)] = []
        all.removeAll { posting in
            let age = now - posting.file.postedAt
            if age > Self.lifetime { return true }
            guard posting.posts <= Self.repetitions.count, age >= Self.repetitions[posting.posts - 1], !isThere(posting.file) else {
                return false
            }
            again.append((posting.rows, posting.posts))
            return true
        }
        return again
    }

    // MARK: In the store

    /// One line for each posting: `FILE BYTES POSTS THROUGH FIRST-LAST,…`.
    var text: String {
        all.map { posting in
            let rows = posting.rows.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
            return "\(posting.file) \(posting.bytes) \(posting.posts) \(posting.through) \(rows)"
        }.joined(separator: "\n")
    }

    init() {}

    /// Reads `text`. Lines of another form are left out.
    init(text: String) {
        all = text.split(separator: "\n").prefix(Self.maximumEnvelopes).compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 5, let file = EnvelopeFileName(String(words[0])), let bytes = Int(words[1]), let posts = Int(words[2]),
                posts >= 1, let through = Int64(words[3])
            else { return nil }
            var rows: [ClosedRange<Int64>] = []
            for range in words[4].split(separator: ",") {
                let ends = range.split(separator: "-").compactMap { Int64($0) }
                guard ends.count == 2, ends[0] <= ends[1], ends[1] - ends[0] < 1 << 20 else { return nil }
                rows.append(ends[0]...ends[1])
            }
            return Posting(file: file, rows: rows, bytes: bytes, posts: posts, through: through)
        }
    }
}

extension [ClosedRange<Int64>] {
    /// Appends a row. If it directly follows the last range, that range is extended.
    mutating func append(row: Int64) {
        if let last, last.upperBound + 1 == row {
            self[count - 1] = last.lowerBound...row
        } else {
            append(row...row)
        }
    }
}
