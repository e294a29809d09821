import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct PeersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peers",
        abstract: "List peers that are online and trusted peers that are away; export and import them.",
        discussion: "Options of the list, such as --all, --why, --watch and --wait: `hexlist help peers list`.",
        subcommands: [PeersListCommand.self, PeersExportCommand.self, PeersImportCommand.self], defaultSubcommand: PeersListCommand.self)
}

struct PeersListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List peers that are online, and trusted peers that are away.",
        discussion: """
            Trusted peers come first, also if two machines share one identity (`conflict`). The trust `own` is that of your own machines \
            (`hexlist own`). --all adds strangers that are away and \
            ghosts: announcements that are not a separate, live peer. --json lists peers that are away only with --all.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "List ghosts, and strangers that are away, too.")
    var all = false

    @Flag(help: "Show the reason for each state.")
    var why = false

    @Flag(help: "Show the list again after each change.")
    var watch = false

    @Option(help: ArgumentHelp("Wait until this many peers are online.", valueName: "n"))
    var wait: Int?

    @Option(help: ArgumentHelp("With --wait: give up after this long; exit code 1.", valueName: "duration"))
    var timeout: Seconds?

    func validate() throws {
        if let wait, wait < 1 { throw ValidationError("--wait needs a number of at least 1.") }
        if timeout != nil, wait == nil { throw ValidationError("--timeout needs --wait.") }
        if watch, wait != nil { throw ValidationError("Give --watch or --wait, not both.") }
    }

    func run() async throws {
        let output = common.output
        // The table also lists offline trusted peers. JSON output must stay as in earlier releases.
        let asksAll = all || !output.json
        try await common.withClient { client in
            if watch {
                try await client.watchPeers(all: asksAll) { peers in
                    try redraw(peers, output)
                    return true
                }
            } else if let wait {
                try show(try await waitFor(wait, client, asksAll), output)
            } else {
                try show(try await client.peers(all: asksAll), output)
            }
            if !watch, !output.json, let note = PeersText.discovery(try await client.status().avahi) {
                try output.flush()  // the note follows the list
                StandardError.note(note)
            }
        }
        try output.flush()
    }

    /// Waits until at least `count` peers are online and returns the list.
    /// - Throws: `HexlistError` if the timeout expires first.
    private func waitFor(_ count: Int, _ client: HexlistClient, _ all: Bool) async throws -> [PeerView] {
        guard let timeout else { return try await Self.watch(client, all: all, until: count) }
        let list = try await withThrowingTaskGroup(of: [PeerView]?.self) { group in
            group.addTask { try await Self.watch(client, all: all, until: count) }
            group.addTask {
                try await Task.sleep(for: .seconds(timeout.value))
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
        guard let list else {
            throw HexlistError(
                .internal, "Fewer than \(HumanText.count(count, "peer", "peers")) came online within \(timeout.value) s.",
                hint: "`hexlist peers --all --why` shows what was seen.")
        }
        return list
    }

    private static func watch(_ client: HexlistClient, all: Bool, until count: Int) async throws -> [PeerView] {
        var list: [PeerView] = []
        try await client.watchPeers(all: all) { peers in
            list = peers
            return peers.count(where: { $0.state == .verified }) < count
        }
        return list
    }

    private func redraw(_ peers: [PeerView], _ output: Output) throws {
        if output.json {
            try output.object(Page(items: peers))
        } else {
            try output.bytes(Array(output.terminal.cleared.utf8))
            try show(peers, output)
            if !output.terminal.isInteractive { try output.line() }
        }
        try output.flush()
    }

    private func show(_ peers: [PeerView], _ output: Output) throws {
        if output.json {
            for peer in peers { try output.object(peer) }
            return
        }
        let listed = PeersText.listed(peers, all: all)
        guard !listed.isEmpty else {
            StandardError.note(
                all ? "No peers, and no announcements on the network." : "No peer is online. `hexlist peers --all --why` shows more.")
            return
        }
        let hasKinds = listed.contains { $0.kind != nil }
        var table = Table(
            ["NAME", "UUID", "STATE", "TRUST", "UNREAD"] + (hasKinds ? ["KIND"] : []) + ["ADDRESS"] + (why ? ["WHY"] : []))
        for peer in listed { table.add(row(peer, hasKinds: hasKinds)) }
        try output.table(table)
        for peer in listed where peer.isTwice { StandardError.note(PeersText.twice(peer)) }
    }

    /// Returns the row of a peer in the list.
    /// - Parameter hasKinds: whether a listed peer is not a Hexlist peer, so that the kinds are shown.
    private func row(_ peer: PeerView, hasKinds: Bool) -> [Table.Cell] {
        let state: Table.Cell
        switch peer.state {
        case .verified: state = Table.Cell(PeersText.state(peer), .good)
        case .away: state = Table.Cell(PeersText.state(peer), .faint)
        case .ghost where peer.isTwice: state = Table.Cell("conflict", .failure)
        case .ghost: state = Table.Cell(peer.reason.map { "ghost: \($0)" } ?? "ghost", .doubtful)
        }
        let address = PeersText.place(peer)
        var cells = [
            Table.Cell(peer.label.head, columns: 32, minimum: 12), Table.Cell(peer.uuid?.shortID ?? "–"), state,
            Table.Cell(peer.own ? "own" : peer.trust.text, peer.trust == .blocked ? .failure : .plain),
            Table.Cell(count: peer.unread, peer.unread == 0 ? .faint : .strong, none: "–"),
        ]
        if hasKinds { cells.append(Table.Cell(PeersText.kind(peer))) }
        cells.append(Table.Cell(address))
        if why { cells.append(Table.Cell(peer.why ?? "", columns: 400)) }
        return cells
    }
}

/// Texts and rows of the list of peers.
enum PeersText {
    /// Returns the peers to show, sorted: trusted ones (online, in conflict, offline), then other online ones. With `all`, also other
    /// offline ones and ghosts.
    static func listed(_ peers: [PeerView], all: Bool) -> [PeerView] {
        let ranked = peers.map { (rank: rank($0), peer: $0) }.filter { all || $0.rank <= 2 }
        return (0...4).flatMap { rank in ranked.filter { $0.rank == rank }.map(\.peer) }
    }

    private static func rank(_ peer: PeerView) -> Int {
        switch peer.state {
        case .ghost where peer.isTwice: 0
        case .verified where peer.isTrusted: 0
        case .away where peer.isTrusted: 1
        case .verified: 2
        case .away: 3
        case .ghost: 4
        }
    }

    /// Returns the word for the state of a peer: `online`, `away` or `ghost`.
    static func state(_ peer: PeerView) -> String { peer.state == .verified ? "online" : peer.state.rawValue }

    /// Returns a sentence about discovery on the local network if it does not work; `nil` if it does, or is turned off.
    static func discovery(_ status: DiscoveryStatus) -> String? {
        switch status.state.known {
        case .running, .starting, .off: nil
        case .degraded, .unavailable, nil:
            "Machines on this network are not all found: \(status.message ?? "discovery is \(status.state).") To check: `hexlist doctor`."
        }
    }

    static func twice(_ peer: PeerView) -> String {
        "Two machines use the identity of \(peer.label.shown(.named)): one is a copy. Nothing is sent to or accepted from either "
            + "until about two minutes after you run `hexlist id rotate` on one of them."
    }

    /// Returns the kind of a peer as a word; empty for a Hexlist peer.
    static func kind(_ peer: PeerView) -> String {
        switch peer.kind?.known {
        case .localsend: "LocalSend"
        case .guest: "guest"
        case .drop: "drop token"
        case .hexlist: ""
        case nil: peer.kind?.text ?? ""
        }
    }

    /// Returns the address of a peer; for an offline peer the time when it was last seen.
    static func place(_ peer: PeerView) -> String {
        if peer.state == .away, let seen = peer.lastSeen { return "last seen \(HumanText.moment(seen))" }
        return peer.endpoints.first.map { HostPort.text($0.host, $0.port) } ?? "–"
    }
}

extension PeerView {
    fileprivate var isTrusted: Bool { trust == .trusted }

    /// Whether two machines use the identity of this trusted peer.
    var isTwice: Bool { state == .ghost && reason.map { $0.utf8.elementsEqual("conflict".utf8) } ?? false && isTrusted }
}

extension [PeerView] {
    /// Whether only strangers' hexes are held, because no peer has the setting `--receive held`.
    var areHeldOfStrangers: Bool { !contains { $0.receive?.known == .held } }
}
