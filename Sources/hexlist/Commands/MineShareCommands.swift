import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

struct MineShareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Share a hex of My Hexlist with other people, or list shared hexes.",
        discussion: """
            hexlist mine share 7 --with bob --write

            Each peer is asked to join. Your later changes then appear on its machine, and with --write also its changes on yours; \
            `hexlist mine log` lists changes, and `hexlist mine undo` reverts them. Run the command again with or without --write to \
            change the access of a member. A hex inside another one moves to the top level.

            --renew replaces a hex that has too many deleted hexes and links by a copy without them, which keeps its number. Its members \
            keep the former one as it is, and are asked to join the new one. Changes that they have not sent yet do not arrive.

            Without --with and --renew it lists the members of a hex, and without a hex all shared hexes. TO SEND counts the changed \
            hexes and links that a member has not received yet.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        name: .customLong("with"),
        help: ArgumentHelp("A trusted peer, or the present members of a group as @NAME; may be repeated.", valueName: "peer"),
        completion: .recipients)
    var peers: [String] = []

    @Flag(help: "Let these peers change the hex, too.")
    var write = false

    @Flag(help: "Leave out deleted hexes and links. Members have to join again.")
    var renew = false

    @Flag(help: "Do not ask.")
    var yes = false

    @Argument(help: ArgumentHelp("The number of the hex.", valueName: "hex"), completion: .mine)
    var hex: HexID?

    func validate() throws {
        if hex == nil, !peers.isEmpty { throw ValidationError("Which hex? Give its number from `hexlist mine`.") }
        if renew, write || !peers.isEmpty { throw ValidationError("--renew cannot be combined with --with and --write.") }
        if renew, hex == nil { throw ValidationError("Which hex? Give its number from `hexlist mine share`.") }
        if write, peers.isEmpty { throw ValidationError("--write needs --with.") }
        if yes, !renew { throw ValidationError("--yes needs --renew.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            guard let hex else { return try list(try await client.sharedHexes().shared, output) }
            if renew { return try await self.renew(hex, client, output) }
            guard !peers.isEmpty else { return try list(try await client.sharedHex(hex.value), output) }
            try await share(hex, client, output)
        }
        try output.flush()
    }

    private func list(_ shared: [SharedHexView], _ output: Output) throws {
        if output.json {
            for hex in shared { try output.object(hex) }
        } else if shared.isEmpty {
            StandardError.note("No shared hexes. To share one: `hexlist mine share HEX --with PEER`.")
        } else {
            var table = Table(SharingText.header)
            for hex in shared { table.add(SharingText.cells(hex)) }
            try output.table(table)
            for advice in shared.compactMap(SharingText.renewalAdvice) { StandardError.wrapped(advice) }
        }
    }

    private func list(_ shared: SharedHexView, _ output: Output) throws {
        if output.json { return try output.object(shared) }
        guard !shared.peers.isEmpty else {
            return StandardError.note(
                shared.owned
                    ? "\(SharingText.title(shared.title)) has no members."
                    : "\(SharingText.title(shared.title)) belongs to another person, whose machines were forgotten. Nothing is exchanged.")
        }
        var table = Table(SharingText.peerHeader)
        for peer in shared.peers { table.add(SharingText.cells(peer, of: shared)) }
        try output.table(table)
        if let advice = SharingText.renewalAdvice(shared) { StandardError.wrapped(advice) }
    }

    private func renew(_ hex: HexID, _ client: HexlistClient, _ output: Output) async throws {
        let before = try await client.sharedHex(hex.value)
        guard before.owned else { throw SharingText.notOwned(before) }
        // The daemon refuses a hex inside the shared one.
        if !yes, before.hex == hex.value { try SharingText.renewing(before).ask() }
        let renewal = try await client.renewShared(hex.value)
        if output.json { try output.object(renewal) } else { try output.wrapped(SharingText.renewed(renewal)) }
    }

    private func share(_ hex: HexID, _ client: HexlistClient, _ output: Output) async throws {
        let mine = try await client.mineHex(hex)
        let before = try await client.sharedHexes().shared.first { $0.hex == hex.value }
        let members = try await ShareMembers(peers, client)
        for line in members.leftOut { StandardError.wrapped(line) }
        // Read before the request, which moves the hex to the top level.
        let outer: HexJSON? = if let parent = mine.parent { try await client.hex(parent) } else { nil }
        let access = write ? ShareAccess.write : .read
        let shared = try await client.shareMine(
            hex.value, ShareHexRequest(with: members.peers.map { .init(peer: $0.description, access: access) }))
        if output.json { return try output.object(shared) }
        if let outer { try output.wrapped(SharingText.moved(shared, from: HexText.subject(outer))) }
        for line in SharingText.shared(shared, with: members.peers, before: before) { try output.wrapped(line) }
        try output.flush()
        let new = members.peers.filter { peer in !(before.map(SharingText.current) ?? []).contains { $0.uuid == peer } }
        if !new.isEmpty { UndoHint.note(["mine", "unshare", "\(hex.value)"] + new.prefix(20).flatMap { ["--with", $0.shortID] }) }
    }
}

struct MineUnshareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unshare", abstract: "Stop sharing a hex, with everybody or with some members.",
        discussion: "Former members keep the hex as it is, read-only, and receive no later changes.")

    @OptionGroup var common: CommonOptions

    @Option(
        name: .customLong("with"),
        help: ArgumentHelp("Only with this member, or those of a group as @NAME; may be repeated.", valueName: "peer"),
        completion: .recipients)
    var peers: [String] = []

    @Argument(help: ArgumentHelp("The number of the hex.", valueName: "hex"), completion: .mine)
    var hex: HexID

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            let before = try await client.sharedHex(hex.value)
            guard before.owned else { throw SharingText.notOwned(before) }
            let members = SharingText.current(before)
            guard !members.isEmpty else {
                throw HexlistError(.badRequest, "\(SharingText.title(before.title)) is not shared with anybody.")
            }
            let ended = try await named(among: members, of: before, client)
            let shared = try await client.shareMine(
                hex.value, ShareHexRequest(with: ended.map { .init(peer: $0.uuid.description, access: .none) }))
            if output.json { try output.object(shared) } else { try output.wrapped(SharingText.ended(shared, with: ended)) }
            try output.flush()
            guard !output.json, Set(ended.map(\.access)).count == 1 else { return }
            UndoHint.note(
                ["mine", "share", "\(hex.value)"] + ended.prefix(20).flatMap { ["--with", $0.uuid.shortID] }
                    + (ended[0].access.known == .write ? ["--write"] : []))
        }
    }

    /// Returns the members that the user named; without names, all.
    private func named(
        among members: [SharedHexView.Peer], of shared: SharedHexView, _ client: HexlistClient
    ) async throws -> [SharedHexView.Peer] {
        guard !peers.isEmpty else { return members }
        var named: Set<PeerID> = []
        for word in peers {
            if GroupName.isMarked(word) {
                named.formUnion(try await ShareMembers.group(word, client).peers.map(\.uuid))
            } else if let peer = try await client.peer(word).uuid {
                guard members.contains(where: { $0.uuid == peer }) else {
                    throw HexlistError(
                        .badRequest, "\(SharingText.title(shared.title)) is not shared with \(TerminalText.clean(word, columns: 60)).",
                        hint: "`hexlist mine share \(hex.value)` lists its members.")
                }
                named.insert(peer)
            }
        }
        let ended = members.filter { named.contains($0.uuid) }
        guard !ended.isEmpty else {
            throw HexlistError(.badRequest, "\(SharingText.title(shared.title)) is not shared with any of them.")
        }
        return ended
    }
}

/// The peers with whom a hex is shared, as named by the user.
struct ShareMembers {
    private(set) var peers: [PeerID] = []
    /// Sentences about the peers of groups that are left out.
    private(set) var leftOut: [String] = []

    /// - Throws: `HexlistError` if a peer or group is not known, or if nobody is left.
    init(_ words: [String], _ client: HexlistClient) async throws {
        let all = try await client.peers(all: true)
        for word in words {
            guard GroupName.isMarked(word) else {
                let peer = try await client.peer(word)
                guard let id = peer.uuid else { throw HexlistError(.badRequest, "\(peer.label.shown()) has no UUID.") }
                add(id)
                continue
            }
            for member in try await Self.group(word, client).peers {
                if let reason = Self.reason(member, all.first { $0.uuid == member.uuid }) {
                    leftOut.append("\(member.label.shown(.named)) is left out: \(reason).")
                } else {
                    add(member.uuid)
                }
            }
        }
        guard !peers.isEmpty else {
            throw HexlistError(
                .badRequest, "There is nobody to share it with.\(leftOut.isEmpty ? "" : " \(leftOut.prefix(3).joined(separator: " "))")",
                hint: "Name a trusted peer: `--with PEER`.")
        }
    }

    private mutating func add(_ peer: PeerID) { if !peers.contains(peer) { peers.append(peer) } }

    /// Returns the reason for which a member of a group cannot become a member of a shared hex; `nil` if it can.
    private static func reason(_ member: GroupMember, _ peer: PeerView?) -> String? {
        if peer?.kind?.known == .localsend { return "a device with LocalSend has no My Hexlist" }
        if peer?.own ?? false { return "your own machines have all of My Hexlist" }
        return peer?.trust == .trusted ? nil : "it is not trusted"
    }

    static func group(_ word: String, _ client: HexlistClient) async throws -> GroupView {
        let key = NormalizedName(GroupName.bare(word))
        guard let group = try await client.groups().first(where: { key?.isKey(of: $0.name) ?? false }) else {
            throw HexlistError(
                .notFound, "There is no group `\(TerminalText.clean(word, columns: 60))`.", hint: "`hexlist group` lists the groups.")
        }
        return group
    }
}

struct MineJoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join", abstract: "Follow a hex that somebody shares with you, or list such offers.",
        discussion: """
            hexlist mine join Reading

            The hex appears at the beginning of My Hexlist, and later changes of its owner appear in it. Nothing is fetched before \
            you join. `hexlist mine rm` ends the sharing for you. Without an argument, the command lists the offers; on a terminal, it \
            asks about a single one.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Decline the offer. It is not listed again, but can be joined by its number or title.")
    var decline = false

    @Flag(help: "Do not ask.")
    var yes = false

    @Argument(
        help: ArgumentHelp("The number or title of an offer, or the peer it is from.", valueName: "offer"), completion: .sharedHexOffers)
    var offer: String?

    func validate() throws {
        if decline, offer == nil { throw ValidationError("Which offer? Give its number from `hexlist mine join`.") }
        if yes, offer == nil || decline { throw ValidationError("--yes needs an offer to join.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            let lists = try await client.sharedHexes()
            let offers = lists.openOffers
            let chosen: SharedHexOffer
            if let offer {
                chosen = try SharingText.named(offer, in: lists.offers, joined: lists.shared)
                if chosen.further, !yes, !decline { try SharingText.joining(chosen).ask() }
            } else {
                guard offers.count == 1, !output.json, isatty(STDIN_FILENO) == 1 else { return try list(offers, output) }
                chosen = offers[0]
                try SharingText.joining(chosen).ask()
            }
            if decline {
                let declined = try await client.declineSharedHex(chosen.number)
                if output.json { try output.object(declined) } else { try output.wrapped(SharingText.declined(declined)) }
                return
            }
            let joined = try await client.joinSharedHex(chosen.number)
            let result = try await SharedHexJoining(client: client, offer: chosen, joined: joined).result()
            if output.json { try output.object(result) } else { try output.wrapped(SharingText.joined(result, chosen)) }
            try output.flush()
            if !output.json, !chosen.further, let hex = result.hex { UndoHint.note(["mine", "rm", "\(hex)"]) }
        }
        try output.flush()
    }

    private func list(_ offers: [SharedHexOffer], _ output: Output) throws {
        if output.json {
            for offer in offers { try output.object(offer) }
        } else if offers.isEmpty {
            StandardError.note("Nobody offers you a hex.")
        } else {
            var table = Table(SharingText.offerHeader)
            for offer in offers { table.add(SharingText.cells(offer)) }
            try output.table(table)
            StandardError.note("To join one: `hexlist mine join NUMBER`.")
        }
    }
}
