import Glibc
import HexlistAPI
import HexlistModel
import Synchronization

/// The report of a bulk send to the person or script that runs it. Used from several tasks.
final class BulkReport: Sendable {
    /// The number of lines and rows that are reported one by one to a person; of further ones only the number.
    private static let toldLimit = 20

    private struct State {
        let output: Output
        let terminal = Terminal(descriptor: STDERR_FILENO)
        var progress: BulkProgress
        var told = 0
        var untold = 0
        /// The columns of the progress line now on the terminal; 0 for none.
        var shownColumns = 0
        var summary: BulkSummary?
        var error: HexlistError?
    }

    private let state: Mutex<State>
    private let wait: SendWait
    private let to: [String]

    /// - Parameter to: the PEER arguments, for the hint how to follow waiting rows.
    init(json: Bool, wait: SendWait, to: [String]) {
        state = Mutex(State(output: Output(json: json), progress: BulkProgress(wait: wait)))
        self.wait = wait
        self.to = to
    }

    /// Reports a line of the reply.
    /// - Throws: an error if standard output is closed.
    func take(_ line: BulkLine, at position: BulkInput.Position) throws {
        try state.withLock { state in
            switch line {
            case .refused(let refusal): tell(&state) { "line \(refusal.line): \(refusal.code): \(refusal.message)" }
            case .warning(let warning): tell(&state) { "line \(warning.line): \(warning.warning)" }
            case .outcome(let outcome): tell(outcome, &state)
            case .progress(let summary):
                state.progress.update(summary)
                if !state.output.json { show(&state, state.progress.text(position)) }
            case .error(let error): state.error = error.hexlistError
            case .summary(let summary): state.summary = summary
            case .other: break
            }
            if state.output.json {
                try state.output.object(line)
                try state.output.flush()  // a reader of the output may follow it
            }
        }
    }

    /// The last counts received; the final ones after the end of the reply.
    var counts: BulkSummary { state.withLock { $0.summary ?? $0.progress.summary } }

    // MARK: The end

    /// Reports a send whose reply is complete.
    /// - Parameter inputHint: the hint for a send of which a line was refused.
    func end(hint inputHint: String?) throws -> ExitStatus {
        try state.withLock { state in
            clear(&state)
            let summary = state.summary ?? state.progress.summary
            tellUntold(&state)
            if !state.output.json {
                try state.output.line(BulkText.summary(summary, wait: wait))
                if let hint = BulkText.hint(summary, wait: wait, to: to) { try state.output.line(hint) }
            }
            try state.output.flush()
            if let inputHint, summary.invalid > 0, !state.output.json { StandardError.note(inputHint) }
            var statuses = [summary.exitStatus(wait: wait)]
            if let error = state.error {
                StandardError.complain(error)
                statuses.append(ExitStatus(error.code))
            }
            return .combined(statuses)
        }
    }

    /// Reports a send that the user stopped.
    /// - Parameters:
    ///   - isKnown: whether the daemon has reported the outcome of everything that was sent.
    ///   - isWhole: whether the whole input was read.
    func interrupted(isKnown: Bool, isWhole: Bool) throws -> ExitStatus {
        try state.withLock { state in
            clear(&state)
            let summary = state.summary ?? state.progress.summary
            tellUntold(&state)
            if state.output.json {
                if state.summary == nil { try state.output.object(BulkLine.summary(summary)) }
            } else {
                let atLeast = isKnown ? "" : "at least "
                let parts = summary.accepted + summary.invalid > 0 ? ": \(BulkText.parts(summary, wait: .stored))" : ""
                StandardError.note("Stopped: \(atLeast)\(summary.accepted) accepted\(parts).")
                if let hint = BulkText.hint(summary, wait: .stored, to: to) { StandardError.note(hint) }
            }
            try state.output.flush()
            // Lines that were not read were not sent, so the send is not done, however well the rest went.
            let rest: [ExitStatus] = isKnown && isWhole ? [] : [summary.accepted > 0 ? .pending : .failed]
            return .combined([summary.exitStatus(wait: .stored)] + rest)
        }
    }

    /// Reports a send during which the daemon went away.
    func broke() {
        state.withLock { state in
            clear(&state)
            tellUntold(&state)
            let accepted = state.progress.summary.accepted
            guard accepted > 0 else { return }
            StandardError.note("At least \(accepted) accepted before that; they are in the outbox.")
        }
    }

    /// Reports that `--strict` refused the input and nothing was sent.
    func refusedAll(lines: Int, invalid: Int, hint: String?) throws {
        try state.withLock { state in
            if state.output.json {
                try state.output.object(BulkLine.summary(BulkSummary(lines: lines, invalid: invalid)))
                try state.output.flush()
            }
            let bad = HumanText.count(invalid, "line is", "lines are")
            StandardError.complain(
                HexlistError(
                    .badRequest, "\(bad) not valid, of \(lines): nothing was sent.", hint: hint ?? "Without --strict the others are sent."))
        }
    }

    /// Reports a line that `--strict` refused; never shortened.
    func tellRefused(_ refusal: BulkRefusal) {
        state.withLock { state in
            if state.output.json {
                try? state.output.object(refusal)
            } else {
                state.told = 0
                tell(&state) { "line \(refusal.line): \(refusal.code): \(refusal.message)" }
            }
        }
    }

    // MARK: Standard error

    private func tell(_ outcome: BulkOutcome, _ state: inout State) {
        tell(&state) {
            let place = outcome.line.map { "line \($0)" } ?? "outbox \(outcome.send.outboxID)"
            let why = [outcome.send.code, outcome.send.message].compactMap { $0 }.filter { !$0.isEmpty }
            let name = PeerDisplayName(outcome.send.peer, outcome.send.tag).shown()
            return ([place, "\(outcome.send.state.rawValue) by \(name)"] + why).joined(separator: ": ")
        }
    }

    private func tell(_ state: inout State, _ text: () -> String) {
        guard !state.output.json else { return }
        guard state.told < Self.toldLimit else {
            state.untold += 1
            return
        }
        state.told += 1
        clear(&state)
        StandardError.note(TerminalText.clean(text(), columns: 200))
    }

    private func tellUntold(_ state: inout State) {
        guard state.untold > 0 else { return }
        StandardError.note("… and \(state.untold) more like these; --json tells each.")
        state.untold = 0
    }

    /// Writes a line over the previous one if standard error is a terminal.
    private func show(_ state: inout State, _ text: String) {
        guard state.terminal.isInteractive else { return }
        let shown = TextWidth.cut(text, columns: max(20, (state.terminal.width ?? 80) - 1))
        let columns = TextWidth.of(shown)
        StandardError.write("\r" + shown + String(repeating: " ", count: max(0, state.shownColumns - columns)))
        state.shownColumns = columns
    }

    private func clear(_ state: inout State) {
        guard state.shownColumns > 0 else { return }
        StandardError.write("\r" + String(repeating: " ", count: state.shownColumns) + "\r")
        state.shownColumns = 0
    }
}

/// Texts about bulk sends.
enum BulkText {
    static func summary(_ summary: BulkSummary, wait: SendWait) -> String {
        guard summary.lines > 0 else { return "There was no hex in the input." }
        var text = "\(HumanText.count(summary.lines, "hex", "hexes")): \(parts(summary, wait: wait))"
        if summary.earlier > 0 { text += "; \(summary.earlier) of them were there already, by their keys" }
        if summary.seconds > 0 {
            let rate = Int((Double(summary.accepted) / summary.seconds).rounded())
            text += "; \((summary.seconds * 10).rounded() / 10) s, \(rate)/s"
        }
        return text
    }

    /// The counts of a summary: `1997 stored, 3 not valid`.
    static func parts(_ summary: BulkSummary, wait: SendWait) -> String {
        let counts = [
            (summary.stored, "stored"), (summary.held, "held until their receiver trusts this machine"), (summary.rejected, "refused"),
            (summary.failed, "failed"), (summary.queued, wait == .queued ? "queued" : "waiting"), (summary.invalid, "not valid"),
        ]
        let parts = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return parts.isEmpty ? "nothing yet" : parts.joined(separator: ", ")
    }

    /// A hint how to follow the rows that wait; `nil` if none does.
    static func hint(_ summary: BulkSummary, wait: SendWait, to peers: [String]) -> String? {
        guard summary.queued > 0, wait == .stored else { return nil }
        // The list takes one peer, and no group.
        let peer =
            peers.count == 1 && !GroupName.isMarked(peers[0]) ? " --to \(ShellText.quoted(TerminalText.clean(peers[0], columns: 60)))" : ""
        return "The rest stays in the outbox and is delivered when it can be: `hexlist outbox list\(peer)` shows it."
    }
}

/// Words for a shell.
enum ShellText {
    /// The word, in quotes if a shell would read it in another way without.
    static func quoted(_ word: String) -> String {
        let isPlain = !word.isEmpty && word.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-_.:/@%+=,".utf8.contains($0) }
        guard !isPlain else { return word }
        // By code points: a quote with a combining mark behind it is another character than a quote, and a quote to the shell.
        let quoted = word.unicodeScalars.map { scalar -> String in scalar == "'" ? #"'\''"# : String(scalar) }
        return "'" + quoted.joined() + "'"
    }
}
