import NIOCore

/// The lines of a stream that rows of the outbox came in, and those of which are still to be told. Rows that follow each other and came in
/// lines that do are one run.
struct RowLines: Sendable {
    /// Runs whose lines are known, at most: beyond, a row has no line.
    static let runLimit = 100_000

    private struct Run {
        var first: Int64
        var line: Int
        var count: Int

        var end: Int64 { first + Int64(count) }
    }

    /// The rows of a line: one for each peer.
    private let rowsPerLine: Int
    /// The runs of new rows, ascending.
    private var runs: CircularBuffer<Run> = []
    /// The runs of rows to report, in the order they were taken in.
    private var untold: CircularBuffer<Run> = []
    /// The rows of the first of `untold` that were reported.
    private var toldOfFirst = 0

    init(rowsPerLine: Int) { self.rowsPerLine = rowsPerLine }

    mutating func add(_ row: Int64, line: Int) {
        // A row of an earlier run, which the same key brought up, lies before them and has no line.
        if runs.last.map({ $0.end <= row }) ?? true, runs.count < Self.runLimit { Self.append(row, line, rowsPerLine, to: &runs) }
    }

    mutating func tell(_ row: Int64, line: Int) { Self.append(row, line, rowsPerLine, to: &untold) }

    private static func append(_ row: Int64, _ line: Int, _ rowsPerLine: Int, to runs: inout CircularBuffer<Run>) {
        if let last = runs.last, row == last.end, line == last.line + last.count / rowsPerLine {
            runs[runs.index(before: runs.endIndex)].count += 1
        } else {
            runs.append(Run(first: row, line: line, count: 1))
        }
    }

    /// The next rows to be told, at most so many, of one run.
    func nextUntold(_ limit: Int) -> [Int64] {
        guard let run = untold.first else { return [] }
        let first = run.first + Int64(toldOfFirst)
        return Array(first..<first + Int64(min(limit, run.count - toldOfFirst)))
    }

    /// Takes rows off those that are to be told.
    /// - Parameter count: of the rows `nextUntold` gave, from the first.
    /// - Returns: their lines.
    mutating func told(_ count: Int) -> [Int] {
        guard count > 0, let run = untold.first else { return [] }
        let lines = (toldOfFirst..<toldOfFirst + count).map { run.line + $0 / rowsPerLine }
        toldOfFirst += count
        if toldOfFirst == run.count {
            untold.removeFirst()
            toldOfFirst = 0
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
