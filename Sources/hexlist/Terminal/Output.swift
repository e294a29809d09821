import Glibc
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistSystem

/// The standard output of one command: JSON for scripts or text for people, collected and written in large pieces.
final class Output {
    let json: Bool
    let terminal = Terminal.output
    private var pending: [UInt8] = []

    init(json: Bool) { self.json = json }

    /// Adds one object on a line of its own.
    func object(_ value: some JSONEncodable) throws {
        pending += value.jsonBytes
        try lineEnd()
    }

    /// Adds one line. Cleans the text, whoever it is from, so that no command can forget to.
    func line(_ text: String = "") throws {
        pending += Array(TerminalText.clean(text).utf8)
        try lineEnd()
    }

    /// Adds one line of a list. On a terminal a long line is wrapped, with its continuation indented.
    func wrapped(_ text: String) throws {
        let text = TerminalText.clean(text)
        guard let width = terminal.width else { return try line(text) }
        for (number, part) in TextWidth.lines(text, columns: max(18, width - 2), first: max(20, width)).enumerated() {
            try line(number == 0 ? part : "  " + part)
        }
    }

    /// Adds a line whose beginning is emphasised on a terminal.
    func line(_ beginning: String, _ style: Terminal.Style, _ rest: String) throws {
        pending += Array(terminal.line(beginning, style, rest).utf8)
        try lineEnd()
    }

    func table(_ table: Table) throws {
        for line in table.lines(terminal) {
            pending += Array(line.utf8)
            try lineEnd()
        }
    }

    func bytes(_ bytes: [UInt8]) throws {
        pending += bytes
        if pending.count >= 1 << 16 { try flush() }
    }

    /// Writes what was collected. If the reader has gone (`| head`), ends the command silently.
    func flush() throws {
        do { try BlockingWrite.write(pending, to: STDOUT_FILENO) } catch {
            guard error.code != EPIPE else { throw Ending(status: .done) }
            throw HexlistError(.internal, "Standard output cannot be written (\(error)).")
        }
        pending.removeAll(keepingCapacity: true)
    }

    private func lineEnd() throws { try bytes([UInt8(ascii: "\n")]) }
}

/// Errors, questions and notes for the user, kept apart from output that a script reads.
enum StandardError {
    /// Writes one line, cleaned, whoever its text is from.
    static func note(_ text: String) { write(TerminalText.clean(text) + "\n") }

    /// - Parameter text: already cleaned if it contains peer text.
    static func write(_ text: String) {
        try? BlockingWrite.write(Array(text.utf8), to: STDERR_FILENO)
    }

    /// Writes one or two lines: what happened, and what to try.
    static func complain(_ error: HexlistError) {
        let terminal = Terminal(descriptor: STDERR_FILENO)
        write(terminal.styled("hexlist: ", .failure))
        note(error.message)
        if let hint = error.hint { note(hint) }
    }
}
