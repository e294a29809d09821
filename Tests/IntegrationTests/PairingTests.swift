import Foundation
import TestSupport
import Testing

/// Two real daemons on loopback, and two users on real terminals.
@Suite(
    "Pairing with the programs", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Checkout.hasPrograms, "needs hexlistd and hexlist: build first"))
struct PairingWithPrograms {
    /// Two daemons that have found each other.
    private struct Two {
        var one: LocalDaemon
        var other: LocalDaemon
        var uuidOfOne: String
        var uuidOfOther: String

        static func with(_ test: (Two) async throws -> Void) async throws {
            try await LocalDaemon.with(environment: ["NO_COLOR": "1"]) { one in
                try await one.running {
                    let first = try await status(of: one)
                    try await LocalDaemon.with(environment: ["NO_COLOR": "1"]) { other in
                        try other.folder.write("name: attic\nlisten: [127.0.0.1]\npeers: ['127.0.0.1:\(first.port)']\n", to: "config.yaml")
                        try await other.running {
                            for local in [one, other] {
                                let found = try await local.hexlist("peers", "--wait", "1", "--timeout", "\(Patience.state)s")
                                #expect(found.status == 0, "\(found)")
                            }
                            try await test(
                                Two(one: one, other: other, uuidOfOne: first.uuid, uuidOfOther: try await status(of: other).uuid))
                        }
                    }
                }
            }
        }

        private static func status(of local: LocalDaemon) async throws -> StatusRow {
            try JSONDecoder().decode(StatusRow.self, from: Data(try await local.hexlist("status", "--json").out.utf8))
        }

        func trusts() async throws -> [String] {
            var trusts: [String] = []
            for local in [one, other] {
                let peers = try JSONLines.decode(try await local.hexlist("peers", "--all", "--json").out, as: PeerRow.self)
                trusts += peers.filter { $0.state != "ghost" }.map(\.trust)
            }
            return trusts
        }

        /// Waits until the other side shows digits, and returns them.
        func digitsOfOther() async throws -> String {
            try await eventualValue("the other one shows digits") {
                let list = try await other.hexlist("pair", "--list", "--json").out
                return list.split(separator: "\n").last { $0.contains(#""state":"comparing""#) }
                    .flatMap { JSONLines.member("digits", of: $0) }.map { $0.replacing("\"", with: "") }
            }
        }
    }

    private static let question = "Do they match? [y/N]"
    private static let ownerQuestion = "Are both machines yours?"

    private static func pair(
        _ local: LocalDaemon, _ arguments: String..., steps: [TerminalCommand.Step], typed: String = "/dev/null"
    ) async throws -> Command.Output {
        try await TerminalCommand.run([Checkout.hexlist, "pair"] + arguments, environment: local.environment, steps: steps, typed: typed)
    }

    @Test("two users on two terminals see the same digits, confirm, and both are notified")
    func twoTerminals() async throws {
        try await Two.with { two in
            async let here = Self.pair(
                two.one, two.uuidOfOther, steps: [.init(wait: Self.question, type: "yes\n"), .init(wait: Self.ownerQuestion, type: "y\n")])
            async let there = Self.pair(
                two.other, steps: [.init(wait: Self.question, type: "Y\n"), .init(wait: Self.ownerQuestion, type: "\n")])
            let (asked, took) = (try await here, try await there)
            #expect(asked.status == 0 && took.status == 0, "\(asked)\(took)")
            let digits = try #require(asked.out.firstMatch(of: /\n    ([0-9]{6})\n/)?.1)
            #expect(took.out.contains("\n    \(digits)\n"), "\(asked)\(took)")
            #expect(asked.out.contains("Paired with attic \(two.uuidOfOther.prefix(8)) (trusted)"), "\(asked)")
            #expect(took.out.contains("local \(two.uuidOfOne.prefix(8)) (stranger) wants to pair."), "\(took)")
            #expect(took.out.contains("Paired with local"), "\(took)")
            #expect(asked.out.contains("Files from attic will be downloaded."), "\(asked)")
            let own = try await two.one.hexlist("peer", "show", two.uuidOfOther)
            #expect(own.out.contains("to the download folder, up to 1.0 GiB per hex and per day"), "\(own)")
            let other = try await two.other.hexlist("peer", "show", two.uuidOfOne)
            #expect(!other.out.contains("download folder"), "\(other)")
            #expect(try await two.trusts() == ["trusted", "trusted"])
        }
    }

    @Test("typing the digits confirms, other digits ask again; an already trusted peer is reported")
    func digitsTyped() async throws {
        try await Two.with { two in
            for isFirst in [true, false] {
                let no = TerminalCommand.Step(wait: Self.ownerQuestion, type: "n\n")
                async let here = Self.pair(two.one, two.uuidOfOther, steps: [.init(wait: Self.question, type: "y\n"), no])
                async let there = Self.pair(
                    two.other,
                    steps: [.init(wait: Self.question, type: "00 000\n"), .init(wait: Self.question, type: "{digits}\n"), no])
                let (asked, took) = (try await here, try await there)
                #expect(asked.status == 0 && took.status == 0, "\(asked)\(took)")
                #expect(took.out.contains("These are not the digits shown here."), "\(took)")
                #expect(asked.out.contains("is already trusted here. Pair again") == !isFirst, "\(asked)")
            }
            #expect(try await two.trusts() == ["trusted", "trusted"])
        }
    }

    @Test("after a no, the message says that requests are still accepted, and warns before the last try; waiting is reported once")
    func limits() async throws {
        try await Two.with { two in
            for round in 0..<3 {
                async let asking = two.other.hexlist("pair", two.uuidOfOne)
                var steps = [TerminalCommand.Step(wait: Self.question, type: "n\n")]
                if round < 2 { steps.append(.init(wait: "Still accepting requests until", type: TerminalCommand.Step.interrupt)) }
                if round == 2 { steps.append(.init(wait: "wait before the next one", type: TerminalCommand.Step.interrupt)) }
                let answered = try await Self.pair(two.one, steps: steps)
                #expect(answered.status == 1, "\(round): \(answered)")
                #expect(answered.out.contains("One more attempt is left") == (round == 1), "\(round): \(answered)")
                let asked = try await asking
                #expect(asked.status == 4, "\(asked)")
                let lines = asked.err.split(separator: "\n").filter { $0.hasPrefix("Waiting: ") }
                #expect(Set(lines).count == lines.count, "\(asked)")
            }
        }
    }

    @Test("one side unattended: a script lists the digits and confirms with those of the other screen")
    func unattended() async throws {
        try await Two.with { two in
            let waiting = try RunningCommand([Checkout.hexlist, "pair", "--json"], environment: two.other.environment)
            async let here = Self.pair(
                two.one, "attic", steps: [.init(wait: Self.question, type: "y\n"), .init(wait: Self.ownerQuestion, type: "n\n")])
            let shown = try await waiting.first { JSONLines.member("state", of: $0) == #""comparing""# ? $0 : nil }
            let digits = try await two.digitsOfOther()
            #expect(JSONLines.member("digits", of: shown) == "\"\(digits)\"", "\(shown)")
            let confirmed = try await two.other.hexlist("pair", "--confirm", two.uuidOfOne, digits)
            #expect(confirmed.status == 0, "\(confirmed)")
            let asked = try await here
            #expect(asked.status == 0 && asked.out.contains("\n    \(digits)\n"), "\(asked)")
            // The next state depends on whether the other user has answered already.
            let next = try await waiting.first { JSONLines.member("state", of: $0) }
            #expect([#""confirmed""#, #""paired""#].contains(next))
            if next != #""paired""# { #expect(try await waiting.first { JSONLines.member("state", of: $0) } == #""paired""#) }
            #expect(await waiting.status() == 0)
            #expect(try await two.trusts() == ["trusted", "trusted"])
            let again = try await two.other.hexlist("pair", "--confirm", two.uuidOfOne, digits)
            #expect(again.status == 6, "\(again)")
        }
    }

    /// Three at a time: after three failures within ten minutes a peer is refused.
    @Test(
        "anything but an explicit yes is a no, and both sides are notified",
        arguments: [
            [TerminalCommand.Step.end, TerminalCommand.Step.interrupt, "\n"], ["n\n", "no\n", "maybe\n"],
            ["yess\n", "yes please\n", "\u{1B}[Ayes\n"], ["1\n", "да\n", String(repeating: "y", count: 2_000) + "\n"],
        ])
    func no(typed: [String]) async throws {
        try await Two.with { two in
            for text in typed {
                async let asking = two.other.hexlist("pair", two.uuidOfOne)
                // After other input the program continues to accept requests. The end of the input and Ctrl-C end it.
                var steps = [TerminalCommand.Step(wait: Self.question, type: text)]
                if text.hasSuffix("\n") { steps.append(.init(wait: "You answered no", type: TerminalCommand.Step.interrupt)) }
                let answered = try await Self.pair(two.one, steps: steps)
                #expect(answered.status == 1, "\(text.debugDescription): \(answered)")
                let asked = try await asking
                #expect(asked.status == 4 && asked.err.contains("The other machine answered no"), "\(text.debugDescription): \(asked)")
                #expect(!answered.out.contains("Paired with") && !asked.out.contains("Paired with"))
            }
            #expect(try await two.trusts() == ["stranger", "stranger"])
            let again = try await two.other.hexlist("pair", two.uuidOfOne)
            #expect(again.status == 1 && again.err.contains("failed within ten minutes"), "\(again)")
        }
    }

    @Test("input typed before the prompt does not answer it")
    func typedAhead() async throws {
        try await Two.with { two in
            let typed = two.one.folder.path + "/typed"
            async let answering = Self.pair(
                two.one,
                steps: [.init(wait: "Accepting requests", type: "yes\nyes\n"), .init(wait: Self.question, type: TerminalCommand.Step.end)],
                typed: typed)
            try await eventually("both answers are typed") { FileManager.default.fileExists(atPath: typed) }
            let asked = try await two.other.hexlist("pair", two.uuidOfOne)
            let answered = try await answering
            #expect(answered.status == 1, "\(answered)")
            #expect(asked.status == 4, "\(asked)")
            #expect(try await two.trusts() == ["stranger", "stranger"])
        }
    }

    @Test("wrong digits are a no")
    func wrongCode() async throws {
        try await Two.with { two in
            async let waiting = two.one.hexlist("pair", two.uuidOfOther)
            async let asking = two.other.hexlist("pair", two.uuidOfOne)
            let digits = try await two.digitsOfOther()
            let usage = try await two.other.hexlist("pair", "--confirm", two.uuidOfOne, "12345")
            #expect(usage.status == 2, "\(usage)")
            let wrong = try await two.other.hexlist("pair", "--confirm", two.uuidOfOne, digits == "000000" ? "000001" : "000000")
            #expect(wrong.status == 1 && wrong.err.contains("digits were wrong"), "\(wrong)")
            let (refused, asked) = (try await waiting, try await asking)
            #expect(refused.status == 4, "\(refused)")
            #expect(asked.status == 1, "\(asked)")
            #expect(try await two.trusts() == ["stranger", "stranger"])
        }
    }

    @Test(
        "without an answer it is a no on both sides after two minutes",
        .enabled(if: LongTests.areWanted, "takes two minutes: HEXLIST_LONG_TESTS=1"))
    func timeout() async throws {
        try await Two.with { two in
            async let here = TerminalCommand.run(
                [Checkout.hexlist, "pair", two.uuidOfOther], environment: two.one.environment,
                steps: [.init(wait: Self.question, type: "")],
                seconds: Patience.command)
            async let there = two.other.hexlist("pair", two.uuidOfOne, seconds: Patience.command)
            let (asked, took) = (try await here, try await there)
            #expect([1, 4].contains(asked.status) && [1, 4].contains(took.status), "\(asked)\(took)")
            #expect(try await two.trusts() == ["stranger", "stranger"])
        }
    }
}
