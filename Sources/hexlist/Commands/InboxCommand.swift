import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct InboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inbox", abstract: "List what was received, newest first.",
        discussion: "The sender shown is the one that proved itself; what a hex claims of itself is added where it differs.")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Only what was not read yet.")
    var unread = false

    @Flag(help: "What strangers sent, held out of the inbox.")
    var held = false

    @Flag(help: "Links instead of hexes.")
    var links = false

    @Flag(help: "With --links: each link once, where it came last.")
    var unique = false

    @Option(help: ArgumentHelp("Only what this peer sent.", valueName: "peer"), completion: .peers)
    var from: String?

    @OptionGroup var page: PageOptions

    func validate() throws {
        if unique, !links { throw ValidationError("--unique goes with --links.") }
    }

    func run() async throws {
        let output = common.output
        let filter = HexlistClient.HexFilter(location: held ? "held" : "inbox", unread: unread, from: from)
        try await common.withClient { client in
            guard !links else {
                return try await LinkList(filter: filter, isUnique: unique, page: page).list(client, output)
            }
            var cursor = page.after
            var left = page.most
            var listed = 0
            repeat {
                let header = ["HEX", "", "RECEIVED", "FROM", "LINKS"] + (output.terminal.hasSwatches ? [""] : []) + ["DESCRIPTION"]
                var table = Table(listed == 0 ? header : [])
                cursor = try await client.hexes(filter, limit: min(left, LocalAPI.pageLimit), after: cursor) { hex in
                    listed += 1
                    left -= 1
                    if output.json { try output.object(hex) } else { table.add(cells(hex, output.terminal)) }
                }
                if !table.isEmpty { try output.table(table) }
            } while cursor != nil && left > 0
            try output.flush()
            if listed == 0, !output.json { StandardError.note(try await nothing(client)) }
            if let cursor { StandardError.note(MoreNote.text(cursor)) }
        }
    }

    /// The text for an empty list, with the number of held hexes: a user who does not know that strangers' hexes are held would not look
    /// there.
    private func nothing(_ client: HexlistClient) async throws -> String {
        var (count, areStrangers) = (0, true)
        if !held, let from {
            count = try await client.hexes(.init(location: "held", from: from), limit: LocalAPI.pageLimit).items.count
        } else if !held {
            count = try await client.status().held
            if count > 0 { areStrangers = try await client.peers(all: true).areHeldOfStrangers }
        }
        return InboxText.nothing(
            from: from, isHeld: held, unread: unread, isEnd: page.after != nil, held: count, areStrangers: areStrangers)
    }

    private func cells(_ hex: HexJSON, _ terminal: Terminal) -> [Table.Cell] {
        var cells = [
            Table.Cell(String(hex.id)), Table.Cell(hex.unread ? "*" : "", .good), Table.Cell(HumanText.moment(hex.receivedAt), .faint),
            Table.Cell(HexText.sender(hex, columns: 44), columns: 72), Table.Cell(count: hex.linkCount),
        ]
        if terminal.hasSwatches {
            let swatch = terminal.swatch(hex.color)
            cells.append(Table.Cell(swatch == nil ? "" : "■", swatch ?? .plain))
        }
        return cells + [Table.Cell(HexText.subject(hex), hex.unread ? .strong : .plain, minimum: 16)]
    }
}

enum InboxText {
    /// - Parameters:
    ///   - from: the peer whose hexes are listed, as typed; `nil` for all.
    ///   - isHeld: whether the list is that of held hexes.
    ///   - isEnd: whether this is a later page of a list.
    ///   - held: the number of held hexes, of that peer if there is one.
    ///   - areStrangers: whether all held hexes are of strangers.
    static func nothing(from: String?, isHeld: Bool, unread: Bool, isEnd: Bool, held: Int, areStrangers: Bool = true) -> String {
        let what = "Nothing \(isEnd ? "more " : "")\(unread ? "unread " : "")"
        let sender = from.map { "of \(TerminalText.clean($0, columns: 40)) " } ?? ""
        guard !isHeld else { return "\(what)\(sender)is held." }
        guard held > 0 else { return "\(what)\(sender)is in the inbox." }
        let hexes =
            "\(HumanText.count(held, "hex", "hexes"))\(from == nil && areStrangers ? " of strangers" : "") \(held == 1 ? "is" : "are") held"
        let option = from.map { " --from \(ShellText.quoted(TerminalText.clean($0, columns: 60)))" } ?? ""
        return "\(what)\(sender)is in the inbox. \(hexes): `hexlist inbox --held\(option)`"
    }
}

/// Texts about hexes.
enum HexText {
    /// The description; if it is blank, the subject in its place.
    static func subject(_ hex: HexJSON) -> String {
        HexSubject.isBlank(hex.description) ? hex.subject ?? "" : hex.description
    }

    /// What a list shows for a hex inside another; `nil` for one with nothing to show.
    static func title(_ hex: ChildJSON) -> String? {
        let text = HexSubject.isBlank(hex.description) ? hex.subject ?? "" : hex.description
        return HexSubject.isBlank(text) ? nil : text
    }

    /// What is inside a hex, `3 hexes with 40 links`; `nil` for one with nothing inside.
    static func inside(_ hex: HexJSON) -> String? {
        guard let hexes = hex.hexesInside else { return nil }
        return "\(HumanText.count(hexes, "hex", "hexes")) with \(HumanText.count(hex.linksInside ?? 0, "link", "links"))"
    }

    /// The proven sender, and the claimed one if that is another: a trusted peer forwards for others, of other peers it is only a claim. A
    /// peer without an alias is shown with its short UUID, because anybody can claim any name.
    /// - Parameter columns: the most columns of the proven sender.
    static func sender(_ hex: HexJSON, columns: Int) -> String {
        guard let peer = hex.peerUUID, let label = hex.label else { return unproven(hex) }
        let proven = label.listed(columns: columns)
        guard let claimed = PeerID(hex.senderUUID), claimed != peer else { return proven }
        let claim = PeerDisplayName(uuid: claimed.description, name: hex.senderName, alias: hex.senderAlias, trust: "")
        let isTrusted = hex.trust == .trusted
        return "\(proven), \(isTrusted ? "forwarded" : "says it is") from \(claim.listed(.named, columns: 40))"
    }

    /// What a hex says of its sender where none is proven. One of My Hexlist may be from nobody.
    private static func unproven(_ hex: HexJSON) -> String {
        if let claimed = PeerID(hex.senderUUID) {
            let claim = PeerDisplayName(uuid: claimed.description, name: hex.senderName, alias: hex.senderAlias, trust: "")
            return "says \(claim.listed(.named, columns: 40))"
        }
        guard hex.senderName.isEmpty else { return "says \(hex.senderName)" }
        return hex.location == HexLocation.mine.rawValue ? "" : "unknown"
    }
}

extension PeerDisplayName {
    /// The label for questions and notes. A long name cannot push what follows it out of sight.
    /// - Parameter columns: the most columns of the name on a terminal.
    func shown(_ detail: Detail = .short, columns: Int = 44) -> String {
        text(detail, columns: columns) { TextWidth.cut($0, columns: $1) }
    }

    /// The label for lists on standard output; not shortened unless that is a terminal.
    func listed(_ detail: Detail = .short, columns: Int = 44) -> String {
        shown(detail, columns: Terminal.output.isInteractive ? columns : .max)
    }
}
