import Glibc
import HexlistAPI
import HexlistModel

/// A question to the user before a change with a large effect, such as a deletion or the acceptance of all held hexes.
struct Confirmation {
    /// Number of links from which a deletion must be confirmed on a terminal.
    static let linkLimit = 20

    /// Prints the command that saves a copy of hexes, before they are deleted.
    static func noteCopy(_ hexes: [Int64]) {
        let ids = hexes.prefix(20).map(String.init).joined(separator: " ") + (hexes.count > 20 ? " …" : "")
        StandardError.note("To keep a copy, answer no and run `hexlist export \(ids) -o FILE.html`.")
    }

    /// The effect of the change, such as `deletes 7 hexes`.
    var deed: String
    var question: String
    /// A command line that makes the change without a question.
    var line: String
    /// The sentence that is printed after an answer other than yes.
    var refused = "Nothing was changed."

    /// Asks the question.
    /// - Throws: `SilentExit` if the answer is not yes; `HexlistError` if standard input is not a terminal.
    func ask() throws {
        guard isatty(STDIN_FILENO) == 1 else { throw refusal }
        try Terminal.confirm("\(question) [y/N]", refused: refused)
    }

    var refusal: HexlistError {
        HexlistError(.badRequest, "This \(deed), and there is no terminal to confirm it.", hint: "To do it without a question: `\(line)`.")
    }
}

/// Prints the command that undoes a change.
enum UndoHint {
    /// Prints the undo command on standard error, if that is a terminal.
    static func note(_ words: [String]) {
        guard isatty(STDERR_FILENO) == 1 else { return }
        StandardError.note("To undo: \((["hexlist"] + words.map { ShellText.quoted(TerminalText.clean($0)) }).joined(separator: " "))")
    }
}
