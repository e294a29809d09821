import Foundation
import Testing

/// Everyday commands with the real programs, on a terminal and without one.
@Suite("Everyday commands", .timeLimit(.minutes(Patience.test)), .ifBuilt)
struct EverydayCommandTests {
    private static let link = "https://example.org/a"

    @Test("the recipient may be the first word, the last word, or the only trusted peer; a terminal asks, a script gets the command")
    func recipient() async throws {
        try await TwoDaemons.with { two in
            for words in [["local", Self.link], [Self.link, "local"], [Self.link]] {
                let command = [Checkout.hexlist, "send", "--timeout", "\(Patience.state)s"] + words
                let sent = try await TerminalCommand.run(
                    command, environment: two.ada.environment, steps: [.init(wait: "Send it to local? [y/N]", type: "y\n")])
                #expect(sent.status == 0 && sent.out.contains("stored"), "\(words): \(sent)")
                let script = try await Command.run(command, environment: two.ada.environment)
                #expect(script.status == 2 && script.err.contains("Run: hexlist send --to local"), "\(words): \(script)")
            }
            let no = try await TerminalCommand.run(
                [Checkout.hexlist, "send", Self.link], environment: two.ada.environment,
                steps: [.init(wait: "Send it to local? [y/N]", type: "n\n")])
            #expect(no.status == 1 && no.out.contains("Nothing was changed."), "\(no)")
            #expect(try await two.bob.hexlist("inbox", "--json").out.split(separator: "\n").count == 3)
            let other = try await two.ada.hexlist("send", "nobody", Self.link)
            #expect(other.status == 2 && other.err.contains("Trusted: local."), "\(other)")
        }
    }

    @Test("short options mean what the long ones mean") func shortOptions() async throws {
        try await TwoDaemons.with { two in
            let sent = try await two.ada.hexlist(
                "send", "-t", "local", "-d", "Title", "-c", "teal", "--timeout", "\(Patience.state)s", Self.link)
            #expect(sent.status == 0, "\(sent)")
            let inbox = try await two.bob.hexlist("inbox", "-n", "1", "--json").out
            #expect(inbox.contains(#""description":"Title""#) && inbox.contains(##""color":"#008080""##), "\(inbox)")
        }
    }

    @Test("a terminal asks before a hex goes to a stranger by its name; by UUID, and in a script, it does not") func stranger() async throws
    {
        try await TwoDaemons.with { two in
            #expect(try await two.ada.hexlist("peer", "forget", "local").status == 0)
            let uuid = try #require(
                try JSONLines.decode(
                    try await two.ada.hexlist("peers", "--wait", "1", "--timeout", "\(Patience.state)s", "--json").out, as: PeerRow.self
                ).first?.uuid)
            let command = [Checkout.hexlist, "send", "--wait", "queued", "--to"]
            let asked = try await TerminalCommand.run(
                command + ["local", Self.link], environment: two.ada.environment, steps: [.init(wait: "Send it anyway? [y/N]", type: "n\n")]
            )
            #expect(asked.status == 1 && asked.out.contains("is not trusted"), "\(asked)")
            let byUUID = try await TerminalCommand.run(command + [uuid, Self.link], environment: two.ada.environment, steps: [])
            #expect(byUUID.status == 0 && !byUUID.out.contains("[y/N]"), "\(byUUID)")
            #expect(try await Command.run(command + ["local", Self.link], environment: two.ada.environment).status == 0)
        }
    }

    @Test("on a terminal forgetting a peer shows what is removed, and deleting 20 links asks") func questions() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                let uri = "hexlist://peer/\(String(repeating: "ab", count: 32))?name=Barbara&address=127.0.0.1:9"
                #expect(try await daemon.hexlist("peer", "add", uri, "--yes").status == 0)
                #expect(try await daemon.hexlist("group", "add", "team", "Barbara").status == 0)
                let kept = try await TerminalCommand.run(
                    [Checkout.hexlist, "peer", "forget", "Barbara"], environment: daemon.environment,
                    steps: [.init(wait: "Forget Barbara? [y/N]", type: "\n")])
                #expect(kept.status == 1 && kept.out.contains("Removed: trusted, the alias Barbara, in @team, 1 address."), "\(kept)")
                #expect(try await daemon.hexlist("peer", "forget", "Barbara").out == "Barbara is forgotten.\n")

                func add(_ count: Int) async throws {
                    let links = (1...count).map { "https://example.org/\($0)" }
                    let added = try await Command.run([Checkout.hexlist, "mine", "add"] + links, environment: daemon.environment)
                    #expect(added.status == 0, "\(added)")
                }
                try await add(19)
                let few = try await TerminalCommand.run(
                    [Checkout.hexlist, "mine", "rm", "1"], environment: daemon.environment, steps: [])
                #expect(few.status == 0 && few.out.contains("1 hex deleted."), "\(few)")
                try await add(20)
                let many = try await TerminalCommand.run(
                    [Checkout.hexlist, "mine", "rm", "2"], environment: daemon.environment,
                    steps: [.init(wait: "Delete 1 hex with 20 links? [y/N]", type: "n\n")])
                #expect(many.status == 1, "\(many)")
                #expect(few.out.contains("To undo: hexlist mine restore 1"), "\(few)")
                #expect(try await daemon.hexlist("mine", "rm", "2").out == "1 hex deleted.\n")
                #expect(try await daemon.hexlist("mine").out.isEmpty)
                #expect(try await daemon.hexlist("mine", "bin", "--json").out.split(separator: "\n").count == 2)
                let back = try await daemon.hexlist("mine", "restore", "2", "1")
                #expect(back.out == "Hex 2 is back, at the top level.\nHex 1 is back, at the top level.\n", "\(back)")
                #expect(try await daemon.hexlist("mine", "restore", "2").status == 6)
                #expect(try await daemon.hexlist("show", "2").out.contains("https://example.org/20"))
                #expect(try await daemon.hexlist("mine", "edit", "2", "--remove", "1").status == 0)
                let log = try await daemon.hexlist("mine", "log", "2")
                #expect(log.out.contains("deleted 1 link") && log.out.contains("https://example.org/1\n"), "\(log)")
                let number = try #require(log.out.split(separator: "\n").dropFirst().first?.split(separator: " ").first)
                #expect(try await daemon.hexlist("mine", "trash").out.contains("https://example.org/1\n"))
                let undone = try await daemon.hexlist("mine", "undo", String(number))
                #expect(undone.out == "Change \(number) is undone. This restored 1 link.\n", "\(undone)")
                #expect(try await daemon.hexlist("mine", "undo", String(number)).status == 2)
                #expect(try await daemon.hexlist("mine", "trash", "--restore", "99").status == 6)
                #expect(try await daemon.hexlist("mine", "rm", "2").status == 0)
                let item = try await daemon.hexlist("mine", "trash", "--json").out.split(separator: ",")[0].dropFirst(#"{"number":"#.count)
                #expect(try await daemon.hexlist("mine", "trash", "--restore", String(item)).out == "Hex 2 is back, at the top level.\n")
                #expect(try await daemon.hexlist("mine", "rm", "2").status == 0)
                #expect(try await daemon.hexlist("mine", "bin", "--empty").status == 2)
                let emptied = try await daemon.hexlist("mine", "bin", "--empty", "--yes").out
                #expect(emptied == "1 item removed from the trash, and the change log is cleared.\n")
            }
        }
    }

    @Test("lists: newest first, since a time, and complete for scripts unless they are limited") func lists() async throws {
        try await TwoDaemons.with { two in
            for number in 1...25 {
                let sent = try await two.ada.hexlist(
                    "send", "--to", "local", "--timeout", "\(Patience.state)s", "https://example.org/\(number)")
                #expect(sent.status == 0, "\(sent)")
            }
            let all = try await two.bob.hexlist("inbox", "--json")
            #expect(all.out.split(separator: "\n").count == 25 && all.err.isEmpty, "\(all.err)")
            let cut = try await two.bob.hexlist("inbox", "--json", "--limit", "3")
            #expect(
                cut.out.split(separator: "\n").count == 3 && cut.err.hasPrefix("More: hexlist inbox --json --limit 3 --after "), "\(cut)")
            let next = try #require(cut.err.split(whereSeparator: \.isWhitespace).last)
            #expect(cut.out.hasSuffix(#","next":"\#(next)"}"# + "\n"), "\(cut)")
            #expect(!all.out.contains(#""next""#))
            #expect(try await two.bob.hexlist("inbox").out.split(separator: "\n").count == 21)
            #expect(try await two.bob.hexlist("inbox", "--since", "1h", "--json").out.split(separator: "\n").count == 25)
            let later = try await two.bob.hexlist("inbox", "--since", "2099-01-01")
            #expect(later.status == 0 && later.out.isEmpty && later.err == "No hexes since then.\n", "\(later)")
            #expect(try await two.bob.hexlist("inbox").out.contains("example.org/25"))
            let outbox = try await two.ada.hexlist("outbox", "--all", "-n", "2")
            let ids = outbox.out.split(separator: "\n").dropFirst().compactMap { $0.split(separator: " ").first }
            #expect(ids == ["25", "24"] && outbox.err.contains("23 more"), "\(outbox)")
            let oldest = try await two.ada.hexlist("outbox", "--all", "-n", "1", "--json").out
            #expect(oldest.contains(#""outboxID":1,"#), "\(oldest)")
        }
    }

    @Test("a backup goes through a pipe, and a file that is no list of peers is refused in one line") func files() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                let copy = "\(daemon.folder.path)/copy"
                let piped = try await Command.run(
                    ["/bin/sh", "-c", "'\(Checkout.hexlist)' backup - >'\(copy)'"], environment: daemon.environment)
                #expect(piped.status == 0 && piped.err.isEmpty, "\(piped)")
                #expect(try await daemon.hexlist("backup", copy + "2").status == 0)
                let sizes = try [copy, copy + "2"].map { try Data(contentsOf: URL(fileURLWithPath: $0)).count }
                #expect(sizes[0] > 10_000 && abs(sizes[0] - sizes[1]) < 1 << 20, "\(sizes)")
                try daemon.folder.write((1...500).map { "https://example.org/\($0)\n" }.joined(), to: "links")
                let refused = try await daemon.hexlist("peers", "import", "\(daemon.folder.path)/links")
                #expect(refused.status == 2 && refused.err.split(separator: "\n").count == 2, "\(refused)")
                #expect(refused.err.contains("links is not a list of peers."), "\(refused)")
            }
            let wrong = try await TerminalCommand.run(
                [Checkout.hexlist, "restore", "\(daemon.folder.path)/links"], environment: daemon.environment, steps: [])
            #expect(
                wrong.status == 2 && wrong.out.contains("links is not a backup of Hexlist.") && !wrong.out.contains("[y/N]"), "\(wrong)")
            let restored = try await TerminalCommand.run(
                [Checkout.hexlist, "restore", "\(daemon.folder.path)/copy"], environment: daemon.environment,
                steps: [.init(wait: "[y/N]", type: "y\n")])
            #expect(restored.status == 0, "\(restored)")
        }
    }

    @Test(
        "links go to the clipboard and come from it",
        .enabled(if: ["Xvfb", "xclip"].allSatisfy { Program.path(of: $0) != nil }, "Xvfb and xclip are not installed"))
    func clipboard() async throws {
        try await TwoDaemons.with { two in
            let added = try await two.ada.hexlist("mine", "add", Self.link, "https://example.org/b")
            #expect(added.status == 0, "\(added)")
            // Xvfb picks a free display and prints its number once it accepts connections.
            let script = """
                set -e
                Xvfb -displayfd 3 -screen 0 640x480x8 -nolisten tcp 3>"$1/display" 2>/dev/null &
                server=$!
                trap 'kill $server' EXIT
                while ! [ -s "$1/display" ]; do read -t 0.1 _ <> <(:) || :; done
                export DISPLAY=:$(cat "$1/display")
                "$2" copy 1
                xclip -selection clipboard -out
                echo
                "$2" copy 1 2 --json
                "$2" send --to local --clipboard --timeout "$3s"
                """
            let environment = two.ada.environment.merging(["PATH": "/usr/bin:/bin"]) { $1 }
            let run = try await Command.run(
                ["/bin/bash", "-c", script, "bash", two.ada.folder.path, Checkout.hexlist, "\(Patience.state)"], environment: environment)
            let lines = run.out.split(separator: "\n")
            #expect(run.status == 0, "\(run)")
            #expect(
                lines.prefix(4) == ["2 links copied.", "https://example.org/a", "https://example.org/b", #"{"hex":1,"links":1}"#], "\(run)")
            let shown = try await two.bob.hexlist("show", "1", "--json").out
            #expect(shown.contains(#""url":"https:\/\/example.org\/b""#) || shown.contains(#""url":"https://example.org/b""#), "\(shown)")
        }
    }
}
