import HexlistModel
import HexlistStore
import HexlistTransport

/// The identity of this installation, which is created at the first start. The store records its UUID, because inbox, outbox and trust
/// belong to one identity.
enum OwnIdentity {
    /// The key of the entry in the store. Its value is the UUID of the identity, or the word `made` if the store accepts any identity.
    private static let key = "identity"

    /// The entry of a used store that accepts any identity. Stores of early versions have the same entry.
    static let acceptingAny: [String: String?] = [key: "made"]

    /// The entry of a store that accepts this identity only.
    static func values(for identity: Identity) -> [String: String?] { [key: identity.peerID.description] }

    /// Opens or creates the identity.
    /// - Throws: `HexlistError` `identity` if it is missing although the store was used, or if the store records another identity. With
    ///   another identity this machine would be another peer, so the user has to decide.
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
                hint: "Put a copy of it back, or restore a backup. For a new identity: `hexlistd --begin-anew`.")
        }
        let identity = try Identity.create(in: folder)
        try? await store.setMeta(values(for: identity))  // if this fails, the next start does it
        return identity
    }

    /// Checks that the store accepts an identity. If it accepts any identity, it records the given one; if that cannot be written, the next
    /// start does it.
    /// - Throws: `HexlistError` `identity` if the store records another identity.
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
