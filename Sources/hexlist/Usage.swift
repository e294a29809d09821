import ArgumentParser
import HexlistAPI
import HexlistModel

/// The error for a command line that is invalid: what is wrong, and what may have been meant.
struct Usage {
    /// The named commands, beginning with `hexlist` itself.
    private let commands: [any ParsableCommand.Type]
    /// The first word in the place of a command that is no command; `nil` if there is none.
    private let unknown: String?

    /// - Parameter arguments: the arguments without the program's name.
    init(_ arguments: [String]) {
        var commands: [any ParsableCommand.Type] = [Hexlist.self]
        var unknown: String?
        for argument in arguments where !argument.hasPrefix("-") {
            let next = commands[commands.count - 1].configuration.subcommands
            guard let command = next.first(where: { Self.name($0) == argument }) else {
                unknown = next.isEmpty ? nil : argument
                break
            }
            commands.append(command)
        }
        self.commands = commands
        self.unknown = unknown
    }

    /// - Parameter message: the message of swift-argument-parser.
    func error(_ message: String) -> HexlistError {
        let help = "`\(line) --help` says more."
        if let unknown, message.contains("'\(unknown)'"), message.contains("nexpected argument") {
            let hint = nearestCommand(to: unknown).map { "Did you mean `\($0)`? " } ?? ""
            let shown = TerminalText.clean(unknown, columns: 60)
            return HexlistError(.badRequest, "There is no command `\(line) \(shown)`.", hint: hint + help)
        }
        if message.hasPrefix("The value '"), let form = form(in: message) {
            return HexlistError(.badRequest, message.hasSuffix(".") ? message : message + ".", hint: form + " " + help)
        }
        let parts = message.split(separator: "'", omittingEmptySubsequences: false)
        guard message.hasPrefix("Unknown option '"), parts.count >= 3 else { return HexlistError(.badRequest, message, hint: help) }
        // swift-argument-parser suggests any option within three letters: `--to` for `--foo`.
        let option = String(parts[1])
        let nearest = nearestOption(to: option)
        if nearest == option {
            return HexlistError(.badRequest, "Options stand behind the command: `\(line) \(option)`.", hint: help)
        }
        let hint = nearest.map { "Did you mean `\($0)`? " } ?? ""
        return HexlistError(.badRequest, "There is no option `\(option)` of `\(line)`.", hint: hint + help)
    }

    /// The form of the value that a message about an invalid one names; `nil` for one that is not known here.
    private func form(in message: String) -> String? {
        let isFetch = commands.last == FetchCommand.self
        let forms = [
            ("<hex>", "A hex goes by the number that `hexlist inbox` prints\(isFetch ? ", a file of a service as `bob:PATH`" : "")."),
            ("<service>", "A service ends in a colon: `bob:`, or `bob:PATH`."),
            ("<file>", "A file of a service is `shares:PATH`, or `bob:PATH`."),
            ("<duration>", "A duration is a number and its unit: 500ms, 10s, 5m, 12h, 7d."),
            ("<size>", "A size is a number of bytes, or one with its unit: 200K, 100M, 1.5G."),
            ("<n>", isFetch ? "A number names a link of the hex; a path with blanks stands in quotes." : nil),
        ]
        return forms.first { message.contains("\($0.0)'") }?.1
    }

    /// Help whose usage line is as wide as the terminal, as swift-argument-parser does for the rest.
    static func wrapped(_ help: String, _ width: Int?) -> String {
        guard let width else { return help }
        let indent = "USAGE: ".count
        return help.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            guard line.hasPrefix("USAGE: ") else { return String(line) }
            return TextWidth.lines(String(line), columns: max(20, width - indent), first: max(20, width))
                .joined(separator: "\n" + String(repeating: " ", count: indent))
        }.joined(separator: "\n")
    }

    private var line: String { commands.map(Self.name).joined(separator: " ") }

    private static func name(_ command: any ParsableCommand.Type) -> String { command.configuration.commandName ?? "" }

    /// A command with a similar name at this place, else one with that name elsewhere. A word that can be no command may be a peer or a
    /// hex.
    private func nearestCommand(to word: String) -> String? {
        let last = commands[commands.count - 1]
        let names = last.configuration.subcommands.map(Self.name)
        if let near = NearestName.likely(word, among: names) { return "\(line) \(near)" }
        let elsewhere = Self.leaves(Hexlist.self, "hexlist").first { $0.split(separator: " ").last.map(String.init) == word.lowercased() }
        if let elsewhere { return elsewhere }
        guard last == PeerCommand.self || last == OutboxCommand.self else { return nil }
        return "\(line) show \(ShellText.quoted(TerminalText.clean(word, columns: 60)))"
    }

    private static func leaves(_ command: any ParsableCommand.Type, _ line: String) -> [String] {
        let inner = command.configuration.subcommands
        return inner.isEmpty ? [line] : inner.flatMap { leaves($0, "\(line) \(name($0))") }
    }

    private func nearestOption(to option: String) -> String? {
        let names = Self.words(ofHelpFor: commands[commands.count - 1]).filter { $0.hasPrefix("--") }.map { String($0.dropFirst(2)) }
        return NearestName.likely(String(option.drop { $0 == "-" }), among: names).map { "--\($0)" }
    }

    /// Whether an option of a command takes the next word as its value, according to the command's help.
    static func takesValue(_ option: String, of command: any ParsableCommand.Type) -> Bool {
        let words = words(ofHelpFor: command)
        return zip(words, words.dropFirst()).contains { $0 == option && $1.hasPrefix("<") }
    }

    private static func words(ofHelpFor command: any ParsableCommand.Type) -> [Substring] {
        Hexlist.helpMessage(for: command, columns: 1_000).split { " \n[],/.".contains($0) }
    }
}
