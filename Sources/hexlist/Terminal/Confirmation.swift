import Glibc
import HexlistAPI
import HexlistModel

/// The question before a destructive change.
struct Confirmation {
    /// Deletions of this many links or more are confirmed on a terminal.
    static let linkLimit = 20

    /// Notes how to keep a copy, because a deletion cannot be undone.
    static func noteCopy(_ hexes: [Int64]) {
        let ids = hexes.prefix(20).map(String.init).joined(separator: " ") + (hexes.count > 20 ? " …" : "")
        StandardError.note("To keep a copy, answer no and run `hexlist export \(ids) -o FILE.html`.")
    }

    /// The effect, such as `deletes 7 hexes`.
    var deed: String
    var question: String
    /// The command line that skips the question.
    var line: String

    /// - Throws: `SilentExit` unless the answer is yes; `HexlistError` if standard input is not a terminal.
    func ask() throws {
        guard isatty(STDIN_FILENO) == 1 else { throw refusal }
        try Terminal.confirm("\(question) [y/N]")
    }

    var refusal: HexlistError {
        HexlistError(.badRequest, "This \(deed), and there is no terminal to confirm it.", hint: "To do it without a question: `\(line)`.")
    }
}

/// The note after a change that can be undone.
enum Undo {
    /// Prints the command on standard error, if that is a terminal.
    static func note(_ words: [String]) {
        guard isatty(STDERR_FILENO) == 1 else { return }
        StandardError.note("To undo: \((["hexlist"] + words.map { ShellText.quoted(TerminalText.clean($0)) }).joined(separator: " "))")
    }
}
