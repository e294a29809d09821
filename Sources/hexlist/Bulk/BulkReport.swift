import Glibc
import HexlistAPI
import HexlistModel
import Synchronization

/// Prints the results of a bulk send, as text for a person or as JSON for a script. Safe to use from several tasks.
final class BulkReport: Sendable {
    /// Maximum number of lines and rows printed for a person. Further ones are only counted.
    private static let printedLimit = 20

    private struct State {
        let output: Output
        let terminal = Terminal(descriptor: STDERR_FILENO)
        var progress: BulkProgress
        var printed = 0
        var omitted = 0
        /// Width in columns of the progress line on the terminal; 0 if none is shown.
        var shownColumns = 0
        var summary: BulkSummary?
        var error: HexlistError?
    }

    private let state: Mutex<State>
    private let wait: SendWaitGoal
    private let to: [String]

    /// - Parameter to: the PEER arguments, used in the hint about waiting rows.
    init(json: Bool, wait: SendWaitGoal, to: [String]) {
        state = Mutex(State(output: Output(json: json), progress: BulkProgress(wait: wait)))
        self.wait = wait
        self.to = to
    }

    /// Prints one line of the daemon's reply, or updates the progress.
    /// - Throws: an error if standard output is closed.
    func take(_ line: BulkReplyLine, at position: BulkInput.Position) throws {
        try state.withLock { state in
            switch line {
            case .refused(let refusal): report(&state) { "line \(refusal.line): \(refusal.code): \(refusal.message)" }
            case .warning(let warning): report(&state) { "line \(warning.line): \(warning.warning)" }
            case .outcome(let outcome): report(outcome, &state)
            case .progress(let summary):
                state.progress.update(summary)
                if !state.output.json { show(&state, state.progress.text(position)) }
            case .error(let error): state.error = error.hexlistError
            case .summary(let summary): state.summary = summary
            case .other: break
            }
            if state.output.json {
                try state.output.object(line)
                try state.output.flush()  // a script may read the output while the send runs
            }
        }
    }

    /// The last counts received from the daemon. They are final after the end of the reply.
    var counts: BulkSummary { state.withLock { $0.summary ?? $0.progress.summary } }

    // MARK: The end

    /// Prints the result of a completed send.
    /// - Parameter inputHint: a hint to print if lines were refused.
    /// - Returns: the exit status.
    func end(hint inputHint: String?) throws -> ExitStatus {
        try state.withLock { state in
            clear(&state)
            let summary = state.summary ?? state.progress.summary
            reportOmitted(&state)
            if !state.output.json {
                try state.output.line(BulkText.summary(summary, wait: wait))
                if let hint = BulkText.hint(summary, wait: wait, to: to) { try state.output.line(hint) }
            }
            try state.output.flush()
            if let inputHint, summary.invalid > 0, !state.output.json { StandardError.note(inputHint) }
            var statuses = [summary.exitStatus(wait: wait)]
            if let error = state.error {
                StandardError.report(error)
                statuses.append(ExitStatus(error.code))
            }
            return .combined(statuses)
        }
    }

    /// Prints the result of a send that the user stopped.
    /// - Parameters:
    ///   - isKnown: whether the daemon reported the results of all sent hexes.
    ///   - isWhole: whether the whole input was read.
    /// - Returns: the exit status.
    func interrupted(isKnown: Bool, isWhole: Bool) throws -> ExitStatus {
        try state.withLock { state in
            clear(&state)
            let summary = state.summary ?? state.progress.summary
            reportOmitted(&state)
            if state.output.json {
                if state.summary == nil { try state.output.object(BulkReplyLine.summary(summary)) }
            } else {
                let atLeast = isKnown ? "" : "at least "
                let parts = summary.accepted + summary.invalid > 0 ? ": \(BulkText.parts(summary, wait: .stored))" : ""
                StandardError.note("Stopped: \(atLeast)\(summary.accepted) accepted\(parts).")
                if let hint = BulkText.hint(summary, wait: .stored, to: to) { StandardError.note(hint) }
            }
            try state.output.flush()
            // Lines that were not read were not sent, so the status must not be success.
            let rest: [ExitStatus] = isKnown && isWhole ? [] : [summary.accepted > 0 ? .pending : .failed]
            return .combined([summary.exitStatus(wait: .stored)] + rest)
        }
    }

    /// Prints what is known about a send whose connection to the daemon was lost.
    func connectionLost() {
        state.withLock { state in
            clear(&state)
            reportOmitted(&state)
            let accepted = state.progress.summary.accepted
            guard accepted > 0 else { return }
            StandardError.note("At least \(accepted) were accepted before; they are in the outbox.")
        }
    }

    /// Prints that nothing was sent because `--strict` found invalid lines.
    func refusedAll(lines: Int, invalid: Int, hint: String?) throws {
        try state.withLock { state in
            if state.output.json {
                try state.output.object(BulkReplyLine.summary(BulkSummary(lines: lines, invalid: invalid)))
                try state.output.flush()
            }
            let bad = HumanText.count(invalid, "line is", "lines are")
            StandardError.report(
                HexlistError(
                    .badRequest, "\(bad) not valid, of \(lines): nothing was sent.", hint: hint ?? "To send the others, leave out --strict."
                ))
        }
    }

    /// Prints an invalid line found by `--strict`. Not subject to `printedLimit`.
    func reportRefused(_ refusal: BulkRefusal) {
        state.withLock { state in
            if state.output.json {
                try? state.output.object(refusal)
            } else {
                state.printed = 0
                report(&state) { "line \(refusal.line): \(refusal.code): \(refusal.message)" }
            }
        }
    }

    // MARK: Standard error

    private func report(_ outcome: BulkOutcome, _ state: inout State) {
        report(&state) {
            let label = outcome.line.map { "line \($0)" } ?? "outbox \(outcome.send.outboxID)"
            let why = [outcome.send.code, outcome.send.message].compactMap { $0 }.filter { !$0.isEmpty }
            let name = PeerDisplayName(outcome.send.peer, outcome.send.tag).shown()
            return ([label, "\(outcome.send.state.rawValue) by \(name)"] + why).joined(separator: ": ")
        }
    }

    private func report(_ state: inout State, _ text: () -> String) {
        guard !state.output.json else { return }
        guard state.printed < Self.printedLimit else {
            state.omitted += 1
            return
        }
        state.printed += 1
        clear(&state)
        StandardError.note(TerminalText.clean(text(), columns: 200))
    }

    private func reportOmitted(_ state: inout State) {
        guard state.omitted > 0 else { return }
        StandardError.note("… and \(state.omitted) more; list all with --json.")
        state.omitted = 0
    }

    /// Replaces the progress line on standard error, if that is a terminal.
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

/// Texts about the result of a bulk send.
enum BulkText {
    static func summary(_ summary: BulkSummary, wait: SendWaitGoal) -> String {
        guard summary.lines > 0 else { return "The input contains no hexes." }
        var text = "\(HumanText.count(summary.lines, "hex", "hexes")): \(parts(summary, wait: wait))"
        if summary.earlier > 0 { text += "; \(summary.earlier) of them already sent with the same key" }
        if summary.seconds > 0 {
            let rate = Int((Double(summary.accepted) / summary.seconds).rounded())
            text += "; \((summary.seconds * 10).rounded() / 10) s, \(rate)/s"
        }
        return text
    }

    /// Returns the counts of a summary that are not zero: `1997 stored, 3 not valid`.
    static func parts(_ summary: BulkSummary, wait: SendWaitGoal) -> String {
        let counts = [
            (summary.stored, "stored"), (summary.held, "waiting for approval there"), (summary.rejected, "refused"),
            (summary.failed, "failed"), (summary.queued, wait == .queued ? "queued" : "waiting"), (summary.invalid, "not valid"),
        ]
        let parts = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return parts.isEmpty ? "nothing yet" : parts.joined(separator: ", ")
    }

    /// Returns a hint about the rows that still wait; `nil` if there are none.
    static func hint(_ summary: BulkSummary, wait: SendWaitGoal, to peers: [String]) -> String? {
        guard summary.queued > 0, wait == .stored else { return nil }
        // `outbox list` accepts one peer and no groups.
        let peer =
            peers.count == 1 && !GroupName.isMarked(peers[0]) ? " --to \(ShellText.quoted(TerminalText.clean(peers[0], columns: 60)))" : ""
        return "The rest stays in the outbox and will be sent later: `hexlist outbox list\(peer)`."
    }
}

/// Quotes words for use in a shell command.
enum ShellText {
    /// Returns the word, in quotes if a shell would interpret any of its characters.
    static func quoted(_ word: String) -> String {
        let isPlain = !word.isEmpty && word.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-_.:/@%+=,".utf8.contains($0) }
        guard !isPlain else { return word }
        // Compares scalars instead of characters, because a quote with a combining mark is one character but still a quote for the shell.
        let quoted = word.unicodeScalars.map { scalar -> String in scalar == "'" ? #"'\''"# : String(scalar) }
        return "'" + quoted.joined() + "'"
    }
}
