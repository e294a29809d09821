import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistEnvelope
import HexlistModel

struct PeerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peer", abstract: "Show, trust, block, rename or configure one peer.",
        discussion: """
            A PEER is an alias, a UUID or its first 4 digits or more, or the name of a stranger if nobody else has it. A peer that you \
            trust gets its name as alias.
            """,
        subcommands: [
            PeerShowCommand.self, PeerAddCommand.self, PeerTrustCommand.self, PeerUntrustCommand.self, PeerBlockCommand.self,
            PeerUnblockCommand.self, PeerForgetCommand.self, PeerRenameCommand.self, PeerSetCommand.self,
        ])
}

struct PeerArgument: ParsableArguments {
    @OptionGroup var common: CommonOptions

    @Argument(
        help: ArgumentHelp("An alias, a UUID or the beginning of one, or the name of a stranger.", valueName: "peer"), completion: .peers)
    var peer: String

    /// Runs `body`, which changes a peer, and prints the result.
    /// - Parameter undo: returns the words of the command that undoes the change; empty for none.
    func change(
        _ body: (HexlistClient) async throws -> PeerView, as text: (PeerView) -> String, undo: (PeerView) -> [String] = { _ in [] }
    ) async throws {
        let output = common.output
        let changed = try await common.withClient(body)
        if output.json {
            try output.object(changed)
        } else {
            try output.line(text(changed))
        }
        try output.flush()
        let command = undo(changed)
        if !command.isEmpty, !output.json { UndoHint.note(command) }
    }
}

struct PeerShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show everything known about a peer.")

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
        table.add("state", peer.reason.map { "\(PeersText.state(peer)): \($0)" } ?? PeersText.state(peer))
        if let why = peer.why { table.add("why", why) }
        table.add("trust", peer.own ? "\(peer.trust.text), own machine (`hexlist own`)" : peer.trust.text)
        if let fingerprint = peer.fingerprint { table.add("fingerprint", lines: HumanText.fingerprint(fingerprint.description)) }
        if let version = peer.version { table.add("version", version) }
        for endpoint in peer.endpoints {
            let interface = endpoint.interface.map { " on \($0)" } ?? ""
            let good = endpoint.lastOK.map { ", last used \(HumanText.moment($0))" } ?? ""
            table.add("address", "\(HostPort.text(endpoint.host, endpoint.port))\(interface) (\(endpoint.via)\(good))")
        }
        if let seen = peer.lastSeen { table.add("last seen", HumanText.moment(seen)) }
        table.add("unread", String(peer.unread))
        if !peer.groups.isEmpty { table.add("groups", peer.groups.map(GroupName.marked).joined(separator: ", ")) }
        if peer.receive != nil { table.add("receive", PeerSettingsText.receive(peer)) }
        if peer.notify == false { table.add("notify", "off") }
        if let fetch = PeerSettingsText.fetch(peer) { table.add("fetch", fetch) }
        if let opened = PeerSettingsText.opened(peer) { table.add("open", opened) }
        return table
    }
}

struct PeerTrustCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust", abstract: "Deliver a peer's hexes to the inbox.",
        discussion: """
            Needs the first 8 digits of the UUID or more. It shows the fingerprint and asks; compare it with `hexlist id` on the other \
            machine. Without a terminal it needs the whole UUID and does not ask.

            For a device with LocalSend it shows both fingerprints as the app does, shortened; --full shows all digits.
            """)

    @OptionGroup var argument: PeerArgument

    @Flag(help: "Show all digits of the fingerprints of a device.")
    var full = false

    func run() async throws {
        let isInteractive = isatty(STDIN_FILENO) == 1
        try await argument.change { client in
            // The peer is looked up before the argument is checked, because the error about an unknown peer is more helpful.
            let peer = try await client.peer(argument.peer)
            let isDevice = peer.kind?.known == .localsend
            // Both fingerprints of a device are compared, so its name may be given.
            if !isDevice || !isInteractive { try checkArgument(isInteractive: isInteractive) }
            guard let id = peer.uuid else { throw HexlistError(.badRequest, "\(peer.label.shown()) has no UUID.") }
            if isInteractive {
                if isDevice {
                    let own = try await client.status()
                    try confirm(device: peer, own: own.localSend?.fingerprint, name: own.name)
                } else {
                    try confirm(peer)
                }
            }
            return try await client.trust(id.description, fingerprint: peer.fingerprint?.description, name: isInteractive ? peer.name : nil)
        } as: {
            "\($0.label.shown(.named)) is now trusted."
        }
    }

    /// Refuses a name as the argument. Anybody can choose any name, so a name does not identify a peer.
    private func checkArgument(isInteractive: Bool) throws {
        let digits = argument.peer.utf8.filter { $0 != UInt8(ascii: "-") }
        guard digits.count >= 8, digits.count <= 32, digits.allSatisfy({ Hexadecimal.value(of: $0) != nil }) else {
            throw HexlistError(
                .badRequest, "Anybody can choose a name: use the UUID (8 digits or more), not `\(argument.peer)`.",
                hint: TypedNetworkAddress(argument.peer)?.advice ?? "`hexlist peers` shows UUIDs. Or compare six digits: `hexlist pair`.")
        }
        guard isInteractive || UUIDBytes(argument.peer) != nil else {
            throw HexlistError(
                .badRequest, "Without a terminal, trust needs the whole UUID.",
                hint: "To see it: `hexlist peer show \(argument.peer)`.")
        }
    }

    /// Asks the user to compare the fingerprints of a device and of this machine.
    /// - Parameters:
    ///   - own: the fingerprint of this machine's certificate.
    ///   - name: the name of this machine.
    private func confirm(device: PeerView, own: Fingerprint?, name: String) throws {
        guard let fingerprint = device.fingerprint, let own else {
            throw HexlistError(
                .badRequest, "\(device.label.shown()) is not connected yet.", hint: "Open LocalSend there, then repeat this command.")
        }
        for line in DeviceTrustText.lines(of: device, fingerprint, own: own, name: name, isFull: full) { StandardError.note(line) }
        try Terminal.confirm(
            DeviceTrustText.hasVerifyPage(device) ? "Does the device show the same? Trust it? [y/N]" : "Trust it as seen now? [y/N]")
    }

    private func confirm(_ peer: PeerView) throws {
        guard let fingerprint = peer.fingerprint else {
            throw HexlistError(
                .badRequest, "\(peer.label.shown()) is not connected yet.", hint: "Wait until `hexlist peers` lists it.")
        }
        StandardError.note("peer         \(peer.label.shown(.full, columns: 80))")
        for (number, line) in HumanText.fingerprint(fingerprint.description).enumerated() {
            StandardError.note("\(number == 0 ? "fingerprint" : "           ")  \(line)")
        }
        try Terminal.confirm("Does `hexlist id` on the other machine show the same? Trust it? [y/N]")
    }
}

struct PeerAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Trust a peer by the URI or card that `hexlist id --qr` or `--card` prints there.",
        discussion: """
            A URI contains the fingerprint and addresses of the peer, so you need not have met it. A card contains its public keys, so that \
            hexes can wait for it in a mailbox although it was never online together with this machine. Take it from the screen of that \
            machine or from a friend: anyone who can change it on the way decides whom you trust. Quote it in a shell. An existing alias \
            stays unless --alias gives another; a blocked peer must be unblocked first.
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("hexlist://peer/FINGERPRINT?name=…&address=… or hexlist-card-1:…", valueName: "uri-or-card"))
    var uri: String

    @Option(help: ArgumentHelp("The alias; by default the existing one, or the name in the URI.", valueName: "alias"))
    var alias: String?

    @Flag(help: "Do not ask.")
    var yes = false

    func run() async throws {
        if let address = TypedNetworkAddress(uri) {
            throw HexlistError(.badRequest, "`\(TerminalText.clean(uri))` is an address, not the URI of a peer.", hint: address.advice)
        }
        let card = try Self.card(uri)
        let new = try card.map { PeerURI(fingerprint: $0.fingerprint) } ?? PeerURI(uri)
        let id = new.fingerprint.peerID
        let output = common.output
        let known = try await common.withClient { client in try await Self.known(id, client) }
        if let known { try refuseBlocked(known) }
        if !yes { try ask(new, known) }
        let (wasTrusted, view) = try await common.withClient { client in
            // The peer is checked again, because its state may have changed while the user was asked.
            let known = try await Self.known(id, client)
            if let known { try refuseBlocked(known) }
            let alias = Self.alias(alias, new, known)
            let peer = RosterPeer(
                uuid: id.description, fingerprint: new.fingerprint.description, name: new.name, alias: alias,
                trust: Trust.trusted.rawValue, addresses: new.addresses, card: card?.base64)
            let done = try await client.importRoster(peer.lineBytes)
            if let refusal = done.refused.first { throw Self.refused(refusal, alias: alias) }
            guard done.own == 0 else {
                throw HexlistError(
                    .badRequest, "This is the \(card == nil ? "URI" : "card") of this machine.", hint: "Use it on the other machine.")
            }
            return (known?.trust == .trusted, try await client.peer(peer.uuid))
        }
        if output.json {
            try output.object(view)
        } else {
            try output.line("\(view.label.shown(.named)) is \(wasTrusted ? "already" : "now") trusted.")
        }
        try output.flush()
    }

    /// Reads a card; `nil` if the text does not begin like one.
    /// - Throws: `HexlistError` if the card is damaged.
    static func card(_ text: String) throws -> Card? {
        guard Card.isText(text) else { return nil }
        guard let card = Card(text: text), card.isSignatureValid else {
            throw HexlistError(
                .badRequest, "This card is damaged.", hint: "Copy the whole line from `hexlist id --card` on the other machine.")
        }
        return card
    }

    /// Returns the stored data of a peer; `nil` if the peer was never seen.
    private static func known(_ peer: PeerID, _ client: HexlistClient) async throws -> PeerView? {
        do {
            return try await client.peer(peer.description)
        } catch let error as HexlistError where error.code == .notFound {
            return nil
        }
    }

    /// Returns the alias to set; `nil` to keep the existing one. By default a peer without an alias gets the name in the URI.
    static func alias(_ given: String?, _ new: PeerURI, _ known: PeerView?) -> String? {
        let alias = given ?? (known?.alias == nil ? new.name : "")
        return alias.isEmpty ? nil : alias
    }

    private func refuseBlocked(_ known: PeerView) throws {
        guard known.trust == .blocked, let id = known.uuid else { return }
        throw HexlistError(
            .badRequest, "\(known.label.shown(.named)) is blocked here.", hint: "First run `hexlist peer unblock \(id.shortID)`.")
    }

    static func refused(_ refusal: BulkRefusal, alias: String?) -> HexlistError {
        let isAlias = refusal.code == "aliasTaken" || alias.flatMap(PeerAlias.textFault) != nil
        return HexlistError(
            .badRequest, TerminalText.clean(refusal.message, columns: 300),
            hint: isAlias ? "Choose another alias with --alias." : "Copy the URI unchanged from `hexlist id --qr` on the other machine.")
    }

    private func ask(_ new: PeerURI, _ known: PeerView?) throws {
        guard isatty(STDIN_FILENO) == 1 else {
            throw HexlistError(
                .badRequest, "This trusts a peer, and there is no terminal to confirm it.", hint: "To do it without a question: --yes.")
        }
        for line in Self.lines(new, known) { StandardError.note(line) }
        try Terminal.confirm(known?.trust == .trusted ? "Already trusted. Remember these addresses? [y/N]" : "Trust it? [y/N]")
    }

    /// Returns the lines that describe the new peer before the user is asked to trust it.
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
    static let configuration = CommandConfiguration(commandName: "untrust", abstract: "Turn a trusted peer into a stranger again.")

    @OptionGroup var argument: PeerArgument

    func run() async throws {
        var wasOwn = false
        try await argument.change { client in
            // Only the text says that the exchange of My Hexlist ends.
            wasOwn = try await client.peer(argument.peer).own
            return try await client.untrust(argument.peer)
        } as: {
            "\($0.label.shown(.named)) is now a stranger.\(wasOwn ? " \(OwnText.ended)" : "")"
        } undo: {
            ["peer", "trust", $0.uuid?.description ?? ""]
        }
    }
}

struct PeerBlockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "block", abstract: "Refuse everything a peer sends, and delete its hexes that wait for approval.")

    @OptionGroup var argument: PeerArgument

    func run() async throws {
        try await argument.change {
            try await $0.block(argument.peer)
        } as: {
            "\($0.label.shown(.named)) is now blocked."
        } undo: {
            ["peer", "unblock", $0.uuid?.shortID ?? ""]
        }
    }
}

struct PeerUnblockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "unblock", abstract: "Turn a blocked peer into a stranger again.")

    @OptionGroup var argument: PeerArgument

    func run() async throws {
        try await argument.change {
            try await $0.unblock(argument.peer)
        } as: {
            "\($0.label.shown(.named)) is now a stranger."
        }
    }
}

struct PeerForgetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget", abstract: "Remove trust, alias, groups and addresses of a peer. Its hexes stay.",
        discussion: "On a terminal it shows what is removed and asks.")

    @OptionGroup var argument: PeerArgument

    @Flag(help: "Do not ask.")
    var yes = false

    func run() async throws {
        try await argument.change { client in
            if !yes, isatty(STDIN_FILENO) == 1 {
                let peer = try await client.peer(argument.peer)
                let waiting = try await client.outbox(to: argument.peer, states: [.queued, .sending], limit: LocalAPI.pageLimit)
                for line in Self.lines(peer, waiting: waiting.items.count, hasMore: waiting.next != nil) { StandardError.note(line) }
                try Terminal.confirm("Forget \(peer.label.shown(.named))? [y/N]")
            }
            return try await client.forget(argument.peer)
        } as: {
            "\($0.label.shown(.named)) is forgotten."
        }
    }

    /// Returns the lines that list which data will be removed and which will stay.
    static func lines(_ peer: PeerView, waiting: Int, hasMore: Bool) -> [String] {
        var removed: [String] = []
        if peer.trust != .stranger { removed.append(peer.trust.text) }
        if peer.own { removed.append("one of your own machines") }
        if let alias = peer.alias { removed.append("the alias \(TerminalText.clean(alias, columns: 60))") }
        let groups = peer.groups.map { TerminalText.clean(GroupName.marked($0), columns: 40) }
        if !groups.isEmpty { removed.append("in \(groups.joined(separator: ", "))") }
        if peer.receive != nil || peer.notify == false || peer.fetchLimit != nil || peer.openLinks != nil { removed.append("its settings") }
        if !peer.endpoints.isEmpty { removed.append(HumanText.count(peer.endpoints.count, "address", "addresses")) }
        let count = "\(hasMore ? "more than " : "")\(HumanText.count(waiting, "hex waits", "hexes wait"))"
        return (removed.isEmpty ? [] : ["Removed: \(removed.joined(separator: ", "))."])
            + (waiting == 0 ? [] : ["\(count) for it and will still be sent; to cancel: `hexlist outbox cancel --to PEER`."])
    }
}

struct PeerRenameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "rename", abstract: "Give a peer an alias on this machine.")

    @OptionGroup var argument: PeerArgument

    @Argument(help: ArgumentHelp("The alias; '' removes it.", valueName: "alias"))
    var alias: String

    func run() async throws {
        let alias = alias.isEmpty ? nil : alias
        try await argument.change {
            try await $0.rename(argument.peer, alias: alias)
        } as: { peer in
            var own = peer.label
            own.alias = nil
            return peer.alias.map { "\(own.shown(.named)) is now called \($0)." } ?? "\(own.shown(.named)) no longer has an alias."
        }
    }
}

struct PeerSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Set what happens with the hexes of a peer.",
        discussion: """
            --receive held keeps hexes of a peer, even a trusted one, out of the inbox until you accept them; limits and days are those \
            for strangers. --receive nothing refuses them for now; the peer tries again later. --receive inbox is the default for \
            trusted peers: hexes go to the inbox, including those that wait for approval. --notify off shows no notifications for this \
            peer.

            --fetch auto downloads files of a trusted peer to the cache (`hexlist cache`) as soon as a hex arrives: only files that this \
            peer itself offers, up to --fetch-limit (100M) for one hex and for one day. `--fetch downloads` downloads them to the folder \
            `files.downloads` (`hexlist config`), up to 1G: for a machine of your own. `--fetch never` turns it off.

            --open 2 opens up to two http and https links of each hex of a trusted peer in the browser as soon as it arrives, 6 in a minute \
            at most for all peers, and a notification names their hosts. It is off by default; --open 0 turns it off.

            --pin sets the PIN that LocalSend on a device requires of senders; --pin '' deletes it. A PIN that the device refuses is \
            deleted, because the device locks out senders after three wrong ones.

            --route selects the routes on which hexes wait for this peer while it is away. `--route none` keeps it off all routes.
            """)

    @OptionGroup var argument: PeerArgument

    @Option(help: ArgumentHelp("Where hexes go: inbox, held (wait for approval) or nothing (refused).", valueName: "place"))
    var receive: ReceiveArgument?

    @Option(help: ArgumentHelp("Desktop notifications: on or off.", valueName: "on|off"))
    var notify: OnOff?

    @Option(help: ArgumentHelp("Automatic downloads: auto (to the cache), downloads (to a folder) or never.", valueName: "mode"))
    var fetch: FetchMode?

    @Option(help: ArgumentHelp("Limit per hex and per day: 100M, 2G, or bytes.", valueName: "size"))
    var fetchLimit: ByteCount?

    @Option(help: ArgumentHelp("Links of a hex to open in the browser when it arrives: 0 to 6.", valueName: "n"))
    var open: Int?

    @Option(help: ArgumentHelp("The PIN of a device with LocalSend; '' deletes it.", valueName: "pin"))
    var pin: String?
    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp("Routes while it is away: any, none, or names (`hexlist route`).", valueName: "any|none|name"))
    var route: [String] = []

    /// The values of `--fetch`.
    enum FetchMode: String, ExpressibleByArgument, CaseIterable {
        case auto, downloads, never

        /// The default of `--fetch-limit` in bytes.
        var defaultLimit: Int64 {
            switch self {
            case .auto: 100 << 20
            case .downloads: PeerSetCommand.ownMachineLimit
            case .never: 0
            }
        }

        var target: AutomaticFetchDestination? {
            switch self {
            case .auto: .cache
            case .downloads: .downloads
            case .never: nil
            }
        }
    }

    /// The default limit in bytes for files that are downloaded from a machine of the same user.
    static let ownMachineLimit: Int64 = 1 << 30

    /// The values of `--receive`.
    enum ReceiveArgument: String, ExpressibleByArgument, CaseIterable {
        case inbox, held, nothing

        var receive: PeerReceiveSetting {
            switch self {
            case .inbox: .inbox
            case .held: .held
            case .nothing: .nothing
            }
        }
    }

    /// The values of `--notify`.
    enum OnOff: String, ExpressibleByArgument, CaseIterable {
        case on, off
    }

    func validate() throws {
        if receive == nil, notify == nil, fetch == nil, fetchLimit == nil, open == nil, pin == nil, route.isEmpty {
            throw ValidationError(
                "What should be set? --receive inbox|held|nothing, --notify on|off, --fetch auto|downloads|never, --open N, --pin PIN, "
                    + "--route any|none|NAME.")
        }
        if let open, !(0...PeerChange.mostOpenLinks).contains(open) {
            throw ValidationError("--open takes a number from 0 to \(PeerChange.mostOpenLinks).")
        }
        if !route.isEmpty, routes == nil { throw ValidationError("--route takes any, none, or names of routes.") }
        if fetchLimit != nil, fetch == nil || fetch == .never {
            throw ValidationError("--fetch-limit needs --fetch auto or --fetch downloads.")
        }
    }

    /// The routes given with `--route`; `nil` without that option, or if its value is not valid.
    private var routes: RouteSelection? { RouteSelection(route.joined(separator: " ")) }

    func run() async throws {
        try await argument.change {
            if case .only(let names)? = routes {
                let known = try await $0.routes().map(\.name)
                if let name = names.first(where: { !known.contains($0) }) { throw RouteText.unknown(name, known) }
            }
            return try await $0.setPeer(
                argument.peer, receive: receive?.receive, notify: notify.map { $0 == .on },
                fetchLimit: fetch.map { fetchLimit?.value ?? $0.defaultLimit }, fetchTo: fetch?.target, openLinks: open,
                pin: pin, routes: routes)
        } as: { peer in
            "\(peer.label.shown(.named)): \(PeerSettingsText.receive(peer)), "
                + "notifications \(peer.notify == false ? "off" : "on")"
                + ((PeerSettingsText.fetch(peer) ?? (fetch == .never ? "never" : nil)).map { "; fetch \($0)" } ?? "")
                + ((PeerSettingsText.opened(peer) ?? (open == 0 ? "none" : nil)).map { "; open \($0)" } ?? "")
                + (peer.routes.map { "; routes: \($0)." } ?? ".")
        }
    }
}

enum PeerSettingsText {
    /// Describes the automatic downloads from a peer: `auto, up to 95.4 MiB per hex and per day; today 1.0 MiB`; `nil` if there are none.
    static func fetch(_ peer: PeerView) -> String? {
        guard let limit = peer.fetchLimit else { return nil }
        let today = peer.fetchedToday.map { $0 > 0 ? "; today \(ByteCountText.of($0))" : "" } ?? ""
        let target = peer.fetchTo?.known == .downloads ? "to the download folder" : "auto"
        return
            "\(target), up to \(ByteCountText.of(limit)) per hex and per day\(peer.trust == .trusted ? "" : ", once it is trusted")\(today)"
    }

    /// Describes how many links of a hex are opened: `2 links of a hex in the browser`; `nil` if none are.
    static func opened(_ peer: PeerView) -> String? {
        guard let links = peer.openLinks else { return nil }
        return "\(HumanText.count(links, "link", "links")) of a hex in the browser\(peer.trust == .trusted ? "" : ", once it is trusted")"
    }

    /// Describes where hexes from a peer go. A newer daemon may use values that this version does not know.
    static func receive(_ peer: PeerView) -> String {
        let receive = peer.receive?.text ?? PeerReceiveSetting.inbox.rawValue
        return switch PeerReceiveSetting(rawValue: receive) {
        case .inbox?: "hexes: default for \(peer.trust == .trusted ? "trusted peers" : "strangers")"
        case .held?: "hexes: wait for approval"
        case .nothing?: "hexes: refused for now"
        case nil: receive
        }
    }
}
