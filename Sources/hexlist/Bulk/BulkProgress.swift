import HexlistAPI

/// Calculates the progress line of a bulk send: number of rows, rate, and estimated remaining time.
struct BulkProgress {
    /// Number of samples used for the rate: about 10 s at two updates per second.
    private static let samples = 20

    private let wait: SendWaitGoal
    private var recent: [(seconds: Double, done: Int)] = [(0, 0)]
    private(set) var summary = BulkSummary()

    init(wait: SendWaitGoal) { self.wait = wait }

    mutating func update(_ summary: BulkSummary) {
        self.summary = summary
        guard summary.seconds > (recent.last?.seconds ?? 0) else { return }
        recent.append((summary.seconds, done))
        if recent.count > Self.samples { recent.removeFirst() }
    }

    /// The number of rows that have reached the state that the user waits for.
    private var done: Int {
        switch wait {
        case .queued: summary.accepted
        case .stored: summary.accepted - summary.queued
        }
    }

    /// The average number of rows per second over the recent samples.
    var rate: Double {
        guard let first = recent.first, let last = recent.last, last.seconds > first.seconds else { return 0 }
        return Double(max(0, last.done - first.done)) / (last.seconds - first.seconds)
    }

    /// Returns the estimated total number of rows; `nil` if the size of the input is unknown.
    func total(_ position: BulkInput.Position) -> Int? {
        if summary.ended { return summary.accepted }
        guard let size = position.size ?? (position.isAtEnd ? position.bytes : nil), position.bytes > 0 else { return nil }
        let valid = summary.lines - summary.invalid
        guard valid > 0, summary.lines > 0 else { return nil }
        // Extrapolates from the lines read so far, and assumes the same share of valid lines in the rest.
        let lines = Double(position.lines) * Double(max(size, position.bytes)) / Double(position.bytes)
        let rowsPerLine = max(1, (Double(summary.accepted) / Double(valid)).rounded(.up))
        return Int(lines * Double(valid) / Double(summary.lines) * rowsPerLine)
    }

    /// Returns the estimated seconds until the send is complete; `nil` if there is no estimate.
    func timeLeft(_ position: BulkInput.Position) -> Int? {
        guard let total = total(position), rate > 0 else { return nil }
        return Int((Double(max(0, total - done)) / rate).rounded(.up))
    }

    func text(_ position: BulkInput.Position) -> String {
        var parts = [wait == .queued ? "\(done) queued" : "\(done) delivered"]
        if wait == .stored, summary.queued > 0 { parts.append("\(summary.queued) waiting") }
        if summary.invalid > 0 { parts.append(HumanText.count(summary.invalid, "bad line", "bad lines")) }
        parts.append("\(Int(rate.rounded()))/s")
        if let left = timeLeft(position) { parts.append("\(HumanText.span(seconds: left)) left") }
        return parts.joined(separator: ", ")
    }
}
