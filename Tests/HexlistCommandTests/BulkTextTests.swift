import HexlistAPI
import Testing

@testable import hexlist

@Suite("Progress of a bulk send")
struct BulkTextTests {
    private func position(lines: Int = 0, bytes: Int64 = 0, of size: Int64? = nil, isAtEnd: Bool = false) -> BulkInput.Position {
        BulkInput.Position(lines: lines, bytes: bytes, size: size, isAtEnd: isAtEnd)
    }

    private func progress(_ summaries: BulkSummary..., wait: SendWaitGoal = .stored) -> BulkProgress {
        var progress = BulkProgress(wait: wait)
        for summary in summaries { progress.update(summary) }
        return progress
    }

    @Test("the remaining time is estimated from the bytes of the file, and from the rows once the input has ended")
    func timeLeft() {
        // A tenth of the input is sent: 100 of 1 000 lines of equal length. 80 rows are delivered in 2 s.
        let half = progress(BulkSummary(lines: 100, accepted: 100, stored: 80, queued: 20, seconds: 2))
        #expect(half.rate == 40)
        #expect(half.total(position(lines: 100, bytes: 10_000, of: 100_000)) == 1_000)
        #expect(half.timeLeft(position(lines: 100, bytes: 10_000, of: 100_000)) == 23)
        // A pipe has an unknown length until it ends.
        #expect(half.timeLeft(position(lines: 100, bytes: 10_000)) == nil)
        #expect(half.timeLeft(position(lines: 200, bytes: 20_000, isAtEnd: true)) == 3)
        let ended = progress(BulkSummary(lines: 100, accepted: 100, stored: 80, queued: 20, seconds: 2, ended: true))
        #expect(ended.timeLeft(position(lines: 100, bytes: 10_000)) == 1)
    }

    @Test("bad lines and several peers are included")
    func total() {
        // Half the lines are bad; each good one goes to three peers.
        let progress = progress(BulkSummary(lines: 100, invalid: 50, accepted: 150, stored: 150, seconds: 1))
        #expect(progress.total(position(lines: 100, bytes: 1_000, of: 10_000)) == 1_500)
    }

    @Test("the rate is the recent one, and division by zero is avoided")
    func rate() {
        var progress = BulkProgress(wait: .stored)
        #expect(progress.rate == 0)
        #expect(progress.timeLeft(position(of: 100)) == nil)
        #expect(progress.timeLeft(position(lines: 1, bytes: 10, of: 100)) == nil)
        for second in 1...100 { progress.update(BulkSummary(lines: 1, accepted: 1_000_000, stored: 1_000, seconds: Double(second))) }
        #expect(progress.rate == 0)
        progress.update(BulkSummary(stored: 0, seconds: 50))  // out of order: ignored
        #expect(progress.rate == 0)
    }

    @Test("the line shows count, rate and duration")
    func text() {
        let summary = BulkSummary(lines: 120, invalid: 1, accepted: 119, stored: 99, queued: 20, seconds: 1)
        #expect(
            progress(summary).text(position(lines: 120, bytes: 10_000, of: 20_000))
                == "99 delivered, 20 waiting, 1 bad line, 99/s, 2 s left")
        #expect(progress(summary, wait: .queued).text(position(lines: 120, bytes: 10_000)) == "119 queued, 1 bad line, 119/s")
    }

    @Test(
        "the summary shows non-zero counts only",
        arguments: [
            (BulkSummary(), SendWaitGoal.stored, "The input contains no hexes."),
            (BulkSummary(lines: 1, accepted: 1, stored: 1, seconds: 0.25), .stored, "1 hex: 1 stored; 0.3 s, 4/s"),
            (
                BulkSummary(lines: 9, accepted: 9, stored: 9, earlier: 7), .stored,
                "9 hexes: 9 stored; 7 of them already sent with the same key"
            ),
            (
                BulkSummary(lines: 9, invalid: 1, accepted: 8, stored: 5, held: 0, rejected: 1, failed: 1, queued: 1, seconds: 2), .stored,
                "9 hexes: 5 stored, 1 refused, 1 failed, 1 waiting, 1 not valid; 2.0 s, 4/s"
            ),
            (BulkSummary(lines: 2, accepted: 2, queued: 2, seconds: 1), .queued, "2 hexes: 2 queued; 1.0 s, 2/s"),
        ])
    func summary(summary: BulkSummary, wait: SendWaitGoal, text: String) { #expect(BulkText.summary(summary, wait: wait) == text) }

    @Test("rows that still wait come with a command to follow them; `--no-wait` does not")
    func hint() {
        let summary = BulkSummary(lines: 2, accepted: 2, queued: 2, seconds: 1)
        #expect(BulkText.hint(summary, wait: .queued, to: ["ada"]) == nil)
        #expect(BulkText.hint(BulkSummary(lines: 1, accepted: 1, stored: 1), wait: .stored, to: ["ada"]) == nil)
        #expect(BulkText.hint(summary, wait: .stored, to: ["Ada's"])?.contains(#"`hexlist outbox list --to 'Ada'\''s'`"#) == true)
        for peers in [["a", "b"], ["@team"]] {
            #expect(BulkText.hint(summary, wait: .stored, to: peers)?.contains("`hexlist outbox list`") == true)
        }
    }
}
