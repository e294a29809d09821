import HexlistSystem

/// A note that a list goes on: the command that lists the rest.
enum MoreNote {
    /// - Parameters:
    ///   - cursor: the value of --after.
    ///   - arguments: the command line, the program's name first.
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
        return "There is more: " + (words + ["--after", cursor]).map(ShellText.quoted).joined(separator: " ")
    }
}
