import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct PeersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peers",
        abstract: "List the peers on the network and the trusted ones that are away, or take a roster of them elsewhere.",
        discussion: "By itself it lists; it takes --all, --why, --watch and --wait then: `hexlist help peers list`.",
        subcommands: [PeersListCommand.self, PeersExportCommand.self, PeersImportCommand.self], defaultSubcommand: PeersListCommand.self)
}

struct PeersListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the peers on the network that proved who they are, and the trusted ones that are away.",
        discussion: """
            Trusted peers come first, also where two machines have the identity of one (`conflict`). --all adds strangers that are away \
            and the ghosts: announcements that are no distinct, live, other peer. --json lists who is away with --all only.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "List strangers that are away and ghosts too.")
    var all = false

    @Flag(help: "Say why each one is where it is.")
    var why = false

    @Flag(help: "Show the list again whenever it changes.")
    var watch = false

    @Option(help: ArgumentHelp("Return once this many peers are verified.", valueName: "n"))
    var wait: Int?

    @Option(help: ArgumentHelp("Give up --wait after this long; exit code 1.", valueName: "duration"))
    var timeout: Seconds?

    func validate() throws {
        if let wait, wait < 1 { throw ValidationError("--wait takes a number from 1 up.") }
        if timeout != nil, wait == nil { throw ValidationError("--timeout goes with --wait.") }
        if watch, wait != nil { throw ValidationError("--watch and --wait do not go together.") }
    }

    func run() async throws {
        let output = common.output
        // People also see which trusted peers are away; the output of --json is fixed by releases.
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
        }
        try output.flush()
    }

    /// Waits until at least `count` peers are verified, and returns the list.
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
                .internal, "Fewer than \(HumanText.count(count, "peer", "peers")) verified within \(timeout.value) s.",
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
                all ? "Nothing is announced, and nobody is known." : "No peer is here. `hexlist peers --all --why` shows what was seen.")
            return
        }
        var table = Table(["NAME", "UUID", "STATE", "TRUST", "UNREAD", "ADDRESS"] + (why ? ["WHY"] : []))
        for peer in listed { table.add(row(peer)) }
        try output.table(table)
        for peer in listed where peer.isTwice { StandardError.note(PeersText.twice(peer)) }
    }

    private func row(_ peer: PeerView) -> [Table.Cell] {
        let state: Table.Cell
        switch peer.state {
        case .verified: state = Table.Cell("verified", .good)
        case .away: state = Table.Cell("away", .faint)
        case .ghost where peer.isTwice: state = Table.Cell("conflict", .failure)
        case .ghost: state = Table.Cell(peer.reason.map { "ghost: \($0)" } ?? "ghost", .doubtful)
        }
        let address = PeersText.place(peer)
        var cells = [
            Table.Cell(peer.label.head, columns: 32, minimum: 12), Table.Cell(peer.uuid?.shortID ?? "–"), state,
            Table.Cell(peer.trust.text, peer.trust == .blocked ? .failure : .plain),
            Table.Cell(count: peer.unread, peer.unread == 0 ? .faint : .strong, none: "–"), Table.Cell(address),
        ]
        if why { cells.append(Table.Cell(peer.why ?? "", columns: 400)) }
        return cells
    }
}

/// Texts and rows of the list of peers.
enum PeersText {
    /// The peers to show, in order: trusted ones, here, in conflict or away, then others that are here, then with `all` others that are
    /// away, and ghosts.
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

    static func twice(_ peer: PeerView) -> String {
        "Two machines are \(peer.label.shown(.named)), one with a copy of the other's identity. Nothing is sent to them or taken from them "
            + "until about two minutes after `hexlist id rotate` on one of them."
    }

    /// The address of a peer; for one that is away, when it was last seen.
    static func place(_ peer: PeerView) -> String {
        if peer.state == .away, let seen = peer.lastSeen { return "last seen \(HumanText.moment(seen))" }
        return peer.endpoints.first.map { HostPort.text($0.host, $0.port) } ?? "–"
    }
}

extension PeerView {
    fileprivate var isTrusted: Bool { trust == .trusted }

    /// Whether it is a trusted peer whose identity two machines have.
    var isTwice: Bool { state == .ghost && reason.map { $0.utf8.elementsEqual("conflict".utf8) } ?? false && isTrusted }
}

extension [PeerView] {
    /// Whether what is held can only be of strangers: of no peer the user said so.
    var areHeldOfStrangers: Bool { !contains { $0.receive?.known == .held } }
}
