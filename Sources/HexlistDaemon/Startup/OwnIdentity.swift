import HexlistModel
import HexlistStore
import HexlistTransport

/// The identity of this installation, made on the first start. The store remembers it: inbox, outbox and trust belong to one identity.
enum OwnIdentity {
    /// The name under which the store remembers the identity: its UUID, or a word that is no UUID if any identity is accepted.
    private static let key = "identity"

    /// The values of a store that was used and accepts any identity, as earlier versions wrote them.
    static let acceptingAny: [String: String?] = [key: "made"]

    /// The values of a store that accepts this identity only.
    static func values(for identity: Identity) -> [String: String?] { [key: identity.peerID.description] }

    /// - Throws: `HexlistError` `identity` if it is missing beside a store that was used, or is not the one that the store was used with:
    ///   to others it is another peer, so only the user can decide on that.
    static func open(folder: String, store: HexStore) async throws -> Identity {
        if let found = try Identity.load(from: folder) {
            try await check(found, folder: folder, store: store)
            return found
        }
        let (isUnused, known) = try await store.read { (try $0.isUnused(), try $0.peers().count { $0.trust != .stranger }) }
        guard isUnused else {
            let use = known == 0 ? "the store beside it was used with one" : "\(known) trusted or blocked peers are known"
            throw HexlistError(
                .identity, "\(folder)/\(Identity.fileName) is missing, and \(use).",
                hint: "Put back a copy of it, or restore a backup. `hexlistd --begin-anew` makes a new one, of another peer.")
        }
        let identity = try Identity.create(in: folder)
        try? await store.setMeta(values(for: identity))  // otherwise the next start does that
        return identity
    }

    /// Compares an identity with the one that the store remembers. A store that accepts any remembers this one from now on; if it cannot be
    /// written now, the next start does that.
    private static func check(_ found: Identity, folder: String, store: HexStore) async throws {
        let kept = try await store.read { try $0.meta(key) }.flatMap { PeerID($0) }
        guard let kept else {
            try? await store.setMeta(values(for: found))
            return
        }
        guard kept == found.peerID else {
            throw HexlistError(
                .identity,
                "The store in \(folder) was used as \(kept.shortID)…, and \(folder)/\(Identity.fileName) is that of \(found.peerID.shortID)….",
                hint:
                    "Put back the \(Identity.fileName) of \(kept.shortID). If it is lost, move this one away: `hexlistd --begin-anew` then "
                    + "makes a new one.")
        }
    }
}
