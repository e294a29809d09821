import HexlistEnvelope
import HexlistModel
import HexlistWire

/// The envelopes in one peer's mailboxes that have no receipt yet.
struct PostedEnvelopes: Sendable, Equatable {
    /// Bounds for one peer on one route.
    static let maximumEnvelopes = 64
    static let maximumBytes = 32 << 20
    /// Maximum number of envelopes on all routes that are read from the store.
    private static let storedEnvelopes = 1_024
    /// Milliseconds after which a posting without a receipt is forgotten.
    private static let lifetime: Int64 = 60 * 86_400_000
    /// Milliseconds without a receipt after which rows are posted again: after the first, second, third and fourth post. The fifth
    /// is the last.
    private static let repetitions: [Int64] = [1, 3, 7, 14].map { $0 * 86_400_000 }

    struct Posting: Sendable, Equatable {
        var file: EnvelopeFileName
        /// The rows of the outbox, in the order of the frames.
        var rows: [ClosedRange<Int64>]
        var bytes: Int
        /// The number of times that the rows were posted, this one included.
        var posts: Int
        /// The number of the last frame for which a receipt arrived; 0 for none.
        var through: Int64 = 0
        /// The name of the route; empty in records of earlier versions, which had one route.
        var route = ""

        func isOn(_ route: String) -> Bool { self.route == route || self.route.isEmpty }

        var rowCount: Int { rows.reduce(0) { $0 + $1.count } }
    }

    private(set) var all: [Posting] = []

    /// The number of envelopes that may be added on a route.
    func room(on route: String) -> Int {
        let own = all.filter { $0.isOn(route) }
        guard own.reduce(0, { $0 + $1.bytes }) < Self.maximumBytes else { return 0 }
        return max(0, Self.maximumEnvelopes - own.count)
    }

    func hasRoom(on route: String) -> Bool { room(on: route) > 0 }

    /// The posting of a row.
    func posting(of row: Int64) -> Posting? { all.first { $0.rows.contains { $0.contains(row) } } }

    /// The last posted row; rows after it were not posted.
    var lastRow: Int64 { all.compactMap { $0.rows.last?.upperBound }.max() ?? 0 }

    mutating func add(_ posting: Posting) { all.append(posting) }

    mutating func remove(_ files: Set<EnvelopeFileName>) { all.removeAll { files.contains($0.file) } }

    /// Applies a receipt of the peer. Ignores a receipt that contradicts the posting, such as one for more rows than were posted.
    /// - Returns: the results of the rows that the receipt accepts or rejects.
    mutating func settle(_ envelope: Envelope.ID, _ receipt: Receipt) -> [RowResult] {
        guard let index = all.firstIndex(where: { $0.file.id == envelope }) else { return [] }
        let posting = all[index]
        let count = Int64(posting.rowCount)
        guard receipt.through > posting.through, receipt.through <= count else { return [] }
        var rejections: [Int64: HexRejection] = [:]
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

    /// The postings whose rows are to be posted again, unless their envelopes are still in the mailbox.
    func overdue(at now: Int64) -> [Posting] {
        all.filter { posting in
            posting.posts <= Self.repetitions.count && now - posting.file.postedAt >= Self.repetitions[posting.posts - 1]
        }
    }

    /// Removes the postings that are older than `lifetime`, and the overdue ones whose envelopes are no longer in the mailbox.
    /// - Parameter present: the overdue envelopes that are still in the mailbox, so that the peer may still read them.
    /// - Returns: the rows to be posted again, with the number of earlier posts.
    mutating func takeOverdue(at now: Int64, present: Set<EnvelopeFileName>) -> [(rows: [ClosedRange<Int64>], posts: Int)] {
        all.removeAll { now - $0.file.postedAt > Self.lifetime }
        let again = overdue(at: now).filter { !present.contains($0.file) }
        remove(Set(again.map(\.file)))
        return again.map { ($0.rows, $0.posts) }
    }

    // MARK: In the store

    /// The stored form, one line for each posting: `FILE BYTES POSTS THROUGH FIRST-LAST,… ROUTE`.
    var text: String {
        all.map { posting in
            let rows = posting.rows.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
            return
                "\(posting.file) \(posting.bytes) \(posting.posts) \(posting.through) \(rows)\(posting.route.isEmpty ? "" : " \(posting.route)")"
        }.joined(separator: "\n")
    }

    init() {}

    /// Parses `text`. Ignores lines that have another form or impossible values.
    init(text: String) {
        all = text.split(separator: "\n").prefix(Self.storedEnvelopes).compactMap { line in
            let words = line.split(separator: " ")
            guard (5...6).contains(words.count), let file = EnvelopeFileName(String(words[0])), let bytes = Int(words[1]),
                (0...Envelope.sizes.upperBound).contains(bytes), let posts = Int(words[2]),
                (1...Self.repetitions.count + 1).contains(posts),
                let through = Int64(words[3])
            else { return nil }
            var rows: [ClosedRange<Int64>] = []
            for range in words[4].split(separator: ",") {
                let ends = range.split(separator: "-").compactMap { Int64($0) }
                guard ends.count == 2, ends[0] <= ends[1], ends[1] - ends[0] < 1 << 20 else { return nil }
                rows.append(ends[0]...ends[1])
            }
            let count = rows.reduce(0) { $0 + $1.count }
            guard count <= LetterContents.frameLimit, (0...Int64(count)).contains(through) else { return nil }
            return Posting(
                file: file, rows: rows, bytes: bytes, posts: posts, through: through, route: words.count > 5 ? String(words[5]) : "")
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
