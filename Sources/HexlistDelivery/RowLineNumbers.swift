import NIOCore

/// The line numbers of a stream's rows, and a queue of those rows whose results are not reported yet. Consecutive rows of consecutive lines
/// are stored together as one run.
struct RowLineNumbers: Sendable {
    /// Maximum number of runs in `runs`. Rows after that have no line number.
    static let runLimit = 100_000

    private struct Run {
        var first: Int64
        var line: Int
        var count: Int

        var end: Int64 { first + Int64(count) }
    }

    /// The number of rows that each line has: one for each peer.
    private let rowsPerLine: Int
    /// The rows that this stream queued, with their lines, in ascending order.
    private var runs: CircularBuffer<Run> = []
    /// The rows to report, in the order in which they were accepted.
    private var unreported: CircularBuffer<Run> = []
    /// The number of rows in the first run of `unreported` that were reported already.
    private var reportedOfFirst = 0

    init(rowsPerLine: Int) { self.rowsPerLine = rowsPerLine }

    mutating func add(_ row: Int64, line: Int) {
        // A row that was queued by an earlier send with the same idempotency key has a lower id. Its line is not recorded.
        if runs.last.map({ $0.end <= row }) ?? true, runs.count < Self.runLimit { Self.append(row, line, rowsPerLine, to: &runs) }
    }

    /// Adds a row whose result is to be reported.
    mutating func addUnreported(_ row: Int64, line: Int) { Self.append(row, line, rowsPerLine, to: &unreported) }

    private static func append(_ row: Int64, _ line: Int, _ rowsPerLine: Int, to runs: inout CircularBuffer<Run>) {
        if let last = runs.last, row == last.end, line == last.line + last.count / rowsPerLine {
            runs[runs.index(before: runs.endIndex)].count += 1
        } else {
            runs.append(Run(first: row, line: line, count: 1))
        }
    }

    /// Returns the next rows to report, all of one run.
    /// - Parameter limit: maximum number of rows.
    func nextUnreported(_ limit: Int) -> [Int64] {
        guard let run = unreported.first else { return [] }
        let first = run.first + Int64(reportedOfFirst)
        return Array(first..<first + Int64(min(limit, run.count - reportedOfFirst)))
    }

    /// Removes the first `count` rows returned by `nextUnreported`.
    /// - Returns: the line numbers of these rows.
    mutating func markReported(_ count: Int) -> [Int] {
        guard count > 0, let run = unreported.first else { return [] }
        let lines = (reportedOfFirst..<reportedOfFirst + count).map { run.line + $0 / rowsPerLine }
        reportedOfFirst += count
        if reportedOfFirst == run.count {
            unreported.removeFirst()
            reportedOfFirst = 0
        }
        return lines
    }

    /// The line number of a row; `nil` if it is not recorded.
    func line(of row: Int64) -> Int? {
        var low = 0
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if runs[offset: middle].first <= row { low = middle + 1 } else { high = middle }
        }
        guard low > 0, case let run = runs[offset: low - 1], row < run.end else { return nil }
        return run.line + Int(row - run.first) / rowsPerLine
    }
}
