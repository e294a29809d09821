import HexlistSystem

/// Creates the note that names the command for the next page of a list.
enum NextPageHint {
    /// Returns the note with the command for the next page.
    /// - Parameters:
    ///   - cursor: the value of --after in the new command.
    ///   - arguments: the current command line, including the name of the program.
    static func text(_ cursor: String, _ arguments: [String] = ProcessArguments.all) -> String {
        var words = ["hexlist"]
        var rest = arguments.dropFirst()
        while let word = rest.popFirst() {
            if word == "--after" {
                rest = rest.dropFirst()
            } else if !word.hasPrefix("--after=") {
                words.append(word)
            }
        }
        return "More: " + (words + ["--after", cursor]).map(ShellText.quoted).joined(separator: " ")
    }
}
