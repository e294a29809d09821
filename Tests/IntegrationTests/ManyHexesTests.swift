import Testing

/// Commands for many hexes: the real programs, on a terminal for prompts.
@Suite("Many hexes", .timeLimit(.minutes(Patience.test)))
struct ManyHexesTests {
    @Test("delete accepts thousands of ids, ranges, a peer and --all, which asks or names the option; show and open mark as read")
    func tidyUp() async throws {
        try await TwoDaemons.with { two in
            let lines = (1...1_800).map { #"{"hexDescription":"hex \#($0)","links":["https://example.org/\#($0)"]}"# }
            #expect(try await two.send("--bulk", "-", input: lines.joined(separator: "\n")).status == 0)
            func bob(_ arguments: String...) async throws -> Command.Output {
                try await Command.run([Checkout.hexlist] + arguments, environment: two.bob.environment)
            }
            let many = try await Command.run(
                [Checkout.hexlist, "delete"] + (1...1_700).map(String.init), environment: two.bob.environment)
            #expect(many.status == 0 && many.out == "1700 hexes deleted.\n", "\(many)")
            #expect(try await bob("delete", "1690-1710").out == "10 hexes deleted.\n")
            #expect(try await bob("delete", "1-1710").out == "Nothing was deleted: no received hex in that range.\n")
            #expect(try await bob("read", "1-1710").out == "No unread hex in that range.\n")

            let shown = try await bob("show", "1711", "1712", "--peek")
            #expect(
                shown.out.contains("  1  https://example.org/1711\n") && shown.out.contains("  1  https://example.org/1712\n"), "\(shown)")
            func unread() async throws -> Int {
                let rows: [HexRow] = try JSONLines.decode(try await bob("inbox", "--unread", "--limit", "0", "--json").out)
                return rows.count
            }
            #expect(try await unread() == 90)
            #expect(try await bob("show", "1711", "99999", "1712").status == 6)
            #expect(try await unread() == 88)
            #expect(try await bob("open", "1713", "--with", "/bin/true", "--peek").status == 0)
            #expect(try await unread() == 88)
            #expect(try await bob("open", "1713", "--with", "/bin/true").status == 0)
            #expect(try await unread() == 87)
            #expect(try await bob("read", "1714-1720").out == "7 hexes marked as read.\n")

            let refused = try await bob("delete", "--all")
            #expect(refused.status == 2 && refused.err.contains("deletes 90 hexes of the inbox"), "\(refused)")
            #expect(refused.err.contains("`hexlist delete --all --yes`"), "\(refused)")
            let no = try await TerminalCommand.run(
                [Checkout.hexlist, "delete", "--all"], environment: two.bob.environment, steps: [.init(wait: "[y/N]", type: "n\n")])
            #expect(no.status == 1 && no.out.contains("Delete 90 hexes of the inbox?"), "\(no)")
            let yes = try await TerminalCommand.run(
                [Checkout.hexlist, "delete", "--all"], environment: two.bob.environment, steps: [.init(wait: "[y/N]", type: "y\n")])
            #expect(yes.status == 0 && yes.out.contains("90 hexes deleted."), "\(yes)")
            #expect(try await bob("inbox").err == "The inbox is empty.\n")
            #expect(try await bob("mine", "add", "https://example.org/own").status == 0)
            let own = try await bob("delete", "1-9999")
            #expect(own.status == 0 && own.out.contains("in that range. To delete from My Hexlist: `hexlist mine rm`."), "\(own)")
        }
    }

    @Test("a peer as last argument without --to: a prompt on a terminal, otherwise refused with the correct command")
    func missingTo() async throws {
        try await TwoDaemons.with { two in
            let link = "https://example.org/1"
            let refused = try await Command.run([Checkout.hexlist, "send", link, two.uuid], environment: two.ada.environment)
            #expect(refused.status == 2 && refused.err.contains("hexlist send --to \(two.uuid) \(link)\n"), "\(refused)")
            let nobody = try await Command.run([Checkout.hexlist, "send", link, "nobody"], environment: two.ada.environment)
            #expect(nobody.status == 2 && nobody.err.contains("--to PEER"), "\(nobody)")
            #expect(try await two.inbox().isEmpty)
            let asked = try await TerminalCommand.run(
                [Checkout.hexlist, "send", link, two.uuid], environment: two.ada.environment, steps: [.init(wait: "[y/N]", type: "y\n")])
            #expect(asked.status == 0, "\(asked)")
            let listed = try await Command.run([Checkout.hexlist, "inbox"], environment: two.bob.environment)
            #expect(listed.out.contains("example.org"), "without a description, host and path stand for it: \(listed)")
        }
    }
}
