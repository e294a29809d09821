import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

/// The output of `hexlist` without a command: news, and commands to try next.
struct Overview: Equatable {
    struct Line: Equatable {
        var text: String
        var command: String
    }

    var heading: String
    var new: [Line] = []
    var next: [Line] = []

    /// Collects the news and suggestions.
    /// - Parameters:
    ///   - peers: all peers, including offline ones.
    ///   - fetches: whether any download runs or waits.
    ///   - deletions: recent events about links that other machines deleted.
    ///   - offers: the hexes that others offer to share.
    ///   - ended: recent events about shared hexes whose owners ended the sharing, or made them read-only.
    ///   - resumed: recent events about shared hexes that their owners shared again.
    ///   - unseen: the shared hexes with links that the user has not seen.
    init(
        _ status: StatusJSON, _ pairings: PairingOverview, _ peers: [PeerView], fetches: Bool = false, deletions: [EventJSON] = [],
        offers: [SharedHexOffer] = [], ended: [EventJSON] = [], resumed: [EventJSON] = [], unseen: [SharedHexView] = []
    ) {
        let here = peers.filter { $0.state == .verified && $0.trust != .blocked }
        let trusted = here.filter { $0.trust == .trusted }
        let strangers = here.filter { $0.trust == .stranger }
        let away = peers.count { $0.trust == .trusted && $0.state == .away }
        let seen = here.isEmpty ? "no peers" : "\(HumanText.count(here.count, "peer", "peers")), \(trusted.count) trusted"
        heading =
            "\(status.name) sees \(seen)\(away > 0 ? "; \(HumanText.count(away, "trusted peer is", "trusted peers are")) away" : "")."

        for peer in peers where peer.isTwice { add("two machines use the identity of \(peer.label.shown(.named))", "hexlist peers --why") }
        for pairing in pairings.items where !pairing.state.isFinal {
            let name = pairing.label.shown(.named)
            if pairing.state == .comparing, !pairing.isOwn {
                add("\(name) wants to pair", "hexlist pair --confirm \(pairing.peer.shortID) CODE")
            } else {
                add("pairing with \(name)", "hexlist pair --list")
            }
        }
        if status.unread > 0 { add("\(status.unread) unread", "hexlist inbox --unread") }
        if status.held > 0 {
            add("\(status.held) waiting for your approval\(peers.areHeldOfStrangers ? ", from strangers" : "")", "hexlist inbox --held")
        }
        let (waiting, failed) = (status.outbox.rows(.queued, .sending), status.outbox.rows(.rejected, .expired, .failed))
        if waiting > 0 { add("\(waiting) waiting to be sent", "hexlist outbox") }
        if failed > 0 { add("\(failed) not delivered", "hexlist outbox") }
        if fetches { add("files being downloaded", "hexlist transfers") }
        for offer in offers.prefix(Self.offerLimit) {
            add(SharingText.news(offer), offers.count == 1 ? "hexlist mine join" : "hexlist mine join \(offer.number)")
        }
        if offers.count > Self.offerLimit {
            add(HumanText.count(offers.count - Self.offerLimit, "more offer", "more offers"), "hexlist mine join")
        }
        for hex in unseen.prefix(Self.unseenLimit) {
            guard let id = hex.hex else { continue }
            add("\(SharingText.newLinks(hex.new)) in \(SharingText.title(hex.title))", "hexlist show \(id)")
        }
        if unseen.count > Self.unseenLimit {
            let others = unseen.count - Self.unseenLimit
            add("new links in \(HumanText.count(others, "more shared hex", "more shared hexes"))", "hexlist mine share")
        }
        for event in resumed {
            let name = event.peer.map { PeerDisplayName($0, event.tag).shown(.named) } ?? "another person"
            let resumption = SharingResumption(event)
            add(resumption.summary(name), resumption.command)
        }
        for event in ended {
            let end = SharingEnd(event)
            let name = event.peer.map { PeerDisplayName($0, event.tag).shown(.named) } ?? "another person"
            add(end.news(name), end.command ?? "hexlist mine share")
        }
        for event in deletions {
            let name = event.peer.map { PeerDisplayName($0, event.tag).shown(.named) } ?? "another machine"
            let deletion = LargeDeletion(event)
            add(deletion.summary(name), deletion.command)
        }
        let hasNoDiscovery = [.unavailable, .degraded].contains(status.avahi.state.known)
        if hasNoDiscovery || status.identity?.message != nil || status.storeFault != nil || status.configurationFault != nil
            || !status.hookFaults.isEmpty || !status.routeProblems.isEmpty
        {
            add("something is wrong", "hexlist doctor")
        }

        if let peer = trusted.first {
            let name = peer.alias ?? peer.uuid?.description ?? peer.name
            next.append(
                Line(text: "send \(peer.label.shown(.named)) a link", command: "hexlist send --to \(Self.word(name)) https://example.org"))
        }
        if let peer = strangers.first, let uuid = peer.uuid {
            next.append(Line(text: "trust \(peer.label.shown(.named))", command: "hexlist pair \(uuid.shortID)"))
        } else if here.isEmpty {
            next.append(Line(text: "find out why", command: "hexlist doctor"))
        }
        next.append(Line(text: "see all commands", command: "hexlist --help"))
    }

    /// Time for which a deletion of many links by another machine is news, unless it was undone before, and the end of a sharing.
    private static let newsDays = 3
    /// Maximum number of offers that are listed.
    private static let offerLimit = 3
    /// Maximum number of shared hexes whose new links are listed.
    private static let unseenLimit = 3

    /// Returns the recent events of a type, oldest first.
    private static func news(_ client: HexlistClient, _ type: String) async throws -> [EventJSON] {
        let since = Timestamp.now.milliseconds - Int64(newsDays) * 86_400_000
        var events: [EventJSON] = []
        do {
            _ = try await client.events(.last(10), types: [type], limit: 10) { if $0.at.milliseconds >= since { events.append($0) } }
        } catch let error as HexlistError where error.code == .badRequest {
            return []  // a daemon of an earlier version does not have this type
        }
        return events
    }

    /// Returns the recent events about shared hexes whose owners ended the sharing, or made them read-only, unless the user deleted the hex
    /// or the access changed since; one per hex.
    static func ended(_ client: HexlistClient, _ lists: SharedHexes) async throws -> [EventJSON] {
        var seen: Set<String> = []
        return try await news(client, "list.ended").reversed().filter { event in
            let end = SharingEnd(event)
            // The event has no hex if the contents had not arrived on this machine.
            let shared = lists.shared.first { shared in
                !shared.owned && shared.access.known == (end.isEnd ? ShareAccess.none : .read)
                    && (end.hex.map { $0 == shared.hex } ?? shared.peers.contains { $0.uuid == event.peer })
            }
            return shared.map { seen.insert($0.list).inserted } ?? false
        }
    }

    /// Returns the recent events about shared hexes that their owners shared again with the user, unless the user deleted the hex or the
    /// sharing ended since; one per hex.
    static func resumed(_ client: HexlistClient, _ lists: SharedHexes) async throws -> [EventJSON] {
        var seen: Set<Int64> = []
        return try await news(client, "list.resumed").reversed().filter { event in
            guard let hex = SharingResumption(event).hex else { return false }
            return lists.shared.contains { $0.hex == hex && !$0.owned && $0.access.known != ShareAccess.none } && seen.insert(hex).inserted
        }
    }

    /// Returns the recent events about links that other machines of the user deleted, of which all changes can still be undone.
    static func deletions(_ client: HexlistClient) async throws -> [EventJSON] {
        let events = try await news(client, "list.deleted")
        guard let first = events.first else { return [] }
        // An event is recorded after the changes that it names.
        let since = Timestamp(milliseconds: first.at.milliseconds - 3_600_000)
        let log = try await client.mineLog(since: since, limit: LocalAPI.pageLimit)
        let undoable = Set(log.items.lazy.filter(\.undoable).map(\.number))
        return events.filter { event in
            let changes = LargeDeletion(event).changes
            return !changes.isEmpty && undoable.isSuperset(of: changes)
        }
    }

    private mutating func add(_ text: String, _ command: String) { new.append(Line(text: text, command: command)) }

    private static func word(_ name: String) -> String { ShellText.quoted(TerminalText.clean(name)) }

    func print(_ output: Output) throws {
        try output.line(heading)
        try output.line()
        if new.isEmpty { try output.line("Nothing new.") } else { try output.table(Self.table(new)) }
        try output.line()
        try output.line("To try:")
        try output.table(Self.table(next))
        try output.flush()
    }

    private static func table(_ lines: [Line]) -> Table {
        var table = Table()
        for line in lines { table.add([Table.Cell(line.text, .strong), Table.Cell(line.command, columns: 200)]) }
        return table
    }
}

extension Hexlist {
    /// Prints the overview, or if no daemon runs, how to start it. The exit status is always 0.
    func run() async throws {
        do {
            let overview = try await CommonOptions.parse([]).withClient { client in
                let transfers = try await client.transfers([.waiting, .running, .paused], limit: 1)
                let lists = try await client.sharedHexesIfAny()
                return Overview(
                    try await client.status(), try await client.pairings(), try await client.peers(all: true),
                    fetches: !transfers.items.isEmpty, deletions: try await Overview.deletions(client), offers: lists.openOffers,
                    ended: try await Overview.ended(client, lists), resumed: try await Overview.resumed(client, lists),
                    unseen: lists.shared.filter { $0.new > 0 })
            }
            try overview.print(Output(json: false))
        } catch let error as HexlistError {
            StandardError.report(error)
            StandardError.note("`hexlist --help` lists all commands.")
        }
    }
}
