public import HexlistAPI
import HexlistModel

/// How a person names a peer, PEER of the command line and the local API. In this order:
///
/// 1. a whole UUID, which is never taken for anything else;
/// 2. an alias (`NameKey`);
/// 3. the beginning of a UUID, or the own name of a peer that is neither trusted nor has an alias, where no other peer is meant by either.
///    The latest own names of all other peers count there too: they find nobody, and keep others from being found. Only those of strangers
///    that are away and left no alias count for nothing where one peer of that name is here: they may be former installations of it.
public struct PeerReference: Sendable {
    let text: String
    /// Made once: there are as many names to compare it with as peers.
    private let key: NameKey?

    public init(_ text: String) {
        self.text = text
        key = NameKey(text)
    }

    /// - Throws: `HexlistError` `notFound`, or `ambiguous` with the candidates.
    func resolve(among views: [PeerView]) throws(HexlistError) -> PeerView {
        let peers = views.filter { $0.isPeer && $0.uuid != nil }
        if let peer = PeerID(text) {
            guard let exact = peers.first(where: { $0.uuid == peer }) else { throw notFound(views) }
            return exact
        }
        let owners = peers.filter { $0.alias.map(names) ?? false }
        guard owners.count < 2 else { throw ambiguous(owners) }
        if let owner = owners.first { return owner }

        let begun = peers.filter { $0.uuid?.begins(with: text) ?? false }
        let named = livePeer(of: peers.filter { names($0.name) })
        let found = begun + named.filter { peer in !begun.contains { $0.uuid == peer.uuid } }
        guard found.count < 2 else { throw ambiguous(found) }
        guard let only = found.first else { throw notFound(views) }
        guard !begun.isEmpty || only.trust != .trusted && only.alias == nil else {
            throw HexlistError(
                .notFound, "\"\(shown)\" is what \(only.label.text(.whole)) calls itself, and no alias.",
                hint: "Name it by its alias or its UUID, or give it another alias with `hexlist peer rename`.")
        }
        return only
    }

    /// Returns `named` without the strangers that are away, where exactly one peer is here.
    private func livePeer(of named: [PeerView]) -> [PeerView] {
        guard named.count(where: { $0.state == .verified }) == 1 else { return named }
        return named.filter { $0.state != .away || $0.trust != .stranger || $0.alias != nil }
    }

    /// Announcements that are hidden and read as a person named them: by their name, or by 4 digits of their UUID or more.
    public func ghosts(among views: [PeerView]) -> [PeerView] {
        views.filter { $0.state == .ghost && (names($0.name) || $0.uuid?.begins(with: text) ?? false) }
    }

    private func names(_ name: String) -> Bool { key?.isKey(of: name) ?? false }

    private var shown: String { TerminalText.clean(text, columns: 60) }

    private func ambiguous(_ found: [PeerView]) -> HexlistError {
        let candidates = found.prefix(8).map { $0.label.text(.whole) }
        return HexlistError(
            .ambiguous, "\"\(shown)\" may be any of \(found.count) peers: \(candidates.joined(separator: ", ")).",
            hint: "Name it by its UUID, or give it an alias with `hexlist peer rename`.")
    }

    private func notFound(_ views: [PeerView]) -> HexlistError {
        if let ghost = ghosts(among: views).first {
            // A ghost that claims to be this machine may be another one; mostly it is this one, heard by itself.
            if ghost.reason == "self" {
                return HexlistError(
                    .notFound, "\"\(shown)\" is this machine, or one that has its identity.",
                    hint: "`hexlist peers --all --why` says more.")
            }
            return HexlistError(
                .notFound,
                "\"\(shown)\" is announced but is no peer one can reach: \(ghost.label.text(.whole)), \(ghost.reason ?? "unverified").",
                hint: ghost.why ?? "`hexlist peers --all --why` says more.")
        }
        if let address = AddressText(text) {
            let there = views.filter { $0.isPeer && $0.endpoints.contains { address.isHost($0.host) } }
            let hint = there.count == 1 ? "\(there[0].label.text()) was seen at that address: name it so, or by its UUID." : address.advice
            return HexlistError(.notFound, "There is no peer \"\(shown)\".", hint: hint)
        }
        let meant = likely(views).map { "Did you mean \($0.label.text())? " } ?? ""
        return HexlistError(
            .notFound, "There is no peer \"\(shown)\".", hint: meant + "`hexlist peers --all --why` lists every peer that was seen.")
    }

    /// Returns the peer that a mistyped name was likely meant for. An alias goes before a name, which anyone can take.
    private func likely(_ views: [PeerView]) -> PeerView? {
        guard text.utf8.count <= NameKey.bytes else { return nil }
        let peers = views.filter { $0.isPeer && $0.uuid != nil }.prefix(Self.mostCompared)
        for names in [peers.compactMap { peer in peer.alias.map { (peer, $0) } }, peers.filter { $0.alias == nil }.map { ($0, $0.name) }] {
            guard let near = NearestName.likely(text, among: names.map(\.1)) else { continue }
            return names.first { $0.1.utf8.elementsEqual(near.utf8) }?.0
        }
        return nil
    }

    /// Peers a slip is compared with: strangers can be many.
    private static let mostCompared = 1_000
}
