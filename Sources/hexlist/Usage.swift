import ArgumentParser
import HexlistAPI
import HexlistModel

/// Rewrites error messages of swift-argument-parser, and adds suggestions.
struct Usage {
    /// The commands recognised in the arguments, from `hexlist` to the innermost subcommand.
    private let commands: [any ParsableCommand.Type]
    /// The first word that is not a known subcommand although one is expected; `nil` if there is none.
    private let unknown: String?
    private let arguments: [String]

    /// Finds the command in the arguments.
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
        self.arguments = arguments
    }

    /// Returns the error for the user.
    /// - Parameter message: the message of swift-argument-parser.
    func error(_ message: String) -> HexlistError {
        let help = "More: `\(line) --help`."
        if let unknown, message.contains("nexpected argument"), message.contains("'\(unknown)'") || isMistaken(unknown) {
            let hint = nearestCommand(to: unknown).map { "Did you mean `\($0)`? " } ?? ""
            let shown = TerminalText.clean(unknown, columns: 60)
            return HexlistError(.badRequest, "There is no command `\(line) \(shown)`.", hint: hint + help)
        }
        if let name = Self.quoted(message, after: "Missing expected argument '") {
            // swift-argument-parser reports the missing argument even if there is an unknown option in its place.
            if let option = unknownOption { return noOption(option, help: help) }
            let placeholder = name.split { "<> .".contains($0) }.first ?? "argument"
            return HexlistError(
                .badRequest, "Which \(placeholder)?", hint: [form(of: name), help].compactMap(\.self).joined(separator: " "))
        }
        if let option = Self.quoted(message, after: "Missing value for '") {
            return HexlistError(.badRequest, "`\(option)` needs a value.", hint: help)
        }
        if let error = invalidValue(message, help: help) { return error }
        let parts = message.split(separator: "'", omittingEmptySubsequences: false)
        guard message.hasPrefix("Unknown option '"), parts.count >= 3 else { return HexlistError(.badRequest, message, hint: help) }
        // swift-argument-parser suggests any option within an edit distance of three, such as `--to` for `--foo`.
        return noOption(String(parts[1]), help: help)
    }

    /// Whether a word after `hexlist mine` is not the number of a hex, but means a subcommand.
    private func isMistaken(_ word: String) -> Bool {
        commands.last == MineCommand.self && HexID(argument: word) == nil && MineListCommand.meant(by: word) != nil
    }

    /// The first option that the help of the command does not mention.
    private var unknownOption: String? {
        let options = arguments.prefix { $0 != "--" }.filter { $0.hasPrefix("-") && $0.utf8.count > 1 }
        guard !options.isEmpty else { return nil }
        let words = Set(Self.words(ofHelpFor: commands[commands.count - 1]).map(String.init))
        return options.first { option in
            // A value may follow directly: `--limit=5`, `-n5`.
            let name = option.hasPrefix("--") ? String(option.prefix { $0 != "=" }) : String(option.prefix(2))
            return !words.contains(name)
        }
    }

    /// Returns the error for an unknown option.
    private func noOption(_ option: String, help: String) -> HexlistError {
        let nearest = nearestOption(to: option)
        if nearest == option {
            return HexlistError(.badRequest, "Options go after the command: `\(line) \(option)`.", hint: help)
        }
        let hint = nearest.map { "Did you mean `\($0)`? " } ?? ""
        let shown = TerminalText.clean(option, columns: 60)
        return HexlistError(.badRequest, "`\(line)` has no option `\(shown)`.", hint: hint + help)
    }

    /// Returns the error for a value that could not be parsed; `nil` for any other message.
    private func invalidValue(_ message: String, help: String) -> HexlistError? {
        guard let value = Self.quoted(message, after: "The value '", until: "' is invalid for '"),
            let name = Self.quoted(message, after: "' is invalid for '")
        else { return nil }
        // The reason given by a `ValidationError` is already a whole sentence.
        if let start = message.firstRange(of: "' is invalid for '\(name)': ")?.upperBound {
            return HexlistError(.badRequest, String(message[start...]), hint: help)
        }
        let shown = TerminalText.clean(value, columns: 60)
        return HexlistError(
            .badRequest, "`\(shown)` is not valid for \(name).",
            hint: [Self.choices(message), form(of: name), help].compactMap(\.self).joined(separator: " "))
    }

    /// Returns a sentence with the allowed values, if swift-argument-parser has listed them: in one line, or in a list for long ones.
    private static func choices(_ message: String) -> String? {
        guard let start = message.firstRange(of: "Please provide one of ")?.upperBound else { return nil }
        let quoted = message[start...].split(separator: "'", omittingEmptySubsequences: false).enumerated()
        let values = quoted.filter { $0.offset % 2 == 1 }.map { String($0.element) }
        let listed = message[start...].split(separator: "\n").compactMap { line in
            line.firstRange(of: "- ").map { String(line[$0.upperBound...]) }
        }
        let all = values.isEmpty ? listed : values
        return all.isEmpty ? nil : "It takes \(all.joined(separator: ", "))."
    }

    /// Returns the text between two markers in a message of swift-argument-parser; `nil` if a marker is missing.
    private static func quoted(_ message: String, after start: String, until end: String = "'") -> String? {
        guard let begin = message.firstRange(of: start)?.upperBound, let end = message[begin...].firstRange(of: end)?.lowerBound else {
            return nil
        }
        return String(message[begin..<end])
    }

    /// Returns a sentence about the form of an argument's value; `nil` for an unknown argument.
    /// - Parameter name: the placeholder in the message: `<hex>`, `<hex> ...` or `--older <duration>`.
    private func form(of name: String) -> String? {
        let isFetch = commands.last == FetchCommand.self
        let list = commands.contains { $0 == MineCommand.self } ? commands.last == MineRestoreCommand.self ? "mine trash" : "mine" : "inbox"
        let forms = [
            ("<hex>", "Give a number from `hexlist \(list)`\(isFetch ? ", or a file of a service as `bob:PATH`" : "")."),
            ("<change>", "Give numbers from `hexlist mine log`."),
            ("<item>", "Give numbers from `hexlist mine trash`."),
            ("<service>", "A service ends in a colon: `bob:`, or `bob:PATH`."),
            ("<file>", "A file of a service is `shares:PATH`, or `bob:PATH`."),
            ("<duration>", "A duration is a number and its unit: 500ms, 10s, 5m, 12h, 7d."),
            ("<size>", "A size is a number of bytes, or one with its unit: 200K, 100M, 1.5G."),
            ("<n>", isFetch ? "After a hex come numbers of links; quote a path with spaces." : nil),
        ]
        return forms.first { name.contains($0.0) }?.1
    }

    /// Wraps the usage line to the width of the terminal. swift-argument-parser wraps all other lines.
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

    /// Suggests a command for an unknown word: a similar subcommand, else a command of that name under another command, else `show WORD` if
    /// the word may be a peer or an outbox row.
    private func nearestCommand(to word: String) -> String? {
        let last = commands[commands.count - 1]
        if last == MineCommand.self, let meant = MineListCommand.meant(by: word) { return "\(line) \(meant)" }
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

    /// Whether an option takes a value. Determined from the help text of the command.
    static func takesValue(_ option: String, of command: any ParsableCommand.Type) -> Bool {
        let words = words(ofHelpFor: command)
        let isShort = !option.hasPrefix("--")
        return words.indices.contains { index in
            // The help shows a short option directly before its long form: `-t, --to <peer>`.
            let value = words.dropFirst(index + (isShort ? 2 : 1)).first
            return words[index] == option && value?.hasPrefix("<") ?? false
        }
    }

    private static func words(ofHelpFor command: any ParsableCommand.Type) -> [Substring] {
        Hexlist.helpMessage(for: command, columns: 1_000).split { " \n[],/.".contains($0) }
    }
}
