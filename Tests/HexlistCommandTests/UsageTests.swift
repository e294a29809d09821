import ArgumentParser
import Testing

@testable import hexlist

/// Suggestions for misspelt commands, options and values: a similar one, or none.
@Suite("Suggestions")
struct UsageTests {
    @Test(
        "a command",
        arguments: [
            (["sned", "x"], "sned", "`hexlist send`"), (["inbx"], "inbx", "`hexlist inbox`"), (["stauts"], "stauts", "`hexlist status`"),
            (["peer", "trsut", "bob"], "trsut", "`hexlist peer trust`"), (["peer", "Bob's"], "Bob's", "`hexlist peer show 'Bob'\\''s'`"),
            (["trust", "bob"], "trust", "`hexlist peer trust`"), (["outbox", "12"], "12", "`hexlist outbox show 12`"),
            (["peers", "exprot"], "exprot", "`hexlist peers export`"), (["rename"], "rename", "`hexlist peer rename`"),
        ])
    func command(arguments: [String], unknown: String, meant: String) {
        let error = Usage(arguments).error("Unexpected argument '\(unknown)'")
        #expect(error.message.hasPrefix("There is no command `hexlist"))
        #expect(error.hint?.contains("Did you mean \(meant)?") == true, "\(error)")
    }

    @Test("unrelated words get no suggestion", arguments: [["nonsense"], ["x"], ["zz"], ["ls"], ["peers", "bob"]])
    func noCommand(arguments: [String]) {
        let error = Usage(arguments).error("Unexpected argument '\(arguments.last ?? "")'")
        #expect(error.hint?.contains("Did you mean") == false, "\(error)")
        #expect(error.hint?.contains("--help`") == true)
    }

    @Test("references to a hex") func hex() {
        let error = Usage(["show", "abc"]).error("The value 'abc' is invalid for '<hex>'")
        #expect(error.message == "`abc` is not valid for <hex>.")
        #expect(error.hint?.contains("`hexlist inbox`") == true)
    }

    @Test(
        "the form of a value",
        arguments: [
            (["files", "ada"], "<service>", "`bob:PATH`"), (["link", "a/b"], "<file>", "`shares:PATH`"),
            (["fetch", "talk.pdf"], "<hex>", "`bob:PATH`"), (["fetch", "ada:My", "stuff/a"], "<n>", "quote a path"),
            (["cache", "clear", "--older", "x"], "--older <duration>", "7d"),
            (["peer", "set", "a", "--fetch-limit", "x"], "--fetch-limit <size>", "100M"),
        ])
    func form(arguments: [String], name: String, hint: String) {
        let error = Usage(arguments).error("The value 'x' is invalid for '\(name)'")
        #expect(error.message == "`x` is not valid for \(name).")
        #expect(error.hint?.contains(hint) == true, "\(error)")
    }

    @Test(
        "an option",
        arguments: [
            (["inbox", "--unraed"], "--unraed", "--unread"), (["send", "--descripton", "x"], "--descripton", "--description"),
            (["status", "--jsno"], "--jsno", "--json"), (["peers", "--wyh"], "--wyh", "--why"),
            (["send", "--desc"], "--desc", "--description"),
            (["status", "-json"], "-json", "--json"),
        ])
    func option(arguments: [String], unknown: String, meant: String) {
        // The suggestion of swift-argument-parser is left out.
        let error = Usage(arguments).error("Unknown option '\(unknown)'. Did you mean '--socket'?")
        #expect(error.hint?.hasPrefix("Did you mean `\(meant)`?") == true, "\(error)")
        #expect(!error.message.contains("Did you mean"))
    }

    @Test("unrelated options get no suggestion", arguments: [["send", "--foo"], ["inbox", "--x"], ["status", "--verbose"]])
    func noOption(arguments: [String]) {
        #expect(Usage(arguments).error("Unknown option '\(arguments[1])'. Did you mean '--to'?").hint?.contains("Did you mean") == false)
    }

    @Test("an option before its command: the message says where it belongs")
    func place() {
        let error = Usage(["--json", "status"]).error("Unknown option '--json'")
        #expect(error.message == "Options go after the command: `hexlist status --json`.")
    }

    @Test("usage is wrapped to the terminal")
    func usage() {
        let help = "USAGE: hexlist x [--json] [--socket <path>] <peer>\n\nOPTIONS:"
        #expect(Usage.wrapped(help, 30) == "USAGE: hexlist x [--json]\n       [--socket <path>]\n       <peer>\n\nOPTIONS:")
        #expect(Usage.wrapped(help, nil) == help)
    }

    @Test("help names the complete command line", arguments: ["send", "inbox"])
    func help(command: String) throws {
        var help = try Main.parsed([command, "--help"])
        do {
            try help.run()
            Issue.record("no help")
        } catch {
            #expect(Hexlist.fullMessage(for: error).contains("USAGE: hexlist \(command) "))
        }
    }

    @Test(
        "a command that is parsed alone is the one that all commands would give",
        arguments: [
            ["status", "--json"], ["peers", "--json"], ["peers", "list", "--all"], ["peers", "export"], ["peer", "trust", "bob"],
            ["mine", "3"], ["mine", "--tree"], ["mine", "edit", "3", "--description", "x"], ["id"], ["send", "--to", "bob", "x"],
            ["outbox", "show", "12"], ["inbox", "--help"], ["peers", "--help"], ["mine", "edit", "--help"],
        ])
    func alone(arguments: [String]) throws {
        let (alone, all) = (try Main.parsed(arguments), try Hexlist.parseAsRoot(arguments))
        #expect(type(of: alone) == type(of: all))
        #expect("\(alone)" == "\(all)")
    }

    @Test(
        "an error names the complete command line",
        arguments: [["peers", "exprot"], ["peer"], ["peer", "trust"], ["status", "--wrong"], ["mine", "edit", "3", "--wrong"]])
    func errors(arguments: [String]) throws {
        func message(_ parse: ([String]) throws -> any ParsableCommand) -> String? {
            do {
                var command = try parse(arguments)
                try command.run()
                return nil
            } catch {
                return Hexlist.fullMessage(for: error)
            }
        }
        let all = try #require(message { try Hexlist.parseAsRoot($0) })
        #expect(message(Main.parsed) == all && all.contains("hexlist \(arguments[0])"))
    }

    @Test("an empty key, as from an unset variable, is refused")
    func emptyKey() {
        #expect(throws: (any Error).self) { try Main.parsed(["send", "--to", "bob", "--key", "", "https://example.org"]) }
    }

    /// Returns all commands that have no subcommands, each with the words that call it.
    private static func commands(
        _ command: any ParsableCommand.Type = Hexlist.self, _ words: [String] = []
    ) -> [([String], any ParsableCommand.Type)] {
        let inner = command.configuration.subcommands
        guard !inner.isEmpty else { return [(words, command)] }
        return inner.flatMap { commands($0, words + [$0.configuration.commandName ?? ""]) }
    }

    @Test("an example of the help fits into a line of 80 columns") func examples() {
        let all = Self.commands()
        #expect(all.count > 60)
        for (words, command) in all {
            let lines = Hexlist.helpMessage(for: command, columns: 1_000).split(separator: "\n").filter { $0.hasPrefix("hexlist ") }
            for line in lines { #expect(line.count <= 80, "\(words): \(line)") }
        }
    }

    @Test(
        "a wrong value of an option with fixed values is answered with the right ones",
        arguments: [
            (["peer", "set", "a", "--receive", "x"], "inbox, held, nothing"), (["peer", "set", "a", "--notify", "x"], "on, off"),
            (["peer", "set", "a", "--fetch", "x"], "auto, downloads, never"), (["search", "a", "--in", "x"], "inbox, mine, held"),
            (["send", "a", "--wait", "x"], "queued, stored"), (["files", "a:", "--sort", "x"], "name, size, time"),
            (["export", "--format", "x"], "html"), (["import", "a", "--format", "x"], "html"), (["web", "--at", "x"], "inbox"),
        ])
    func choices(arguments: [String], values: String) throws {
        do {
            _ = try Main.parsed(arguments)
            Issue.record("\(arguments) is accepted")
        } catch {
            let hint = Usage(arguments).error(Hexlist.message(for: error)).hint ?? ""
            #expect(hint.hasPrefix("It takes ") && hint.contains(values), "\(hint)")
        }
    }

    @Test("commands of My Hexlist name its own lists") func mine() {
        for (words, list) in [
            (["mine", "rm"], "mine"), (["mine", "restore"], "mine trash"), (["mine", "edit"], "mine"), (["show"], "inbox"),
        ] {
            let hint = Usage(words).error("Missing expected argument '<hex> ...'").hint
            #expect(hint?.hasPrefix("Give a number from `hexlist \(list)`.") == true, "\(hint ?? "")")
        }
    }

    @Test("numbers of changes and of the trash are explained") func history() {
        let change = Usage(["mine", "undo"]).error("Missing expected argument '<change> ...'")
        #expect(change.hint?.hasPrefix("Give numbers from `hexlist mine log`.") == true, "\(change)")
        let item = Usage(["mine", "trash", "--restore", "x"]).error("The value 'x' is invalid for '--restore <item>'")
        #expect(item.hint?.hasPrefix("Give numbers from `hexlist mine trash`.") == true, "\(item)")
    }

    @Test("an unknown option is named, also if it is in the place of a missing argument") func unknownOption() {
        for option in ["-1", "--all"] {
            let error = Usage(["mine", "undo", option]).error("Missing expected argument '<change> ...'")
            #expect(error.message == "`hexlist mine undo` has no option `\(option)`.")
        }
        #expect(Usage(["mine", "undo", "--json"]).error("Missing expected argument '<change> ...'").message == "Which change?")
    }

    @Test("other words for commands of My Hexlist are recognised") func synonyms() {
        for (word, command) in [("history", "log"), ("redo", "undo"), ("delete", "rm"), ("purge", "trash --empty"), ("trahs", "trash")] {
            let error = Usage(["mine", word, "7"]).error("Unexpected argument '7'")
            #expect(error.message == "There is no command `hexlist mine \(word)`.")
            #expect(error.hint?.hasPrefix("Did you mean `hexlist mine \(command)`?") == true, "\(error)")
        }
        #expect(Usage(["mine", "6", "7"]).error("Unexpected argument '7'").message == "Unexpected argument '7'")
        #expect(MineListCommand.meant(by: "History") == "log")
    }

    @Test("other errors are reported with the command whose help explains them")
    func other() {
        let error = Usage(["outbox", "--to", "bob", "5"]).error("Missing value for '--limit <n>'")
        #expect(error.message == "`--limit <n>` needs a value." && error.hint == "More: `hexlist outbox --help`.")
        let missing = Usage(["show"]).error("Missing expected argument '<hex> ...'")
        #expect(missing.message == "Which hex?" && missing.hint == "Give a number from `hexlist inbox`. More: `hexlist show --help`.")
        let range = Usage(["read", "x"]).error("The value 'x' is invalid for '<hex> ...': `x`: give numbers (7, 3-40).")
        #expect(range.message == "`x`: give numbers (7, 3-40).")
        #expect(Usage(["peer", "trust"]).error("x").hint == "More: `hexlist peer trust --help`.")
    }
}
