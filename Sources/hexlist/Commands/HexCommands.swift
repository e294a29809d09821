import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show hexes with their links, and mark them as read.",
        discussion: """
            `hexlist open` takes the number in front of a link. Links that others added to a shared hex are marked as new until you have seen \
            them; showing a hex inside it does not count. --json does not mark hexes as read, nor links as seen.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Do not mark them as read.")
    var peek = false

    @Argument(help: ArgumentHelp("Numbers from `hexlist inbox`.", valueName: "hex"))
    var hexes: [HexID]

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            var unread: [Int64] = []
            var unseen: [HexJSON] = []
            var first: (any Error)?
            for (position, id) in hexes.enumerated() {
                do {
                    let hex = try await client.hex(id.value)
                    if output.json {
                        try output.object(hex)
                    } else {
                        if position > 0 { try output.line() }
                        let shared = hex.shared == nil ? nil : try await client.sharedHex(hex.id)
                        try show(hex, shared, output)
                    }
                    if hex.unread { unread.append(hex.id) }
                    if let shared = hex.shared, shared.new > 0, shared.hex == nil { unseen.append(hex) }
                } catch let error as HexlistError {
                    // An id that does not exist must not prevent the other hexes from being shown.
                    if first == nil { first = error }
                }
            }
            try output.flush()
            if !peek && !output.json {
                await client.markAsRead(unread)
                await client.markAsSeen(unseen)
            }
            if let first { throw first }
        }
    }

    private func show(_ hex: HexJSON, _ shared: SharedHexView?, _ output: Output) throws {
        var table = Table()
        table.add("hex", "\(hex.id), \(hex.location)\(hex.unread ? ", unread" : "")")
        let isOwn = hex.location == "mine" && hex.senderName.isEmpty && hex.senderUUID.isEmpty
        if !isOwn { table.add("from", HexText.sender(hex, columns: 80), .strong) }
        table.add(hex.location == "mine" ? "added" : "received", HumanText.exact(hex.receivedAt, output.terminal))
        if !hex.description.isEmpty { table.add("description", hex.description, .strong) }
        if !hex.color.isEmpty {
            let swatch = output.terminal.swatch(hex.color)
            table.add("colour", swatch == nil ? hex.color : "■ \(hex.color)", swatch ?? .plain)
        }
        if let tags = hex.tags { table.add("tags", tags.joined(separator: ", ")) }
        if let note = hex.note { table.add("note", note) }
        if let parent = hex.parent { table.add("inside", "hex \(parent)") }
        if let shared {
            let isInside = hex.shared?.hex != nil
            let new = isInside ? 0 : hex.shared?.new ?? 0
            let line = isInside ? SharingText.line(inside: shared) : SharingText.line(shared)
            table.add("shared", new > 0 ? "\(line) · \(SharingText.newLinks(new))" : line)
        }
        if let inside = HexText.inside(hex) { table.add("contains", inside) }
        if let extra = LinkedFileMetadata.rest(hex.extra, hex.links ?? [], hex.children ?? []) { table.add("extra", extra.text) }
        try output.table(table)
        try show(hex.links ?? [], hex.extra, output, indent: "")
        try show(hex.children ?? [], hex.extra, output, indent: "")
        guard let advice = Self.advice(hex) else { return }
        try output.flush()
        StandardError.note(advice)
    }

    /// Returns the advice on downloading the files of a hex; `nil` if it has none.
    static func advice(_ hex: HexJSON) -> String? {
        let own = (hex.links ?? []).enumerated().filter { FileArgument.isLink($0.element.url) }.map { $0.offset + 1 }
        guard !own.isEmpty || hasFiles(hex.children ?? []) else { return nil }
        let one = own.first.map { ", one of them: `hexlist fetch \(hex.id) \($0)`" } ?? ""
        return "To download the files: `hexlist fetch \(hex.id) --to FOLDER`\(one)."
    }

    private static func hasFiles(_ children: [InnerHexJSON]) -> Bool {
        children.contains { child in child.links.contains { FileArgument.isLink($0.url) } || hasFiles(child.children ?? []) }
    }

    /// Prints the hexes inside a hex, with their ids and links. Recursive, with one call per level.
    private func show(_ children: [InnerHexJSON], _ extra: JSONValue?, _ output: Output, indent: String) throws {
        for (position, child) in children.enumerated() {
            let extra = LinkedFileMetadata.child(extra, position)
            try output.line()
            let title = HexText.title(child).map { "  \($0)\(LinkedFileMetadata.isFolder(extra) ? "/" : "")" }
            try output.line("\(indent)  hex \(child.id)", .strong, title ?? "")
            try show(child.tags, child.note, output, indent: indent + "  ")
            try show(child.links, extra, output, indent: indent + "  ")
            try show(child.children ?? [], extra, output, indent: indent + "  ")
        }
    }

    private func show(_ tags: [String]?, _ note: String?, _ output: Output, indent: String) throws {
        if let tags { try output.line("\(indent)tags: \(tags.joined(separator: ", "))") }
        if let note { try output.line("\(indent)note: \(note)") }
    }

    /// Prints the links of a hex, then its files: one line each, in natural order of their names.
    private func show(_ links: [LinkJSON], _ extra: JSONValue?, _ output: Output, indent: String) throws {
        let width = String(links.count).count
        func numbered(_ position: Int) -> String {
            let number = String(position + 1)
            return "\(indent)  \(String(repeating: " ", count: width - number.count))\(number)  "
        }
        let rest = indent + String(repeating: " ", count: width + 4)
        for (position, link) in links.enumerated() where !FileArgument.isLink(link.url) {
            try output.line()
            try output.line("\(numbered(position))\(link.url)")
            let service = PeerTextComparison.areEqual(link.service, Service.unknown.rawValue) ? "" : link.service
            let about = [link.linkDescription, service, link.unread == false ? "read" : "", link.new == true ? "new" : ""].filter {
                !$0.isEmpty
            }.joined(separator: " · ")
            if !about.isEmpty { try output.line("\(rest)\(about)") }
            try show(link.tags, link.note, output, indent: rest)
            if let dead = link.dead { try output.line("\(rest)\(MineText.dead(dead))") }
            if let reason = link.notOpened { try output.line("\(rest)not clickable: \(reason)") }
            if let before = link.before { try output.line("\(rest)\(LinkList.earlier(before))") }
        }
        let files = links.indices.filter { FileArgument.isLink(links[$0].url) }.map {
            (position: $0, name: FileText.name(of: links[$0].url))
        }
        guard !files.isEmpty else { return }
        try output.line()
        let column = files.map { TextWidth.of(TerminalText.clean($0.name)) }.filter { $0 <= Self.nameColumns }.max() ?? 0
        for (position, name) in files.sorted(by: { NaturalOrder.precedes($0.name, $1.name) }) {
            let link = links[position]
            let size = LinkedFileMetadata.size(extra, link: position).map(ByteCountText.of) ?? ""
            let padding = String(repeating: " ", count: max(0, column - TextWidth.of(TerminalText.clean(name))))
            let about =
                PeerTextComparison.areEqual(link.linkDescription, name) || link.linkDescription.isEmpty ? "" : "  \(link.linkDescription)"
            try output.line("\(numbered(position))\(name)\(padding)  \(size)\(about)\(link.new == true ? "  new" : "")")
            try show(link.tags, link.note, output, indent: rest)
            if let before = link.before { try output.line("\(rest)\(LinkList.earlier(before))") }
        }
    }

    /// Maximum width of the column of file names. Longer names are not aligned.
    private static let nameColumns = 50
}

extension HexlistClient {
    /// Marks hexes as read after they were shown. A failure causes only a note.
    func markAsRead(_ ids: [Int64]) async {
        guard !ids.isEmpty else { return }
        do {
            _ = try await setUnread(false, .ids(ids))
        } catch {
            StandardError.note("Not marked as read: \((error as? HexlistError)?.message ?? "\(error)")")
        }
    }
}

extension HexlistClient {
    /// Marks the links of shared hexes as seen after they were shown. A failure causes only a note.
    func markAsSeen(_ hexes: [HexJSON]) async {
        do {
            for hex in hexes { try await markSeen(hex.id, through: hex.shared?.sequence) }
        } catch {
            StandardError.note("Not marked as seen: \((error as? HexlistError)?.message ?? "\(error)")")
        }
    }
}

/// The arguments that select the hexes to change.
struct HexArguments: ParsableArguments {
    @Option(help: ArgumentHelp("All hexes from this peer.", valueName: "peer"), completion: .peers)
    var from: String?

    @Flag(help: "All hexes.")
    var all = false

    @Argument(
        help: ArgumentHelp("Numbers, or ranges such as 3-40.", valueName: "hex"), completion: .hexes,
        transform: HexSelectionArgument.init(parsing:))
    var hexes: [HexSelectionArgument] = []

    func validate() throws {
        guard [!hexes.isEmpty, from != nil, all].count(where: \.self) == 1 else {
            throw ValidationError("Which hexes? Give numbers (7, 3-40), --from PEER or --all.")
        }
    }

    /// The single links among the arguments, which only `read` accepts.
    var links: [UnreadPatch.Link] {
        hexes.compactMap { hex in hex.link.map { UnreadPatch.Link(hex: hex.ids.lowerBound, number: Int64($0)) } }
    }

    /// Refuses links, for commands that change whole hexes.
    func refuseLinks() throws {
        guard let link = links.first else { return }
        throw ValidationError("\(link.hex).\(link.number) is a link. Give the number of a whole hex: \(link.hex).")
    }

    /// Whether any argument is a range. A range selects received hexes only, so it selects nothing if all its ids belong to My Hexlist.
    var hasRange: Bool { hexes.contains { $0.ids.count > 1 } }

    /// Whether all hexes are selected by single ids.
    var onlyIDs: Bool { !hexes.isEmpty && !hasRange }

    /// Returns the selection for a request.
    /// - Parameters:
    ///   - location: the location of the hexes that --from and --all select; `nil` for the default.
    ///   - newest: the id of the newest hex before the user was asked to confirm. Hexes that arrived later are excluded.
    func selection(_ location: String? = nil, newest: Int64? = nil) -> HexSelection {
        guard !hexes.isEmpty else { return .list(from: from, location: location, newest: newest) }
        let ranges = hexes.filter { $0.link == nil }.map(\.ids)
        return .ids(ranges.filter { $0.count == 1 }.map(\.lowerBound), ranges: ranges.filter { $0.count > 1 })
    }
}

/// The ids that an argument selects: a single id, a range such as `3-40`, or the id of a hex and the number of a link, such as `7.2`.
struct HexSelectionArgument {
    var ids: ClosedRange<Int64>
    /// The number of the link, from 1; `nil` for whole hexes.
    var link: Int?

    init(parsing text: String) throws {
        if text.contains("."), let id = HexOrLinkID(argument: text) {
            (ids, link) = (id.hex...id.hex, id.link)
            return
        }
        let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map { HexID(argument: String($0))?.value }
        guard let first = ends.first ?? nil, let last = ends.last ?? nil else {
            throw ValidationError("`\(TerminalText.clean(text, columns: 40))`: give numbers (7, 3-40), --from PEER or --all.")
        }
        guard first <= last else { throw ValidationError("A range begins with the lower number: \(last)-\(first).") }
        ids = first...last
    }
}

struct ReadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "read", abstract: "Mark hexes, or single links of them, as read.",
        discussion: """
            `7.2` is the second link of hex 7. A hex is read when all its links are. `hexlist inbox --links --unread` lists the unread \
            links.

            --all and --from apply to the inbox.
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var chosen: HexArguments

    func run() async throws {
        let links = chosen.links
        var marked = 0
        try await common.reportCount { client in
            if !links.isEmpty { marked = try await client.setUnread(false, links: links).changed }
            guard links.count < chosen.hexes.count || links.isEmpty else { return ChangeCountJSON(changed: marked) }
            var changed = try await client.setUnread(false, chosen.selection())
            changed.changed += marked
            return changed
        } as: {
            Self.report(links: marked, hexes: $0 - marked) ?? Self.nothing(hasRange: chosen.hasRange)
        }
    }

    /// Returns the text about the marked links and hexes; `nil` if there are none.
    static func report(links: Int, hexes: Int) -> String? {
        let parts = [(links, "link", "links"), (hexes, "hex", "hexes")].filter { $0.0 > 0 }.map { HumanText.count($0.0, $0.1, $0.2) }
        return parts.isEmpty ? nil : "\(parts.joined(separator: " and ")) marked as read."
    }

    static func nothing(hasRange: Bool) -> String {
        hasRange ? "No unread hex in that range." : "Already read."
    }
}

struct DeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete hexes. A deleted hex is not accepted again if it is resent.",
        discussion: """
            A range covers received hexes only, not My Hexlist. --all and --from apply to the inbox, or with --held to the hexes that \
            wait for approval. Hexes inside a hex are deleted with it. On a terminal it asks first if there are hexes inside, or 20 \
            links or more.

            Hexes of My Hexlist can be brought back for 60 days, with `hexlist mine restore`. Received hexes cannot: `hexlist export` \
            writes a copy first.
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var chosen: HexArguments

    @Flag(help: "With --all or --from: hexes that wait for approval.")
    var held = false

    @Flag(help: "Do not ask.")
    var yes = false

    func validate() throws {
        try chosen.refuseLinks()
        if held, !chosen.hexes.isEmpty { throw ValidationError("--held needs --all or --from.") }
    }

    func run() async throws {
        let location = held ? "held" : nil
        var inside: String?
        var hasOwn = false
        var own: [Int64] = []
        try await common.reportCount { client in
            guard chosen.all else {
                if chosen.onlyIDs { own = await client.ownHexes(of: chosen.hexes.map(\.ids.lowerBound)) }
                let selection = chosen.selection(location)
                // An older daemon does not support this request. Any other error will occur again in the deletion and is reported there.
                let deletion = try? await client.deletion(selection)
                inside = deletion.flatMap(MineText.inside)
                if let deletion, !yes, isatty(STDIN_FILENO) == 1, inside != nil || deletion.links >= Confirmation.linkLimit {
                    if chosen.onlyIDs { Confirmation.noteCopy(chosen.hexes.map(\.ids.lowerBound)) }
                    try Terminal.confirm(
                        "Delete \(MineText.deletion(deletion))? \(Self.finality(own: own.count, of: chosen.hexes.count)) [y/N]")
                }
                let deleted = try await client.delete(selection)
                // The message explains an empty result if the range contains hexes of My Hexlist.
                if deleted.changed == 0, chosen.hasRange { hasOwn = (try? await client.hasOwnHex(in: chosen.hexes.map(\.ids))) ?? false }
                return deleted
            }
            guard !yes else { return try await client.delete(chosen.selection(location)) }
            guard let newest = try await client.newest(location) else { return ChangeCountJSON(changed: 0) }
            let status = try await client.status()
            let count = held ? status.held : status.inbox
            // An older daemon does not report the number.
            let hexes = count.map { HumanText.count($0, "hex", "hexes") } ?? "all hexes"
            let what = hexes + (held ? " waiting for approval" : " of the inbox")
            try Confirmation(
                deed: "deletes \(what)", question: "Delete \(what)? This cannot be undone.",
                line: "hexlist delete --all\(held ? " --held" : "") --yes"
            ).ask()
            return try await client.delete(chosen.selection(location, newest: newest))
        } as: {
            guard $0 == 0 else { return MineText.deleted($0, inside: inside) }
            return Self.nothing(hasRange: chosen.hasRange, held: held, hasOwn: hasOwn)
        }
        if !own.isEmpty, !common.output.json { UndoHint.note(["mine", "restore"] + own.map(String.init)) }
    }

    /// Returns the sentence of the question that says whether the deletion can be undone.
    /// - Parameters:
    ///   - own: number of hexes of My Hexlist.
    ///   - all: number of selected hexes.
    static func finality(own: Int, of all: Int) -> String {
        own == 0
            ? "This cannot be undone."
            : own == all ? "They can be brought back for 60 days." : "Only those of My Hexlist can be brought back."
    }

    /// Returns the text if nothing was deleted.
    /// - Parameter hasOwn: whether the ranges contain hexes of My Hexlist.
    static func nothing(hasRange: Bool, held: Bool, hasOwn: Bool) -> String {
        let why =
            if hasRange {
                "no received hex in that range." + (hasOwn ? " To delete from My Hexlist: `hexlist mine rm`." : "")
            } else {
                held ? "no hex waits for approval." : "the inbox has none of them. For hexes that wait for approval: --held."
            }
        return "Nothing was deleted: \(why)"
    }
}

struct AcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Move hexes that wait for approval into the inbox, without trusting their sender.",
        discussion: "`hexlist inbox --held` lists them.")

    @OptionGroup var common: CommonOptions
    @OptionGroup var chosen: HexArguments

    @Flag(help: "Do not ask.")
    var yes = false

    func validate() throws { try chosen.refuseLinks() }

    func run() async throws {
        try await common.reportCount { client in
            guard chosen.all, !yes else { return try await client.accept(chosen.selection()) }
            guard let newest = try await client.newest("held") else { return ChangeCountJSON(changed: 0) }
            let count = try await client.status().held
            let what = HumanText.count(count, "hex", "hexes")
            try Confirmation(
                deed: "accepts \(what)", question: "Accept \(what) from strangers into the inbox?", line: "hexlist accept --all --yes"
            ).ask()
            return try await client.accept(chosen.selection(newest: newest))
        } as: {
            $0 == 0 ? "Nothing to accept: none of them waits for approval." : "\(HumanText.count($0, "hex", "hexes")) accepted."
        }
    }
}

extension HexlistClient {
    /// Returns the id of the newest hex of a list. Read before the user is asked, so that hexes which arrive during the question can be
    /// excluded.
    fileprivate func newest(_ location: String?) async throws -> Int64? {
        try await hexes(.init(location: location ?? "inbox"), limit: 1).items.first?.id
    }

    /// Returns those of the first 20 ids that belong to hexes of My Hexlist.
    fileprivate func ownHexes(of ids: [Int64]) async -> [Int64] {
        var own: [Int64] = []
        for id in ids.prefix(20) where (try? await hex(id))?.location == "mine" { own.append(id) }
        return own
    }

    /// Whether one of the ranges contains a top-level hex of My Hexlist.
    fileprivate func hasOwnHex(in ranges: [ClosedRange<Int64>]) async throws -> Bool {
        var cursor: String?
        repeat {
            let page = try await hexes(.init(location: "mine"), limit: LocalAPI.pageLimit, after: cursor)
            if page.items.contains(where: { hex in ranges.contains { $0.contains(hex.id) } }) { return true }
            cursor = page.next
        } while cursor != nil
        return false
    }
}

extension CommonOptions {
    /// Runs `body`, which changes hexes, and prints the number of changed hexes.
    func reportCount(_ body: (HexlistClient) async throws -> ChangeCountJSON, as text: (Int) -> String) async throws {
        let output = output
        let changed = try await withClient(body)
        if output.json { try output.object(changed) } else { try output.line(text(changed.changed)) }
        try output.flush()
    }
}
