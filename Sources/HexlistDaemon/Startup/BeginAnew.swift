public import HexlistModel
import HexlistStore
import HexlistTransport

#if canImport(Glibc)
    import Glibc
#endif

/// A store or an identity that is missing, made new on purpose while no daemon runs: `hexlistd --begin-anew`. A part that is there stays.
public struct BeginAnew: Sendable, Equatable {
    public var peer: PeerID
    public var hasNewStore: Bool
    public var hasNewIdentity: Bool

    /// - Throws: `HexlistError`: `badRequest` if nothing is missing, `storeUnusable` or `identity` for a part that cannot be used,
    ///   `alreadyRunning` with a daemon that uses the folder, `stateFolder`, `storageFull`.
    public static func run(in folder: String) throws -> BeginAnew {
        umask(0o077)
        let state = try StateFolder(path: folder)
        defer { withExtendedLifetime(state) {} }  // the lock
        // A link that leads nowhere is a missing store, in whose place the store itself refuses to make one.
        let hasNewStore = access(state.storePath, F_OK) != 0
        let kept = try Identity.load(from: state.path)
        guard hasNewStore || kept == nil else {
            throw HexlistError(
                .badRequest, "The store and the identity in \(state.path) are there.",
                hint: "Nothing was changed. To begin anew with both, move the whole folder away.")
        }
        let store = try HexStore(path: state.storePath)
        // Before the identity is made, so that a crash in between leaves nothing that does not fit. A new store has to stay unused.
        if kept == nil, !hasNewStore { try store.setMetaSync(OwnIdentity.acceptingAny) }
        try store.close()
        let identity = try kept ?? Identity.create(in: state.path)
        return BeginAnew(peer: identity.peerID, hasNewStore: hasNewStore, hasNewIdentity: kept == nil)
    }

    /// The report for people.
    public var lines: [String] {
        [
            hasNewStore ? "The store is new and empty." : "The store is the one that was there.",
            hasNewIdentity
                ? "The identity is new: this machine is \(peer) now, and a stranger to others." : "This machine is \(peer), as before.",
        ]
    }
}
