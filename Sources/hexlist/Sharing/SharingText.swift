import HexlistAPI
import HexlistJSON
import HexlistModel

/// Texts about shared hexes. Titles of shared hexes may be text of a peer: they are cleaned, cut, and in quotation marks.
enum SharingText {
    private static let titleColumns = 60
    /// Maximum number of names in a sentence.
    private static let nameLimit = 8

    /// Returns a title in quotation marks.
    static func title(_ title: String) -> String {
        let title = TerminalText.clean(title, columns: titleColumns)
        return HexSubject.isBlank(title) ? "(no description)" : "\"\(title)\""
    }

    static func name(_ peer: SharedHexView.Peer) -> String { peer.label.shown(.named) }

    /// Joins names: `bob`, `bob and carol`, `bob, carol and 3 others`.
    static func names(_ names: [String], limit: Int = nameLimit) -> String {
        let others = names.count - limit
        let shown = others > 0 ? names.prefix(limit) + [HumanText.count(others, "other", "others")] : names[...]
        guard let last = shown.last, shown.count > 1 else { return names.first ?? "nobody" }
        return "\(shown.dropLast().joined(separator: ", ")) and \(last)"
    }

    static func links(_ number: Int) -> String { "\(HumanText.grouped(number)) \(number == 1 ? "link" : "links")" }

    // MARK: Lists

    /// Returns the members with access, or for a hex of another person the machines of its owner.
    static func current(_ shared: SharedHexView) -> [SharedHexView.Peer] { shared.peers.filter { $0.access.known != ShareAccess.none } }

    /// Returns the names of the owner's machines.
    static func owner(_ shared: SharedHexView) -> String {
        shared.peers.isEmpty ? "another person" : names(shared.peers.map(name), limit: 2)
    }

    static let header = ["HEX", "LINKS", "ACCESS", "WITH", "DESCRIPTION"]

    static func cells(_ shared: SharedHexView) -> [Table.Cell] {
        let members = current(shared).map(name)
        let with = shared.owned ? (members.isEmpty ? "nobody" : names(members, limit: 3)) : "from \(owner(shared))"
        return [
            shared.hex.map { Table.Cell(String($0)) } ?? Table.Cell("–"), Table.Cell(count: shared.links),
            Table.Cell(shared.owned ? "owner" : access(shared.access)), Table.Cell(with, columns: 100, minimum: 12),
            Table.Cell(HexSubject.isBlank(shared.title) ? (shared.hex == nil ? "(not received yet)" : "") : shared.title, minimum: 16),
        ]
    }

    /// Returns the mark of a shared hex in the list of My Hexlist; `nil` for a hex that is not shared any more.
    static func mark(_ shared: SharedHexView) -> String? {
        let members = current(shared).count
        let new = shared.new == 0 ? "" : ", \(new(shared.new))"
        guard shared.owned else { return (shared.access.known == ShareAccess.none ? "ended" : "from \(owner(shared))") + new }
        return members == 0 ? nil : "with \(members)\(new)"
    }

    /// Returns the number of new links: `3 new`. The daemon counts up to 1 000.
    static func new(_ count: Int) -> String { "\(HumanText.grouped(count))\(isMaximum(count) ? " or more" : "") new" }

    /// Returns the number of new links: `3 new links`.
    static func newLinks(_ count: Int) -> String { "\(new(count)) \(count == 1 ? "link" : "links")" }

    private static func isMaximum(_ new: Int) -> Bool { new >= 1_000 }

    /// Returns the line of `hexlist show` for a hex inside a shared one: `inside "Reading", from ada (read)`.
    static func line(inside shared: SharedHexView) -> String { "inside \(title(shared.title)), \(line(shared))" }

    /// Returns the line of `hexlist show`: `with bob (write) and carol (read)`, `from ada (read)`.
    static func line(_ shared: SharedHexView) -> String {
        guard shared.owned else {
            let note = shared.access.known == ShareAccess.none ? "sharing has ended" : access(shared.access)
            return "from \(owner(shared)) (\(note))"
        }
        return "with " + names(current(shared).map { "\(name($0)) (\(accessAndState($0, of: shared)))" })
    }

    /// Returns the sentence of `hexlist mine HEX` for a hex that is shared, or inside a shared one.
    static func note(_ sharing: HexSharingJSON, of hex: Int64, _ shared: SharedHexView) -> String {
        let new = sharing.new == 0 || sharing.hex != nil ? "" : " It has \(newLinks(sharing.new)): `hexlist show \(hex)`."
        let access: String
        switch shared.access.known {
        case .write where !shared.owned: access = " You can edit it."
        case .read: access = " You can only read it."
        case .some(.none): access = " It cannot be changed, because the sharing has ended."
        case .write, nil: access = ""
        }
        let who = shared.owned ? "which you share with \(names(current(shared).map(name)))" : "which belongs to \(owner(shared))"
        guard sharing.hex == nil else { return "Hex \(hex) is inside \(title(shared.title)), \(who).\(access)" }
        return shared.owned
            ? "You share it with \(names(current(shared).map(name))).\(new)" : "It belongs to \(owner(shared)).\(access)\(new)"
    }

    private static func accessAndState(_ peer: SharedHexView.Peer, of shared: SharedHexView) -> String {
        switch peer.state.known {
        case .offered: "\(access(peer.access)), \(state(peer, of: shared))"
        case .left: state(peer, of: shared)
        case .joined, nil: access(peer.access)
        }
    }

    static func access(_ access: ForwardCompatibleEnum<ShareAccess>) -> String {
        switch access.known {
        case .read: "read"
        case .write: "write"
        case .some(.none): "ended"
        case nil: TerminalText.clean(access.text, columns: 20)
        }
    }

    static let peerHeader = ["NAME", "UUID", "ACCESS", "STATE", "TO SEND", "LAST CHANGE", "WHY"]

    static func cells(_ peer: SharedHexView.Peer, of shared: SharedHexView) -> [Table.Cell] {
        let sends = peer.state.known == .joined && peer.access.known != ShareAccess.none || !shared.owned && shared.access.known == .write
        let style: Terminal.Style = peer.message != nil ? .failure : peer.online && isJoined(peer, of: shared) ? .good : .plain
        return [
            Table.Cell(peer.label.head, .strong, columns: 32, minimum: 12), Table.Cell(peer.uuid.shortID),
            Table.Cell(shared.owned ? access(peer.access) : "owner"), Table.Cell(state(peer, of: shared), style),
            sends && !peer.indirect ? Table.Cell(count: peer.behind, none: "–") : Table.Cell("–"),
            Table.Cell(peer.receivedAt.map { HumanText.moment($0) } ?? "–", .faint), Table.Cell(peer.message ?? "", columns: 400),
        ]
    }

    private static func isJoined(_ peer: SharedHexView.Peer, of shared: SharedHexView) -> Bool {
        shared.owned ? peer.access.known != ShareAccess.none && peer.state.known == .joined : shared.access.known != ShareAccess.none
    }

    /// Returns the state of a member, or of a machine of the owner, in one or two words.
    static func state(_ peer: SharedHexView.Peer, of shared: SharedHexView) -> String {
        guard isJoined(peer, of: shared) else {
            guard shared.owned, peer.access.known != ShareAccess.none else { return "ended" }
            if peer.indirect { return "via another machine" }  // which knows whether the peer has joined
            return switch peer.state.known {
            case .offered: "not joined"
            case .left: "left"
            case .joined, nil: TerminalText.clean(peer.state.text, columns: 20)
            }
        }
        if peer.message != nil { return "stopped" }
        if peer.indirect { return "via another machine" }
        guard peer.online else { return "away" }
        return peer.behind > 0 && (shared.owned || shared.access.known == .write) ? "exchanging" : "in sync"
    }

    /// Returns a message without its full stop, for use within a sentence.
    private static func inSentence(_ message: String) -> String {
        let text = TerminalText.clean(message, columns: 200)
        return text.last == "." ? String(text.dropLast()) : text
    }

    static func isProblem(_ shared: SharedHexView) -> Bool {
        shared.access.known != ShareAccess.none && current(shared).contains { $0.message != nil && isJoined($0, of: shared) }
    }

    /// Returns the lines of `hexlist status`: one per hex, those with a problem first.
    static func summary(_ lists: SharedHexes, limit: Int = 5) -> [String] {
        let active = lists.shared.filter { $0.owned ? !current($0).isEmpty : $0.access.known != ShareAccess.none }
        let sorted = active.filter(isProblem) + active.filter { !isProblem($0) }
        var lines = sorted.prefix(limit).map { shared in
            let peers = current(shared).prefix(nameLimit).map { peer in
                "\(name(peer)) \(state(peer, of: shared))" + (peer.message.map { " (\(inSentence($0)))" } ?? "")
            }
            return "\(title(shared.title))\(shared.owned ? "" : " (not yours)"): \(peers.joined(separator: ", "))"
        }
        if sorted.count > limit { lines.append("and \(HumanText.count(sorted.count - limit, "more shared hex", "more shared hexes"))") }
        if !lists.openOffers.isEmpty {
            lines.append("\(HumanText.count(lists.openOffers.count, "hex is", "hexes are")) offered: `hexlist mine join`")
        }
        return lines
    }

    // MARK: Sharing

    /// Returns the sentences after a hex was shared.
    /// - Parameters:
    ///   - peers: the peers that the user named.
    ///   - before: the shared hex before; `nil` if it was not shared.
    static func shared(_ shared: SharedHexView, with peers: [PeerID], before: SharedHexView?) -> [String] {
        func member(_ peer: PeerID, of shared: SharedHexView?) -> SharedHexView.Peer? { shared?.peers.first { $0.uuid == peer } }
        let members = peers.compactMap { member($0, of: shared) }
        var (new, changed, same): ([SharedHexView.Peer], [SharedHexView.Peer], [SharedHexView.Peer]) = ([], [], [])
        for peer in members {
            switch member(peer.uuid, of: before)?.access {
            case nil: new.append(peer)
            case let old? where old.known == ShareAccess.none: new.append(peer)
            case let old? where old == peer.access: same.append(peer)
            case _?: changed.append(peer)
            }
        }
        let title = title(shared.title)
        let canEdit = members.first?.access.known == .write
        var lines: [String] = []
        if !new.isEmpty {
            let size = "\(title) (\(links(shared.links)))"
            lines.append("\(size) is now shared with \(names(new.map(name))), who can \(canEdit ? "edit" : "read") it.")
            let again = new.filter { $0.state.known == .joined }.map(name)
            if !again.isEmpty { lines.append("\(names(again)) \(again.count == 1 ? "goes" : "go") on with the copy from before.") }
            let asked = new.filter { $0.state.known != .joined }
            let (here, away) = (asked.filter(\.online).map(name), asked.filter { !$0.online }.map(name))
            if !here.isEmpty { lines.append("\(names(here)) \(here.count == 1 ? "is" : "are") asked to join.") }
            if !away.isEmpty { lines.append("\(names(away)) will be asked to join when next online.") }
        }
        if !changed.isEmpty { lines.append("\(names(changed.map(name))) can now \(canEdit ? "edit" : "only read") \(title).") }
        let (left, others) = (same.filter { $0.state.known == .left }.map(name), same.filter { $0.state.known != .left }.map(name))
        if !others.isEmpty { lines.append("\(names(others)) can \(canEdit ? "edit" : "read") \(title) already.") }
        if !left.isEmpty {
            let have = left.count == 1 ? "has" : "have"
            lines.append("\(names(left)) \(have) left \(title), and can join again there: `hexlist mine join TITLE`.")
        }
        return lines
    }

    /// - Parameter outer: the title of the hex in which the shared hex was.
    static func moved(_ shared: SharedHexView, from outer: String) -> String {
        "\(title(shared.title)) moved from \(title(outer)) to the top level of My Hexlist. Shared hexes are always at the top level."
    }

    static func ended(_ shared: SharedHexView, with peers: [SharedHexView.Peer]) -> String {
        let left = current(shared)
        let with = "\(title(shared.title)) is no longer shared\(left.isEmpty && peers.count > 1 ? "" : " with \(names(peers.map(name)))")."
        let joined = peers.filter { $0.state.known == .joined }.map(name)
        guard !joined.isEmpty else { return with }
        return "\(with) \(names(joined)) \(joined.count == 1 ? "keeps a copy" : "keep their copies")."
    }

    // MARK: Renewing

    /// Returns the question before a hex is renewed.
    static func renewing(_ shared: SharedHexView) -> Confirmation {
        let members = current(shared).filter { $0.state.known != .left }.map(name)
        let ends =
            members.isEmpty
            ? ""
            : " \(names(members)) \(members.count == 1 ? "has" : "have") to join it again, and changes that have not arrived yet are left out."
        return Confirmation(
            deed: "removes the deleted hexes and links of \(title(shared.title)) for good",
            question: """
                The deleted hexes and links of \(title(shared.title)) leave the trash for good, and its changes cannot be undone.\(ends) \
                Renew it?
                """,
            line: "hexlist mine share \(shared.hex.map { String($0) } ?? "HEX") --renew --yes")
    }

    /// Returns the sentences after a hex was renewed.
    static func renewed(_ renewal: SharedHexRenewal) -> String {
        let shared = renewal.shared
        let removed =
            renewal.removed == 0
            ? "It had no deleted hexes and links."
            : "\(HumanText.count(renewal.removed, "deleted hex or link is", "deleted hexes and links are")) gone."
        let done = "\(title(shared.title)) (\(links(shared.links))) was renewed. \(removed)"
        let members = current(shared).map(name)
        guard !members.isEmpty else { return done }
        return "\(done) \(names(members)) \(members.count == 1 ? "has" : "have") to join it again: `hexlist mine join`."
    }

    /// Returns the sentence about a hex that should be renewed; `nil` for any other one.
    static func renewalAdvice(_ shared: SharedHexView) -> String? {
        guard shared.needsRenewal, let hex = shared.hex else { return nil }
        return """
            \(title(shared.title)) has nearly the maximum of hexes and links, including deleted ones. To leave those out: \
            `hexlist mine share \(hex) --renew`.
            """
    }

    static func notOwned(_ shared: SharedHexView) -> HexlistError {
        HexlistError(
            .badRequest, "\(title(shared.title)) belongs to \(owner(shared)), who decides about its members.",
            hint: shared.hex.map { "To stop following it: `hexlist mine rm \($0)`." })
    }

    // MARK: Deleting

    /// Returns what happens to shared hexes that are deleted, one sentence each.
    static func deletion(_ hexes: [SharedHexView]) -> [String] {
        hexes.compactMap { shared in
            let members = current(shared).map(name)
            guard shared.owned else {
                return shared.access.known == ShareAccess.none
                    ? nil : "\(title(shared.title)) belongs to \(owner(shared)): you stop following it, and nothing changes there."
            }
            guard !members.isEmpty else { return nil }
            let isJoined = current(shared).contains { $0.state.known == .joined }
            let copies = !isJoined ? "Sharing ends." : members.count == 1 ? "\(members[0]) keeps a copy." : "They keep their copies."
            return "\(title(shared.title)) is shared with \(names(members, limit: 1)). \(copies)"
        }
    }

    /// Returns the sentences after shared hexes were deleted.
    static func deleted(_ hexes: [SharedHexView]) -> [String] {
        hexes.compactMap { shared in
            guard shared.owned else {
                return shared.access.known == ShareAccess.none ? nil : "You no longer follow \(title(shared.title)) from \(owner(shared))."
            }
            return current(shared).isEmpty
                ? nil : "\(title(shared.title)) is no longer shared. If you restore it, share it again: `hexlist mine share`."
        }
    }

    // MARK: Offers

    static let offerHeader = ["NUMBER", "FROM", "LINKS", "ACCESS", "TITLE"]

    static func cells(_ offer: SharedHexOffer) -> [Table.Cell] {
        [
            Table.Cell(String(offer.number)), Table.Cell(offer.label.shown(.named, columns: 40), columns: 40, minimum: 12),
            Table.Cell(count: offer.links), Table.Cell(access(offer.access)),
            Table.Cell((HexSubject.isBlank(offer.title) ? "" : offer.title) + (offer.further ? " (joined already)" : ""), minimum: 16),
        ]
    }

    /// Returns the sentence about an offer, without a full stop: `ada wants to share "Reading" with you (212 links; you can edit it)`.
    static func offer(_ offer: SharedHexOffer) -> String {
        let name = offer.label.shown(.named)
        guard !offer.further else { return "\(name) also offers \(title(offer.title)), which you have joined" }
        return "\(name) wants to share \(title(offer.title)) with you (\(size(offer)))"
    }

    /// Returns the line of the overview, which is cut after 60 columns.
    static func news(_ offer: SharedHexOffer) -> String {
        let name = offer.label.shown(.named)
        return offer.further ? self.offer(offer) : "\(name) wants to share \(title(offer.title)) (\(size(offer)))"
    }

    static func size(_ offer: SharedHexOffer) -> String {
        "\(links(offer.links)); you can \(offer.access.known == .write ? "edit" : "read") it"
    }

    /// Returns the question before an offer is accepted.
    static func joining(_ offer: SharedHexOffer) -> Confirmation {
        let name = offer.label.shown(.named)
        return Confirmation(
            deed: offer.further
                ? "makes \(name) another machine of the owner of \(title(offer.title))" : "adds \(title(offer.title)) from \(name)",
            question: offer.further
                ? "\(self.offer(offer)). Does \(name) belong to its owner too? Then its changes appear here as well."
                : "\(self.offer(offer)). Join?",
            line: "hexlist mine join \(offer.number) --yes", refused: "Nothing was changed. The offer stays: `hexlist mine join`.")
    }

    /// Returns the sentence after an offer was accepted.
    static func joined(_ shared: SharedHexView, _ offer: SharedHexOffer) -> String {
        let name = offer.label.shown(.named)
        let title = title(shared.hex == nil ? offer.title : shared.title)
        if offer.further { return "Changes of \(title) are now exchanged with \(name) too." }
        let peer = shared.peers.first { $0.uuid == offer.uuid }
        if let hex = shared.hex, peer?.receivedAt != nil { return "\(title) from \(name) is now hex \(hex) in your My Hexlist." }
        if let message = peer?.message {
            return "\(title) is joined, but nothing has arrived yet: \(TerminalText.clean(message, columns: 400))"
        }
        return peer?.online ?? false
            ? "\(title) is joined. Its contents have not arrived yet; `hexlist mine share` lists it."
            : "\(title) is joined. Its contents arrive when \(name) is online."
    }

    static func declined(_ offer: SharedHexOffer) -> String {
        "\(title(offer.title)) from \(offer.label.shown(.named)) is declined, and not listed again. To join it later: `hexlist mine join \(offer.number)`."
    }

    /// Returns the offer that the user named: by its number, title, or the name or UUID of the peer.
    /// - Parameter shared: the shared hexes of My Hexlist, one of which the user may have named.
    static func named(
        _ word: String, in offers: [SharedHexOffer], joined shared: [SharedHexView] = []
    ) throws(HexlistError) -> SharedHexOffer {
        if let number = Int64(word), let offer = offers.first(where: { $0.number == number }) { return offer }
        let key = NormalizedName(word)
        func isNamed(_ text: String?) -> Bool { text.map { key?.isKey(of: $0) ?? false } ?? false }
        var found = offers.filter { isNamed($0.title) }
        if found.isEmpty {
            found = offers.filter { offer in
                isNamed(offer.label.alias) || isNamed(offer.label.name) || word.utf8.count >= 4 && offer.uuid.begins(with: word)
            }
        }
        let shown = TerminalText.clean(word, columns: 60)
        guard let first = found.first else {
            let joined = shared.first { !$0.owned && $0.access.known != ShareAccess.none && isNamed($0.title) }
            if let joined, let hex = joined.hex {
                throw HexlistError(
                    .notFound, "\(title(joined.title)) is in your My Hexlist already.", hint: "It is hex \(hex): `hexlist mine \(hex)`.")
            }
            throw HexlistError(
                .notFound, "There is no offer `\(shown)`.", hint: "`hexlist mine join` lists the hexes that others offer you.")
        }
        guard found.count == 1 else {
            let numbers = found.prefix(nameLimit).map { String($0.number) }.joined(separator: ", ")
            throw HexlistError(.ambiguous, "Several offers match `\(shown)`: \(numbers).", hint: "Give the number of one.")
        }
        return first
    }
}

/// The event that the owner of a shared hex shares it again, after the sharing had ended.
struct SharingResumption: Equatable {
    var hex: Int64?
    var title: String
    var canEdit: Bool

    init(_ event: EventJSON) {
        hex = event.number("hex")
        title = event.text("title") ?? ""
        canEdit = event.text("access").map { PeerTextComparison.areEqual($0, ShareAccess.write.rawValue) } ?? false
    }

    /// Returns the sentence, without a full stop: `ada shares "Reading" with you again`.
    func summary(_ name: String) -> String { "\(name) shares \(SharingText.title(title)) with you again" }

    var access: String { "You can \(canEdit ? "edit" : "read") it." }

    /// The command that shows the hex, or all shared hexes.
    var command: String { hex.map { "hexlist show \($0)" } ?? "hexlist mine share" }
}

/// The event that the owner of a shared hex ended the sharing, or made it read-only.
struct SharingEnd: Equatable {
    /// The shared hex; `nil` if its contents had not arrived.
    var hex: Int64?
    var title: String
    /// Whether the sharing has ended. Otherwise the hex became read-only.
    var isEnd: Bool
    /// The number of hexes and links that were added, changed or deleted here and not accepted, and the hex with those that were not deleted.
    var rejected: Int
    var copy: Int64?

    init(_ event: EventJSON) {
        func text(_ name: String) -> String? {
            event.data?.members?.first { PeerTextComparison.areEqual($0.name, name) }?.value.string
        }
        hex = text("hex").flatMap { Int64($0) }
        title = text("title") ?? ""
        isEnd = text("access").map { PeerTextComparison.areEqual($0, ShareAccess.none.rawValue) } ?? true
        rejected = text("rejected").flatMap { Int($0) } ?? 0
        copy = text("copy").flatMap { Int64($0) }
    }

    /// Returns the line of the overview: `ada made "Reading" read-only; 3 changes were not accepted`.
    func news(_ name: String) -> String {
        let changes = rejected == 1 ? "1 change was" : "\(HumanText.grouped(rejected)) changes were"
        return summary(name) + (rejected > 0 ? "; \(changes) not accepted" : "")
    }

    /// Returns the sentence, without a full stop: `ada stopped sharing "Reading"`.
    func summary(_ name: String) -> String {
        isEnd ? "\(name) stopped sharing \(SharingText.title(title))" : "\(name) made \(SharingText.title(title)) read-only"
    }

    /// The sentence about the changes that were not accepted; `nil` if there are none.
    var rejection: String? {
        guard rejected > 0 else { return nil }
        let sentence =
            rejected == 1 ? "Your last change was not accepted" : "Your last \(HumanText.grouped(rejected)) changes were not accepted"
        return copy.map { "\(sentence). A copy is in hex \($0)." } ?? "\(sentence)."
    }

    /// The command that shows the hex, its members, or the copy with the changes that were not accepted.
    var command: String? {
        if !isEnd, let copy { return "hexlist show \(copy)" }
        return hex.map { isEnd ? "hexlist show \($0)" : "hexlist mine share \($0)" }
    }
}
