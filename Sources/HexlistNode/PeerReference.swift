import HexlistModel

/// How a person names a peer: by its whole UUID, which is never taken for a name; by an alias; then trusted peers (present or
/// not) by name or by a prefix of the UUID that nobody else has; then strangers, by name only when nothing trusted ever had it.
/// A stranger's name that reads like the UUID of another finds neither the one nor the other.
struct PeerReference: Sendable {
    let text: String
    /// A trusted peer had that name once: then no stranger is found by it.
    let wasNameTrusted: Bool

    init(_ text: String, wasNameTrusted: Bool = false) {
        self.text = text
        self.wasNameTrusted = wasNameTrusted
    }

    /// - Throws: `HexlistError` `notFound`, `ambiguous`.
    func resolve(among views: [PeerView]) throws(HexlistError) -> PeerView {
        let peers = views.filter { $0.isPeer && $0.uuid != nil }
        let bytes = Array(text.utf8)
        let digits = bytes.map(ASCII.uppercased)
        if let exact = peers.first(where: { $0.uuid.map { Array($0.description.utf8) == digits } ?? false }) { return exact }
        guard PeerID(text) == nil else { throw notFound(views) }

        // Names compare as bytes: as characters, two texts that look alike would be one.
        let begins = bytes.count >= 4 ? peers.filter { $0.uuid?.description.utf8.starts(with: digits) ?? false } : []
        let matches: [(PeerView) -> Bool] = [
            { $0.alias.map { Array($0.utf8) == bytes } ?? false },
            { $0.trust == .trusted && (Array($0.name.utf8) == bytes || begins.count == 1 && begins[0].uuid == $0.uuid) },
            { [wasNameTrusted] peer in
                !wasNameTrusted && Array(peer.name.utf8) == bytes || begins.contains { $0.uuid == peer.uuid }
            },
        ]
        for match in matches {
            let found = peers.filter(match)
            if found.count == 1, let only = found.first { return only }
            if found.count > 1 { throw ambiguous(found) }
        }
        throw notFound(views)
    }

    private var shown: String { TerminalText.clean(text, columns: 60) }

    private func ambiguous(_ found: [PeerView]) -> HexlistError {
        let candidates = found.prefix(8).compactMap { view in
            view.uuid.map { "\($0) (\(TerminalText.clean(view.name, columns: 30)))" }
        }
        return HexlistError(
            .ambiguous, "\"\(shown)\" may be any of \(found.count) peers: \(candidates.joined(separator: ", ")).",
            hint: "Name it by its UUID, or give it an alias with `hexlist peer rename`.")
    }

    private func notFound(_ views: [PeerView]) -> HexlistError {
        if let ghost = views.first(where: { $0.isGhost(called: text) }) {
            return HexlistError(
                .notFound, "\"\(shown)\" is announced but is no peer one can reach: \(ghost.reason ?? "unverified").",
                hint: ghost.why ?? "`hexlist peers --all --why` says more.")
        }
        return HexlistError(
            .notFound, "There is no peer \"\(shown)\".", hint: "`hexlist peers --all --why` lists every peer that was seen.")
    }
}
