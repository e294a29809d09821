import Glibc
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistSystem

/// The standard output of a command, buffered: JSON for scripts or text for people.
final class Output {
    let json: Bool
    let terminal = Terminal.output
    private var pending: [UInt8] = []
    /// The last JSON object, which is not in `pending` yet, so that `cut` can add a member to it.
    private var lastObject: [UInt8]?

    init(json: Bool) { self.json = json }

    /// Adds one JSON object as a line.
    func object(_ value: some JSONEncodable) throws {
        try endObject()
        lastObject = value.jsonBytes
    }

    /// Adds the member `next` to the last JSON object of a list, because the list was cut. Call it before `flush`.
    /// - Parameter cursor: the cursor of the next page; `nil` if the list is complete.
    func cut(_ cursor: String?) throws {
        guard let cursor, var object = lastObject, object.last == UInt8(ascii: "}") else { return }
        object.removeLast()
        if object.last != UInt8(ascii: "{") { object.append(UInt8(ascii: ",")) }
        lastObject = object + JSONValue { $0.object { $0.member("next", cursor) } }.bytes.dropFirst()
    }

    private func endObject() throws {
        guard let object = lastObject else { return }
        lastObject = nil
        pending += object
        try lineEnd()
    }

    /// Adds one line of text. Always cleans the text, so that no command can forget to do so.
    func line(_ text: String = "") throws {
        pending += Array(TerminalText.clean(text).utf8)
        try lineEnd()
    }

    /// Adds one line of a list. If it is longer than the terminal is wide, it is wrapped and its continuation lines are indented.
    func wrapped(_ text: String) throws {
        let text = TerminalText.clean(text)
        guard let width = terminal.width else { return try line(text) }
        for (number, part) in TextWidth.lines(text, columns: max(18, width - 2), first: max(20, width)).enumerated() {
            try line(number == 0 ? part : "  " + part)
        }
    }

    /// Adds a line whose beginning is emphasised.
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

    /// Writes the buffer. If the reader has closed the pipe (`| head`), ends the command silently.
    func flush() throws {
        try endObject()
        do { try BlockingWrite.write(pending, to: STDOUT_FILENO) } catch {
            guard error.code != EPIPE else { throw SilentExit(status: .done) }
            throw HexlistError(.internal, "Standard output cannot be written (\(error)).")
        }
        pending.removeAll(keepingCapacity: true)
    }

    private func lineEnd() throws { try bytes([UInt8(ascii: "\n")]) }
}

/// Writes errors, questions and notes to standard error, so that they do not mix with the output for scripts.
enum StandardError {
    /// Cleans a text and writes it as one line.
    static func note(_ text: String) { write(TerminalText.clean(text) + "\n") }

    /// Cleans a text and writes it in lines that are as long as the terminal is wide.
    static func wrapped(_ text: String) {
        let text = TerminalText.clean(text)
        guard let width = Terminal(descriptor: STDERR_FILENO).width else { return note(text) }
        for line in TextWidth.lines(text, columns: max(20, width)) { note(line) }
    }

    /// Cleans a question and writes it in lines that are as long as the terminal is wide. The cursor stays behind it.
    static func prompt(_ text: String) {
        let text = TerminalText.clean(text)
        let lines = Terminal(descriptor: STDERR_FILENO).width.map { TextWidth.lines(text, columns: max(20, $0 - 4)) } ?? [text]
        write(lines.joined(separator: "\n") + " ")
    }

    /// Writes a text unchanged.
    /// - Parameter text: must be cleaned if it contains text of peers.
    static func write(_ text: String) {
        try? BlockingWrite.write(Array(text.utf8), to: STDERR_FILENO)
    }

    /// Writes the message and the hint of an error.
    static func report(_ error: HexlistError) {
        let terminal = Terminal(descriptor: STDERR_FILENO)
        write(terminal.styled("hexlist: ", .failure))
        note(error.message)
        if let hint = error.hint { note(hint) }
    }
}
