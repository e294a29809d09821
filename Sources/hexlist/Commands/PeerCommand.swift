import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

struct PeerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peer", abstract: "Show, trust, block or name one peer, and set what is done with its hexes.",
        discussion: """
            A PEER is a UUID, the first 4 digits or more of one, an alias, or a stranger's own name where nobody else goes by it. Trusting \
            a peer makes its name its alias.
            """,
        subcommands: [
            PeerShowCommand.self, PeerAddCommand.self, PeerTrustCommand.self, PeerUntrustCommand.self, PeerBlockCommand.self,
            PeerUnblockCommand.self, PeerForgetCommand.self, PeerRenameCommand.self, PeerSetCommand.self,
        ])
}

struct PeerArgument: ParsableArguments {
    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("A UUID, a prefix of one, an alias, or a stranger's name.", valueName: "peer"), completion: .peers)
    var peer: String

    /// Runs one change and shows its result.
    func change(_ body: (HexlistClient) async throws -> PeerView, told: (PeerView) -> String) async throws {
        let output = common.output
        let changed = try await common.withClient(body)
        if output.json {
            try output.object(changed)
        } else {
            try output.line(told(changed))
        }
        try output.flush()
    }
}

struct PeerShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show all that is known of a peer.")

    @OptionGroup var argument: PeerArgument

    func run() async throws {
        let output = argument.common.output
        let peer = try await argument.common.withClient { try await $0.peer(argument.peer) }
        if output.json {
            try output.object(peer)
        } else {
            try output.table(table(peer))
        }
        try output.flush()
    }

    private func table(_ peer: PeerView) -> Table {
        var table = Table()
        table.add("name", peer.name, .strong)
        if let alias = peer.alias { table.add("alias", alias) }
        if let uuid = peer.uuid { table.add("uuid", uuid.description) }
        table.add("state", peer.reason.map { "\(peer.state.rawValue): \($0)" } ?? peer.state.rawValue)
        if let why = peer.why { table.add("why", why) }
        table.add("trust", peer.trust.text)
        if let fingerprint = peer.fingerprint { table.add("fingerprint", lines: HumanText.fingerprint(fingerprint.description)) }
        if let version = peer.version { table.add("version", version) }
        for endpoint in peer.endpoints {
            let interface = endpoint.interface.map { " on \($0)" } ?? ""
            let good = endpoint.lastOK.map { ", last good \(HumanText.moment($0))" } ?? ""
            table.add("address", "\(HostPort.text(endpoint.host, endpoint.port))\(interface) (\(endpoint.via)\(good))")
        }
        if let seen = peer.lastSeen { table.add("last seen", HumanText.moment(seen)) }
        table.add("unread", String(peer.unread))
        if !peer.groups.isEmpty { table.add("groups", peer.groups.map(GroupName.marked).joined(separator: ", ")) }
        if let receive = peer.receive { table.add("receive", PolicyText.receive(receive.text)) }
        if peer.notify == false { table.add("notify", "off") }
        if let fetch = PolicyText.fetch(peer) { table.add("fetch", fetch) }
        return table
    }
}

struct PeerTrustCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust", abstract: "Let a peer's hexes into the inbox.",
        discussion: """
            Takes 8 digits of the UUID or more, shows the fingerprint and asks; compare it with what `hexlist id` shows on the other \
            machine. Where there is no terminal to ask on, it takes the whole UUID and does not ask.
            """)

    @OptionGroup var argument: PeerArgument

    func run() async throws {
        let isInteractive = isatty(STDIN_FILENO) == 1
        try await argument.change { client in
            // Looked up first: that there is no such peer is the more helpful error.
            let peer = try await client.peer(argument.peer)
            try checkArgument(isInteractive: isInteractive)
            guard let id = peer.uuid else { throw HexlistError(.badRequest, "\(peer.label.shown()) announces no UUID.") }
            if isInteractive { try confirm(peer) }
            return try await client.trust(id.description, fingerprint: peer.fingerprint?.description, name: isInteractive ? peer.name : nil)
        } told: {
            "\($0.label.shown(.named)) is trusted now."
        }
    }

    /// Refuses a name as the argument: anyone can take any name, so it cannot tell whom to trust.
    private func checkArgument(isInteractive: Bool) throws {
        let digits = argument.peer.utf8.filter { $0 != UInt8(ascii: "-") }
        guard digits.count >= 8, digits.count <= 32, digits.allSatisfy({ Hexadecimal.value(of: $0) != nil }) else {
            throw HexlistError(
                .badRequest, "Anybody can take a name: trust takes 8 digits of the UUID or more, and `\(argument.peer)` is none.",
                hint: AddressText(argument.peer)?.advice ?? "`hexlist peers` shows them; `hexlist pair` compares six digits instead.")
        }
        guard isInteractive || UUIDBytes(argument.peer) != nil else {
            throw HexlistError(
                .badRequest, "There is no terminal to ask on: trust takes the whole UUID then.",
                hint: "`hexlist peer show \(argument.peer)` shows it.")
        }
    }

    private func confirm(_ peer: PeerView) throws {
        guard let fingerprint = peer.fingerprint else {
            throw HexlistError(
                .badRequest, "\(peer.label.shown()) has not proved its key yet.", hint: "Wait until `hexlist peers` lists it.")
        }
        StandardError.note("peer         \(peer.label.shown(.full, columns: 80))")
        for (number, line) in HumanText.fingerprint(fingerprint.description).enumerated() {
            StandardError.note("\(number == 0 ? "fingerprint" : "           ")  \(line)")
        }
        try Terminal.confirm("Is this what `hexlist id` shows on the other machine? Trust it? [y/N]")
    }
}

struct PeerAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Trust the peer of a URI that `hexlist id --qr` printed there, and remember its addresses.",
        discussion: """
            The URI names the peer's key, so it need not have been met. Take it from the screen of that machine or from a friend: whoever \
            can change it on its way chooses whom you trust. In a shell it needs quotes. A peer that has an alias keeps it unless --alias \
            gives another; a blocked one is refused until `hexlist peer unblock`.
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("hexlist://peer/FINGERPRINT?name=…&address=…", valueName: "uri"))
    var uri: String

    @Option(help: ArgumentHelp("The alias, instead of the one it has or the name in the URI.", valueName: "alias"))
    var alias: String?

    @Flag(help: "Do not ask.")
    var yes = false

    func run() async throws {
        if let address = AddressText(uri) {
            throw HexlistError(.badRequest, "`\(TerminalText.clean(uri))` is an address, and no URI of a peer.", hint: address.advice)
        }
        let new = try PeerURI(uri)
        let id = new.fingerprint.peerID
        let output = common.output
        let known = try await common.withClient { client in try await Self.known(id, client) }
        if let known { try refuseBlocked(known) }
        if !yes { try ask(new, known) }
        let (wasTrusted, view) = try await common.withClient { client in
            // Looked at again: a question takes its time.
            let known = try await Self.known(id, client)
            if let known { try refuseBlocked(known) }
            let alias = Self.alias(alias, new, known)
            let peer = RosterPeer(
                uuid: id.description, fingerprint: new.fingerprint.description, name: new.name, alias: alias,
                trust: Trust.trusted.rawValue, addresses: new.addresses)
            let done = try await client.importRoster(peer.lineBytes)
            if let refusal = done.refused.first { throw Self.refused(refusal, alias: alias) }
            guard done.own == 0 else {
                throw HexlistError(.badRequest, "This is this machine's own URI.", hint: "Type it on the other machine.")
            }
            return (known?.trust == .trusted, try await client.peer(peer.uuid))
        }
        if output.json {
            try output.object(view)
        } else {
            try output.line("\(view.label.shown(.named)) is trusted \(wasTrusted ? "already" : "now").")
        }
        try output.flush()
    }

    /// What is known of the peer here; `nil` for one that was never met.
    private static func known(_ peer: PeerID, _ client: HexlistClient) async throws -> PeerView? {
        do {
            return try await client.peer(peer.description)
        } catch let error as HexlistError where error.code == .notFound {
            return nil
        }
    }

    /// The alias the peer is to get; `nil` where it keeps the one it has.
    static func alias(_ given: String?, _ new: PeerURI, _ known: PeerView?) -> String? {
        let alias = given ?? (known?.alias == nil ? new.name : "")
        return alias.isEmpty ? nil : alias
    }

    private func refuseBlocked(_ known: PeerView) throws {
        guard known.trust == .blocked, let id = known.uuid else { return }
        throw HexlistError(
            .badRequest, "\(known.label.shown(.named)) is blocked here.", hint: "`hexlist peer unblock \(id.shortID)` first.")
    }

    static func refused(_ refusal: BulkRefusal, alias: String?) -> HexlistError {
        let isAlias = refusal.code == "aliasTaken" || alias.flatMap(PeerAlias.textFault) != nil
        return HexlistError(
            .badRequest, TerminalText.clean(refusal.message, columns: 300),
            hint: isAlias ? "--alias gives it another one." : "`hexlist id --qr` prints the URI on the other machine; it goes as it is.")
    }

    private func ask(_ new: PeerURI, _ known: PeerView?) throws {
        guard isatty(STDIN_FILENO) == 1 else {
            throw HexlistError(
                .badRequest, "Nobody is trusted without asking, and there is no terminal to ask on.", hint: "Say --yes to go on.")
        }
        for line in Self.lines(new, known) { StandardError.note(line) }
        try Terminal.confirm(known?.trust == .trusted ? "It is trusted already. Remember this of it? [y/N]" : "Trust it? [y/N]")
    }

    /// What is asked about.
    static func lines(_ new: PeerURI, _ known: PeerView?) -> [String] {
        let peer = new.fingerprint.peerID
        let label = PeerDisplayName(uuid: peer.description, name: new.name, alias: nil, trust: known?.trust.text ?? Trust.stranger.rawValue)
        var lines = ["peer         \(label.shown(.full, columns: 80))"]
        if let known { lines.append("known here   as \(TerminalText.clean(known.label.head, columns: 60)), \(known.trust.text)") }
        for (number, line) in HumanText.fingerprint(new.fingerprint.description).enumerated() {
            lines.append("\(number == 0 ? "fingerprint" : "           ")  \(line)")
        }
        return lines + new.addresses.map { "address      \(TerminalText.clean($0, columns: 80))" }
    }
}

struct PeerUntrustCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "untrust", abstract: "Make a trusted peer a stranger again.")

    @OptionGroup var argument: PeerArgument

    func run() async throws {
        try await argument.change {
            try await $0.untrust(argument.peer)
        } told: {
            "\($0.label.shown(.named)) is a stranger now."
        }
    }
}

struct PeerBlockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "block", abstract: "Refuse all a peer sends, and delete what is held of it.")

    @OptionGroup var argument: PeerArgument

    func run() async throws {
        try await argument.change {
            try await $0.block(argument.peer)
        } told: {
            "\($0.label.shown(.named)) is blocked now."
        }
    }
}

struct PeerUnblockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "unblock", abstract: "Make a blocked peer a stranger again.")

    @OptionGroup var argument: PeerArgument

    func run() async throws {
        try await argument.change {
            try await $0.unblock(argument.peer)
        } told: {
            "\($0.label.shown(.named)) is a stranger now."
        }
    }
}

struct PeerForgetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget", abstract: "Drop the trust, alias and addresses known of a peer. Its hexes stay.")

    @OptionGroup var argument: PeerArgument

    func run() async throws {
        try await argument.change {
            try await $0.forget(argument.peer)
        } told: {
            "\($0.label.shown(.named)) is forgotten."
        }
    }
}

struct PeerRenameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "rename", abstract: "Give a peer a local alias.")

    @OptionGroup var argument: PeerArgument

    @Argument(help: ArgumentHelp("The alias; an empty one takes it away.", valueName: "alias"))
    var alias: String

    func run() async throws {
        let alias = alias.isEmpty ? nil : alias
        try await argument.change {
            try await $0.rename(argument.peer, alias: alias)
        } told: { peer in
            var own = peer.label
            own.alias = nil
            return peer.alias.map { "\(own.shown(.named)) is called \($0) here." } ?? "\(own.shown(.named)) has no alias now."
        }
    }
}

struct PeerSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Set what is done with a peer's hexes.",
        discussion: """
            --receive held keeps a peer's hexes out of the inbox, also those of a trusted one: they go where a stranger's go, within the \
            same limits and days. --receive nothing refuses them, and the peer tries again later. --receive inbox is as it was: what \
            trust and `receiveFrom` say, never more; of a trusted peer what is held goes into the inbox. --notify off leaves the peer's \
            hexes out of desktop notifications.

            --fetch auto fetches files into the cache (`hexlist cache`) as soon as a hex of a trusted peer is in the inbox: only files that \
            this peer itself offers, and only of hexes that have no more than --fetch-limit (100M), a day too. --fetch never ends that.
            """)

    @OptionGroup var argument: PeerArgument

    @Option(help: ArgumentHelp("Where its hexes go: inbox, held or nothing.", valueName: "place"))
    var receive: Place?

    @Option(help: ArgumentHelp("Whether notifications tell of them: on or off.", valueName: "on|off"))
    var notify: Switch?

    @Option(help: ArgumentHelp("Whether files it offers are fetched by themselves: auto or never.", valueName: "auto|never"))
    var fetch: Fetch?

    @Option(help: ArgumentHelp("The most of a hex, and of a day: 100M, 2G, or bytes.", valueName: "size"))
    var fetchLimit: ByteCount?

    /// The values of `--fetch`.
    enum Fetch: String, ExpressibleByArgument, CaseIterable {
        case auto, never
    }

    /// The limit where none is named: 100 MiB.
    private static let defaultLimit: Int64 = 100 << 20

    /// The values of `--receive`.
    enum Place: String, ExpressibleByArgument, CaseIterable {
        case inbox, held, nothing

        var receive: PeerReceive {
            switch self {
            case .inbox: .inbox
            case .held: .held
            case .nothing: .nothing
            }
        }
    }

    /// The values of `--notify`.
    enum Switch: String, ExpressibleByArgument, CaseIterable {
        case on, off
    }

    func validate() throws {
        if receive == nil, notify == nil, fetch == nil, fetchLimit == nil {
            throw ValidationError("Say what to set: --receive inbox|held|nothing, --notify on|off, --fetch auto|never.")
        }
        if fetchLimit != nil, fetch != .auto { throw ValidationError("--fetch-limit goes with --fetch auto.") }
    }

    func run() async throws {
        try await argument.change {
            try await $0.setPeer(
                argument.peer, receive: receive?.receive, notify: notify.map { $0 == .on },
                fetchLimit: fetch.map { $0 == .auto ? fetchLimit?.value ?? Self.defaultLimit : 0 })
        } told: { peer in
            "\(peer.label.shown(.named)): \(PolicyText.receive(peer.receive?.text ?? PeerReceive.inbox.rawValue)), "
                + "notifications \(peer.notify == false ? "off" : "on")"
                + ((PolicyText.fetch(peer) ?? (fetch == .never ? "never" : nil)).map { "; fetch \($0)." } ?? ".")
        }
    }
}

/// Texts about what is done with a peer's hexes.
enum PolicyText {
    /// `auto, up to 95.4 MiB a hex and a day; today 1.0 MiB`; `nil` where nothing is fetched by itself.
    static func fetch(_ peer: PeerView) -> String? {
        guard let limit = peer.fetchLimit else { return nil }
        let today = peer.fetchedToday.map { $0 > 0 ? "; today \(ByteCountText.of($0))" : "" } ?? ""
        return "auto, up to \(ByteCountText.of(limit)) a hex and a day\(peer.trust == .trusted ? "" : ", once it is trusted")\(today)"
    }

    /// - Parameter word: of `PeerReceive`; a newer daemon may have more.
    static func receive(_ word: String) -> String {
        switch PeerReceive(rawValue: word) {
        case .inbox?: "its hexes are taken as its trust says"
        case .held?: "its hexes are held, out of the inbox"
        case .nothing?: "its hexes are refused for now"
        case nil: word
        }
    }
}
