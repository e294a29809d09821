public import HexlistAPI
import HexlistModel

/// A peer as a user names it: PEER of the command line and the local API. It is resolved in this order:
///
/// 1. a whole UUID, which is never resolved as anything else;
/// 2. an alias (`NormalizedName`);
/// 3. the beginning of a UUID, or the own name of a peer that is neither trusted nor has an alias, if it is unambiguous.
///
/// The own name of a trusted peer, or of a peer with an alias, never resolves to that peer, but it can make the text ambiguous. Strangers
/// without an alias that are away are ignored if exactly one peer of that name is online, because they may be former installations of it.
public struct PeerReference: Sendable {
    let text: String
    /// The text as a name key. Computed once, because it is compared with the names of all peers.
    private let key: NormalizedName?

    public init(_ text: String) {
        self.text = text
        key = NormalizedName(text)
    }

    /// Returns the peer that the text names.
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
                .notFound, "You renamed \"\(shown)\" to \(only.label.text(.whole)); use that name, or its UUID.",
                hint: "To rename it again: `hexlist peer rename`.")
        }
        return only
    }

    /// Returns `named` without strangers that are away, if exactly one of the peers is online.
    private func livePeer(of named: [PeerView]) -> [PeerView] {
        guard named.count(where: { $0.state == .verified }) == 1 else { return named }
        return named.filter { $0.state != .away || $0.trust != .stranger || $0.alias != nil }
    }

    /// The ghosts whose name is the text, or whose UUID begins with it (4 digits or more).
    public func ghosts(among views: [PeerView]) -> [PeerView] {
        views.filter { $0.state == .ghost && (names($0.name) || $0.uuid?.begins(with: text) ?? false) }
    }

    private func names(_ name: String) -> Bool { key?.isKey(of: name) ?? false }

    private var shown: String { TerminalText.clean(text, columns: 60) }

    private func ambiguous(_ found: [PeerView]) -> HexlistError {
        let candidates = found.prefix(8).map { $0.label.text(.whole) }
        return HexlistError(
            .ambiguous, "\"\(shown)\" could be \(found.count) peers: \(candidates.joined(separator: ", ")).",
            hint: "Use a UUID, or give one an alias with `hexlist peer rename`.")
    }

    private func notFound(_ views: [PeerView]) -> HexlistError {
        if let ghost = ghosts(among: views).first {
            // Usually this machine's own announcement, but possibly that of another machine with a copy of its identity.
            if ghost.reason == "self" {
                return HexlistError(
                    .notFound, "\"\(shown)\" is this machine, or one with the same identity.",
                    hint: "More: `hexlist peers --all --why`.")
            }
            return HexlistError(
                .notFound,
                "\"\(shown)\" is announced but cannot be reached: \(ghost.label.text(.whole)), \(ghost.reason ?? "unverified").",
                hint: ghost.why ?? "More: `hexlist peers --all --why`.")
        }
        if let address = TypedNetworkAddress(text) {
            let there = views.filter { $0.isPeer && $0.endpoints.contains { address.isHost($0.host) } }
            let hint = there.count == 1 ? "\(there[0].label.text()) was seen at that address: use that name, or its UUID." : address.advice
            return HexlistError(.notFound, "There is no peer \"\(shown)\".", hint: hint)
        }
        let meant = likely(views).map { "Did you mean \($0.label.text())? " } ?? ""
        return HexlistError(
            .notFound, "There is no peer \"\(shown)\".", hint: meant + "All peers seen so far: `hexlist peers --all --why`.")
    }

    /// Returns the peer with the name nearest to the text. Aliases are preferred, because anyone can choose the own name of another peer.
    private func likely(_ views: [PeerView]) -> PeerView? {
        guard text.utf8.count <= NormalizedName.bytes else { return nil }
        let peers = views.filter { $0.isPeer && $0.uuid != nil }.prefix(Self.comparisonLimit)
        for names in [peers.compactMap { peer in peer.alias.map { (peer, $0) } }, peers.filter { $0.alias == nil }.map { ($0, $0.name) }] {
            guard let near = NearestName.likely(text, among: names.map(\.1)) else { continue }
            return names.first { $0.1.utf8.elementsEqual(near.utf8) }?.0
        }
        return nil
    }

    /// Maximum number of peers whose names are compared, because there can be many strangers.
    private static let comparisonLimit = 1_000
}
