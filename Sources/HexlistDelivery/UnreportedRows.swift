import NIOCore

/// Maps the outbox rows of a stream to the line numbers of its input, and queues the rows whose results are still to be reported.
/// Consecutive rows of consecutive lines are stored as one run.
struct UnreportedRows: Sendable {
    /// Maximum number of runs with known lines. Rows beyond have no line.
    static let runLimit = 100_000

    private struct Run {
        var first: Int64
        var line: Int
        var count: Int

        var end: Int64 { first + Int64(count) }
    }

    /// The number of rows of a line: one for each peer.
    private let rowsPerLine: Int
    /// The runs of rows that this stream queued, in ascending order.
    private var runs: CircularBuffer<Run> = []
    /// The runs of rows to report, in the order in which they were accepted.
    private var unreported: CircularBuffer<Run> = []
    /// The number of rows of the first run of `unreported` that were reported.
    private var reportedOfFirst = 0

    init(rowsPerLine: Int) { self.rowsPerLine = rowsPerLine }

    mutating func add(_ row: Int64, line: Int) {
        // A row that an earlier send with the same idempotency key queued has a lower id; its line is not recorded.
        if runs.last.map({ $0.end <= row }) ?? true, runs.count < Self.runLimit { Self.append(row, line, rowsPerLine, to: &runs) }
    }

    /// Adds a row to report.
    mutating func addUnreported(_ row: Int64, line: Int) { Self.append(row, line, rowsPerLine, to: &unreported) }

    private static func append(_ row: Int64, _ line: Int, _ rowsPerLine: Int, to runs: inout CircularBuffer<Run>) {
        if let last = runs.last, row == last.end, line == last.line + last.count / rowsPerLine {
            runs[runs.index(before: runs.endIndex)].count += 1
        } else {
            runs.append(Run(first: row, line: line, count: 1))
        }
    }

    /// The next rows to report, at most `limit`, all of one run.
    func nextUnreported(_ limit: Int) -> [Int64] {
        guard let run = unreported.first else { return [] }
        let first = run.first + Int64(reportedOfFirst)
        return Array(first..<first + Int64(min(limit, run.count - reportedOfFirst)))
    }

    /// Removes the first `count` rows returned by `nextUnreported`.
    /// - Returns: their lines.
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
