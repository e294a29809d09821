import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

struct PairCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pair", abstract: "Trust each other by comparing six digits on two screens.",
        discussion: """
            By itself it takes requests for two minutes; with a PEER it asks that one. Run one on each machine, in any order. Both show \
            six digits: say yes on both only if they are the same.

            Where there is no terminal to ask on, the answer is given from elsewhere, with --confirm and the digits the other screen \
            shows; other digits are a no. Without an answer it is a no after two minutes.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "List what runs and what ended lately.")
    var list = false

    @Flag(help: "Say yes to PEER; CODE is what the other screen shows.")
    var confirm = false

    @Flag(help: "Say no to PEER, or take the request back.")
    var reject = false

    @Argument(help: ArgumentHelp("A UUID, a prefix of one, an alias, or a stranger's name.", valueName: "peer"), completion: .peers)
    var peer: String?

    @Argument(help: ArgumentHelp("The six digits, with --confirm.", valueName: "code"))
    var code: String?

    func validate() throws {
        guard [list, confirm, reject].count(where: { $0 }) <= 1 else {
            throw ValidationError("--list, --confirm and --reject do not go together.")
        }
        if list, peer != nil { throw ValidationError("--list takes no peer.") }
        if confirm || reject, peer == nil { throw ValidationError("\(confirm ? "--confirm" : "--reject") takes a peer.") }
        if confirm != (code != nil) {
            throw ValidationError(confirm ? "--confirm takes the six digits behind the peer." : "A code goes with --confirm.")
        }
        if let code, Self.digits(code) == nil { throw ValidationError("`\(code)` are not six digits.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if list {
                try show(try await client.pairings(), output)
            } else if reject, let peer {
                try tell(try await client.rejectPairing(with: peer), output)
            } else if confirm, let peer, let digits = code.flatMap(Self.digits) {
                let pairing = try await client.confirmPairing(with: peer, digits: digits)
                try await PairingDialog(client: client, output: output, isInteractive: false).follow(pairing)
            } else {
                let run = PairingDialog(client: client, output: output, isInteractive: isatty(STDIN_FILENO) == 1)
                if let peer { try await run.ask(peer) } else { try await run.takeRequests() }
            }
        }
        try output.flush()
    }

    /// The six digits of a code, which people may write with blanks; `nil` if they are no code.
    private static func digits(_ code: String) -> String? {
        let digits = String(decoding: code.utf8.filter { $0 != UInt8(ascii: " ") }, as: UTF8.self)
        return PairingConfirmation.areDigits(digits) ? digits : nil
    }

    private func tell(_ pairing: PairingView, _ output: Output) throws {
        if output.json { return try output.object(pairing) }
        try output.line("Not paired with \(PairText.name(pairing)).")
    }

    private func show(_ pairings: PairingOverview, _ output: Output) throws {
        if output.json {
            for pairing in pairings.items { try output.object(pairing) }
            return
        }
        if let until = pairings.openUntil { StandardError.note("Requests are taken until \(HumanText.time(until, seconds: true)).") }
        guard !pairings.items.isEmpty else {
            if pairings.openUntil == nil { StandardError.note("No request is taken, and none runs. `hexlist pair` begins.") }
            return
        }
        var table = Table(["ID", "NAME", "UUID", "TRUST", "STATE", "DIGITS", "WHY"])
        for pairing in pairings.items {
            let state = pairing.reason.map { "\(pairing.state.rawValue): \($0.text)" } ?? pairing.state.rawValue
            table.add([
                Table.Cell("\(pairing.id)"), Table.Cell(pairing.label.head, columns: 32), Table.Cell(pairing.peer.shortID),
                Table.Cell(pairing.label.trust),
                Table.Cell(state, pairing.state == .paired ? .good : .plain), Table.Cell(pairing.digits ?? "–", .strong),
                Table.Cell(pairing.message ?? "", columns: 300),
            ])
        }
        try output.table(table)
    }
}

/// Texts about pairings.
enum PairText {
    /// The peer's label, cleaned, with the short UUID, which the other person can read out, and the trust.
    static func name(_ pairing: PairingView) -> String { pairing.label.shown(.full, columns: 64) }

    /// The question about the digits for the user of this machine. Cleaned; several lines.
    static func question(_ pairing: PairingView, digits: String, _ terminal: Terminal) -> String {
        let trusted = pairing.trust == .trusted ? " It is trusted here already." : ""
        return """

            \(name(pairing)) \(pairing.isOwn ? "takes the request." : "asks to pair.")\(trusted)

                \(terminal.styled(digits, .strong))

            Compare the six digits with those on the other screen. Only if they are the same, say yes on both.
            """
    }

    enum Answer { case yes, no, otherDigits }

    /// The meaning of what was typed. The digits themselves, with or without a gap, count as yes; other digits may be a slip of the
    /// keyboard and count as no answer.
    static func answer(_ line: String, digits: String) -> Answer {
        guard !Terminal.isYes(line) else { return .yes }
        let typed = line.utf8.filter { ![UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: "\t"), UInt8(ascii: "\r")].contains($0) }
        guard (4...8).contains(typed.count), typed.allSatisfy(ASCII.isDigit) else { return .no }
        return typed.elementsEqual(digits.utf8) ? .yes : .otherDigits
    }

    static func isTrusted(_ pairing: PairingView) -> String {
        "\(pairing.label.shown(.named, columns: 64)) is trusted here already. Pairing again helps where it does not trust this machine."
    }

    /// A sentence that says why there was no pairing, and how many attempts are left if they are few.
    static func ended(_ pairing: PairingView) -> String {
        let why = pairing.message.map { ": \(TerminalText.clean($0, columns: 300))" } ?? "."
        return (["Not paired with \(name(pairing))\(why)"] + [left(pairing)].compactMap(\.self)).joined(separator: " ")
    }

    static func left(_ pairing: PairingView) -> String? {
        switch pairing.triesLeft {
        case 0?: "That was the last of three tries with it in ten minutes; before the next one it has to wait."
        case 1?: "One more try with it is left in these ten minutes."
        default: nil
        }
    }

    static func stillOpen(_ until: Timestamp, triesLeft: Int?) -> String {
        let last = triesLeft == 1 ? " One more that comes to nothing ends that." : ""
        return "Requests are still taken until \(HumanText.clock(until)); Ctrl-C ends that.\(last)"
    }

    static func status(_ pairing: PairingView) -> ExitStatus {
        switch pairing.state {
        case .paired: .done
        case .ended where pairing.reason?.known == .refused: .refused
        case .waiting, .comparing, .confirmed, .ended: .failed
        }
    }
}
