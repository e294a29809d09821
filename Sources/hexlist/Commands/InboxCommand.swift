import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct InboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inbox", abstract: "List received hexes, newest first.",
        discussion: "The sender shown is the proven one; if a hex names another sender, that name is added.")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Only unread hexes.")
    var unread = false

    @Flag(help: "Hexes from strangers that wait for approval.")
    var held = false

    @Flag(help: "List links instead of hexes.")
    var links = false

    @Flag(help: "With --links: each link once, in the newest hex that has it.")
    var unique = false

    @Option(help: ArgumentHelp("Only hexes from this peer.", valueName: "peer"), completion: .peers)
    var from: String?

    @Option(help: ArgumentHelp("Only hexes received since then: 7d, 12h, or a day such as 2031-04-05.", valueName: "time"))
    var since: String?

    @OptionGroup var page: PageOptions

    func validate() throws {
        if unique, !links { throw ValidationError("--unique needs --links.") }
    }

    func run() async throws {
        let output = common.output
        let filter = HexlistClient.HexFilter(location: held ? "held" : "inbox", unread: unread, from: from, countsFiles: !output.json)
        let start = try since.map { try TimeInput.parse($0, isEnd: false) }
        try await common.withClient { client in
            guard !links else {
                return try await LinkList(filter: filter, isUnique: unique, since: start, page: page).list(client, output)
            }
            var cursor = page.after
            var left = page.maximum(for: output)
            var listed = 0
            var hasReachedStart = false
            repeat {
                let header = ["HEX", "", "RECEIVED", "FROM", "LINKS"] + (output.terminal.hasSwatches ? [""] : []) + ["DESCRIPTION"]
                var table = Table(listed == 0 ? header : [])
                cursor = try await client.hexes(filter, limit: min(left, LocalAPI.pageLimit), after: cursor) { hex in
                    hasReachedStart = hasReachedStart || start.map { hex.receivedAt.milliseconds < $0.milliseconds } ?? false
                    guard !hasReachedStart else { return }
                    listed += 1
                    left -= 1
                    if output.json { try output.object(hex) } else { table.add(cells(hex, output.terminal)) }
                }
                if !table.isEmpty { try output.table(table) }
                if hasReachedStart { cursor = nil }
            } while cursor != nil && left > 0
            try output.cut(cursor)
            try output.flush()
            if listed == 0, !output.json { StandardError.note(since == nil ? try await nothing(client) : "No hexes since then.") }
            if let cursor { StandardError.note(NextPageHint.text(cursor)) }
        }
    }

    /// Returns the text for an empty list. It mentions the number of held hexes, because new users do not know that hexes can be held.
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
            Table.Cell(HexText.sender(hex, columns: 44), columns: 72), HexText.contents(hex),
        ]
        if terminal.hasSwatches {
            let swatch = terminal.swatch(hex.color)
            cells.append(Table.Cell(swatch == nil ? "" : "■", swatch ?? .plain))
        }
        return cells + [Table.Cell(HexText.subject(hex), hex.unread ? .strong : .plain, minimum: 16)]
    }
}

enum InboxText {
    /// Returns the text for an empty list.
    /// - Parameters:
    ///   - from: the peer whose hexes are listed, as typed by the user; `nil` for all peers.
    ///   - isHeld: whether the list shows held hexes.
    ///   - isEnd: whether the empty page follows other pages of the list.
    ///   - held: the number of held hexes from `from`, or from all peers.
    ///   - areStrangers: whether all held hexes are from strangers.
    static func nothing(from: String?, isHeld: Bool, unread: Bool, isEnd: Bool, held: Int, areStrangers: Bool = true) -> String {
        let what = "\(isEnd ? "No more" : "No")\(unread ? " unread" : "") hexes"
        let sender = from.map { " from \(TerminalText.clean($0, columns: 40))" } ?? ""
        guard !isHeld else { return "\(what)\(sender) wait for approval." }
        let inbox = from == nil && !unread && !isEnd ? "The inbox is empty." : "\(what)\(sender) in the inbox."
        guard held > 0 else { return inbox }
        let hexes = "\(held)\(from == nil && areStrangers ? " from strangers" : "") \(held == 1 ? "waits" : "wait") for approval"
        let option = from.map { " --from \(ShellText.quoted(TerminalText.clean($0, columns: 60)))" } ?? ""
        return "\(inbox) \(hexes): `hexlist inbox --held\(option)`"
    }
}

/// Texts about a hex.
enum HexText {
    /// Returns the description; if it is blank, the subject.
    static func subject(_ hex: HexJSON) -> String {
        HexSubject.isBlank(hex.description) ? hex.subject ?? "" : hex.description
    }

    /// Returns the title of a hex inside another; `nil` if it is blank.
    static func title(_ hex: InnerHexJSON) -> String? {
        let text = HexSubject.isBlank(hex.description) ? hex.subject ?? "" : hex.description
        return HexSubject.isBlank(text) ? nil : text
    }

    /// Returns the cell for the contents of a hex in a list: the number and size of its files, at all levels, or else the number of its
    /// links.
    static func contents(_ hex: HexJSON) -> Table.Cell {
        guard let files = hex.files, files > 0 else { return MineText.count(hex.linkCount, dead: hex.deadLinks ?? 0) }
        let others = hex.linkCount + (hex.linksInside ?? 0) - files
        let links = others > 0 ? ", \(HumanText.grouped(others)) \(others == 1 ? "link" : "links")" : ""
        return Table.Cell(FileText.size(files, hex.fileBytes ?? 0) + links)
    }

    /// Describes the hexes inside a hex, such as `3 hexes with 40 links`; `nil` if there are none.
    static func inside(_ hex: HexJSON) -> String? {
        guard let hexes = hex.hexesInside else { return nil }
        return "\(HumanText.count(hexes, "hex", "hexes")) with \(HumanText.count(hex.linksInside ?? 0, "link", "links"))"
    }

    /// Returns the peer that delivered the hex. Appends the original sender that the hex claims, if that is another peer. The claim is
    /// shown as forwarded if a trusted peer delivered the hex, otherwise only as a claim. A peer without an alias is shown with its short
    /// UUID, because anybody can choose any name.
    /// - Parameter columns: maximum width of the label of the peer that delivered the hex.
    static func sender(_ hex: HexJSON, columns: Int) -> String {
        guard let peer = hex.peerUUID, let label = hex.label else { return unproven(hex) }
        let proven = label.listed(columns: columns)
        guard let claimed = PeerID(hex.senderUUID), claimed != peer else { return proven }
        let claim = PeerDisplayName(uuid: claimed.description, name: hex.senderName, alias: hex.senderAlias, trust: "")
        let isTrusted = hex.trust == .trusted
        return "\(proven), \(isTrusted ? "forwarded" : "says it is") from \(claim.listed(.named, columns: 40))"
    }

    /// Returns the sender that the hex claims, for a hex that no peer delivered. Without a claim, returns `unknown`; for a hex of My
    /// Hexlist, an empty text.
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
    /// Returns the label for a question or a note. A long name is cut, so that the rest of the label stays visible.
    /// - Parameter columns: maximum columns of the name.
    func shown(_ detail: Detail = .short, columns: Int = 44) -> String {
        text(detail, columns: columns) { TextWidth.cut($0, columns: $1) }
    }

    /// Returns the label for a list on standard output. A long name is cut on a terminal only.
    func listed(_ detail: Detail = .short, columns: Int = 44) -> String {
        shown(detail, columns: Terminal.output.isInteractive ? columns : .max)
    }
}
