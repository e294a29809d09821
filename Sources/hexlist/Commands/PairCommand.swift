import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

struct PairCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pair", abstract: "Make two machines trust each other by comparing six digits.",
        discussion: """
            Without a peer it waits two minutes for requests; with a PEER it sends one. Run it on both machines, in any order. Both show \
            six digits: answer yes on both machines only if they match.

            On a terminal you are then asked whether both machines are yours. If so, files that the other one sends are downloaded to your \
            download folder at once, up to 1 GiB a day; `hexlist peer set PEER --fetch never` turns it off.

            Without a terminal, answer from elsewhere with --confirm and the digits of the other screen; wrong digits mean no. No answer \
            within two minutes means no.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "List current and recent pairings.")
    var list = false

    @Flag(help: "Answer yes to PEER; CODE are the digits on its screen.")
    var confirm = false

    @Flag(help: "Answer no to PEER, or withdraw your request.")
    var reject = false

    @Argument(help: ArgumentHelp("A UUID, a prefix of one, an alias, or a stranger's name.", valueName: "peer"), completion: .peers)
    var peer: String?

    @Argument(help: ArgumentHelp("With --confirm: the six digits.", valueName: "code"))
    var code: String?

    func validate() throws {
        guard [list, confirm, reject].count(where: { $0 }) <= 1 else {
            throw ValidationError("Give only one of --list, --confirm and --reject.")
        }
        if list, peer != nil { throw ValidationError("Leave out the peer with --list.") }
        if confirm || reject, peer == nil { throw ValidationError("\(confirm ? "--confirm" : "--reject") needs a peer.") }
        if confirm != (code != nil) {
            throw ValidationError(confirm ? "--confirm needs the six digits after the peer." : "A code needs --confirm.")
        }
        if let code, Self.digits(code) == nil { throw ValidationError("`\(code)` is not six digits.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if list {
                try show(try await client.pairings(), output)
            } else if reject, let peer {
                try report(try await client.rejectPairing(with: peer), output)
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

    /// Removes the spaces from a typed code. Returns `nil` if the rest is not a code of six digits.
    private static func digits(_ code: String) -> String? {
        let digits = String(decoding: code.utf8.filter { $0 != UInt8(ascii: " ") }, as: UTF8.self)
        return PairingConfirmation.areDigits(digits) ? digits : nil
    }

    private func report(_ pairing: PairingView, _ output: Output) throws {
        if output.json { return try output.object(pairing) }
        try output.line("Not paired with \(PairText.name(pairing)).")
    }

    private func show(_ pairings: PairingOverview, _ output: Output) throws {
        if output.json {
            for pairing in pairings.items { try output.object(pairing) }
            return
        }
        if let until = pairings.openUntil { StandardError.note("Accepting requests until \(HumanText.time(until, seconds: true)).") }
        guard !pairings.items.isEmpty else {
            if pairings.openUntil == nil { StandardError.note("No pairing. To start one: `hexlist pair`.") }
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
    /// Returns the label of the peer, cleaned, with its trust and its short UUID. The users can compare the UUID by reading it aloud.
    static func name(_ pairing: PairingView) -> String { pairing.label.shown(.full, columns: 64) }

    /// Returns the line that is shown first after a request was sent.
    /// - Parameter namesCommand: whether to name the command to run on the other machine.
    static func asking(_ pairing: PairingView, namesCommand: Bool) -> String {
        let command = namesCommand ? " On \(pairing.label.shown(.named, columns: 64)), run `hexlist pair`." : ""
        return "Asking \(name(pairing)) for two minutes.\(command)"
    }

    /// Returns the line before the digits.
    static func heading(_ pairing: PairingView) -> String {
        let trusted = pairing.trust == .trusted ? " You already trust it." : ""
        return "\(name(pairing)) \(pairing.isOwn ? "answered." : "wants to pair.")\(trusted)"
    }

    /// The line after the digits.
    static let comparison = "Compare the six digits on both screens. Answer yes on both machines only if they match."

    /// Returns the question whether the peer is the same machine as an earlier one, reinstalled.
    static func takeoverQuestion(_ old: PeerView, waiting: Int) -> String {
        let more = waiting >= LocalAPI.pageLimit ? "at least " : ""
        let hexes = waiting > 0 ? ", and \(more)\(HumanText.count(waiting, "waiting hex", "waiting hexes"))" : ""
        return """
            \(old.label.shown(.full, columns: 64)) has the same name and is away. Is it this machine, before it was reinstalled? If so, \
            it gets the alias and the groups\(hexes), and the old key is forgotten.
            """
    }

    /// Returns the question whether the peer is a machine of the same user.
    /// - Parameter folder: the download folder.
    static func ownerQuestion(_ pairing: PairingView, folder: String) -> String {
        """
        Are both machines yours? If so, files that \(pairing.label.shown(.named, columns: 64)) sends are downloaded to \
        \(TerminalText.clean(folder, columns: 200)) at once, up to \(ByteCountText.of(PeerSetCommand.ownMachineLimit)) a day.
        """
    }

    enum Answer { case yes, no, otherDigits }

    /// Interprets an answer that the user typed. The digits of this pairing, with or without a gap, mean yes. Other digits may be a typo
    /// and count as no answer.
    static func answer(_ line: String, digits: String) -> Answer {
        guard !Terminal.isYes(line) else { return .yes }
        let typed = line.utf8.filter { ![UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: "\t"), UInt8(ascii: "\r")].contains($0) }
        guard (4...8).contains(typed.count), typed.allSatisfy(ASCII.isDigit) else { return .no }
        return typed.elementsEqual(digits.utf8) ? .yes : .otherDigits
    }

    /// Returns the line that is shown first while requests are accepted. Other machines do not find a hidden one, so its user has to send
    /// the request.
    static func accepting(_ own: StatusJSON) -> String {
        let name = TerminalText.clean(own.name, columns: 40)
        guard own.announce != false else {
            return """
                Accepting requests for two minutes, but this machine (\(name)) is hidden (`announce: false`), so others do not find it. \
                Run `hexlist pair` on the other machine and `hexlist pair NAME` here; `hexlist peers --all` lists the names.
                """
        }
        return "Accepting requests for two minutes. On the other machine, run `hexlist pair \(own.uuid.shortID)` (this machine is \(name))."
    }

    static func isTrusted(_ pairing: PairingView) -> String {
        "\(pairing.label.shown(.named, columns: 64)) is already trusted here. Pair again only if it does not trust this machine."
    }

    /// Returns the reason why a pairing failed. Mentions the number of remaining attempts if it is small.
    static func ended(_ pairing: PairingView) -> String {
        let why = pairing.message.map { ": \(TerminalText.clean($0, columns: 300))" } ?? "."
        return (["Not paired with \(name(pairing))\(why)"] + [left(pairing)].compactMap(\.self)).joined(separator: " ")
    }

    static func left(_ pairing: PairingView) -> String? {
        switch pairing.triesLeft {
        case 0?: "That was the last of three attempts in ten minutes; wait before the next one."
        case 1?: "One more attempt is left in these ten minutes."
        default: nil
        }
    }

    static func stillOpen(_ until: Timestamp, triesLeft: Int?) -> String {
        let last = triesLeft == 1 ? " One more failed attempt stops it." : ""
        return "Still accepting requests until \(HumanText.clock(until)); Ctrl-C stops.\(last)"
    }

    static func status(_ pairing: PairingView) -> ExitStatus {
        switch pairing.state {
        case .paired: .done
        case .ended where pairing.reason?.known == .refused: .refused
        case .waiting, .comparing, .confirmed, .ended: .failed
        }
    }
}
