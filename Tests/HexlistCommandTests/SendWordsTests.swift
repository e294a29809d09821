import ArgumentParser
import Testing

@testable import hexlist

/// The arguments of `send` that are parsed without ArgumentParser have the same meaning as with it.
@Suite("Fast parsing of send")
struct SendWordsTests {
    private static func shown(_ command: SendCommand) -> String {
        var text = ""
        dump(command, to: &text)
        return text
    }

    @Test(
        "common command lines are parsed",
        arguments: [
            ["--to", "bob", "https://a.example"],
            ["--to", "bob", "--to", "@team", "--wait", "stored", "--description", "One", "https://a.example 1", "https://b.example 2"],
            ["https://a.example", "--to-all", "--json", "--force", "--wait", "queued", "--timeout", "1.5m", "--color", "red"],
            ["--to", "bob", "--key", "k 1", "https://a.example", "--description", ""], ["https://a.example", "bob"],
            ["--to", "bob", "--wait", "queued", "--wait", "stored", "./talk.pdf", "help"],
            ["-t", "bob", "-d", "One", "-c", "red", "https://a.example"], ["https://a.example"],
        ])
    func usual(words: [String]) throws {
        let command = try #require(SendCommand(usual: ["send"] + words))
        #expect(try Self.shown(command) == Self.shown(SendCommand.parse(words)))
    }

    @Test("any two extra words are parsed the same way, or left to ArgumentParser")
    func any() throws {
        let help = SendCommand.helpMessage(includeHidden: true).split { !$0.isLetter && $0 != "-" }
        let options = Set(help.map(String.init)).filter { $0.hasPrefix("--") }
        #expect(options.count > 20)
        let words =
            options.sorted() + [
                "bob", "https://a.example a", "stored", "", "5", "-5", "10s", "red", "-", "--", "--to=bob", "--json=x", "--no-json",
                "-t", "-d", "-c", "-tbob", "-x",
            ]
            + ["help", "--help", "-h", "./a", "ü", "-\u{301}", "--generate-completion-script", "---completion"]
        var read: Set<String> = []
        for first in words {
            for second in words {
                let line = ["--to", "bob", first, second, "https://b.example"]
                guard let command = SendCommand(usual: ["send"] + line) else { continue }
                read.formUnion([first, second])
                #expect(try Self.shown(SendCommand.parse(line)) == Self.shown(command), "\(line)")
            }
        }
        let usual: Set = ["--to", "--description", "--color", "--wait", "--timeout", "--key", "--force", "--json"]
        #expect(read.intersection(options) == usual)  // --to-all conflicts with --to
    }
}
