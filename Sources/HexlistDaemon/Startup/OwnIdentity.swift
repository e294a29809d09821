import HexlistModel
import HexlistStore
import HexlistTransport

/// The identity of this installation, made on the first start.
enum OwnIdentity {
    /// The name under which the store remembers that it was used with an identity.
    private static let key = "identity"

    /// - Throws: `HexlistError` `identity` if it is missing beside a store that was used: a new identity would be another peer, so only the
    ///   user can decide to make one.
    static func open(folder: String, store: HexStore) async throws -> Identity {
        if let found = try Identity.load(from: folder) {
            await remember(in: store)
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
        await remember(in: store)
        return identity
    }

    /// Has the store remember that it is used with an identity. If it cannot be written now, the next start does that.
    private static func remember(in store: HexStore) async {
        guard (try? await store.read { try $0.meta(key) }) == nil else { return }
        try? await store.setMeta([key: "made"])
    }
}
