public import HexlistModel
import HexlistStore
import HexlistTransport

#if canImport(Glibc)
    import Glibc
#endif

/// Recreates a missing store or identity while no daemon runs (`hexlistd --begin-anew`). Existing parts stay. If the store is new, files
/// that belonged to the lost store are moved to a separate folder.
public struct MissingPartsRecreation: Sendable, Equatable {
    public var peer: PeerID
    public var hasNewStore: Bool
    public var hasNewIdentity: Bool
    /// The folder to which kept files and offered copies were moved; `nil` if there were none.
    public var aside: String?

    /// Recreates the missing parts.
    /// - Throws: `HexlistError`: `badRequest` if nothing is missing, `storeUnusable` or `identity` for a part that cannot be used,
    ///   `alreadyRunning` if a daemon uses the folder, `stateFolder`, `storageFull`.
    public static func run(in folder: String) throws -> MissingPartsRecreation {
        umask(0o077)
        let state = try StateFolder(path: folder)
        defer { withExtendedLifetime(state) {} }  // holds the lock of the folder
        // A dangling symbolic link counts as a missing store. `HexStore` refuses to create a file in place of the link.
        let hasNewStore = access(state.storePath, F_OK) != 0
        let kept = try Identity.load(from: state.path)
        guard hasNewStore || kept == nil else {
            throw HexlistError(
                .badRequest, "\(state.path) has both a store and an identity.",
                hint: "Nothing was changed. To replace both, move the whole folder away.")
        }
        try StateFolderContents.checkRestore(state.path)
        let aside = try openStore(state, isNew: hasNewStore, acceptsAny: kept == nil && !hasNewStore)
        let identity = try kept ?? Identity.create(in: state.path)
        return MissingPartsRecreation(peer: identity.peerID, hasNewStore: hasNewStore, hasNewIdentity: kept == nil, aside: aside)
    }

    /// Opens or creates the store. For a new store, the folders of files are moved to a separate folder first, because a daemon would
    /// delete files that its store does not know. If creating the store fails, they are moved back.
    /// - Parameter acceptsAny: whether to set the store to accept any identity, because a new identity is created next. Then a crash
    ///   between the two steps leaves a usable state. False for a new store, which accepts any identity as long as it is unused.
    /// - Returns: the path of the separate folder; `nil` if there were no files.
    private static func openStore(_ state: StateFolder, isNew: Bool, acceptsAny: Bool) throws -> String? {
        let present = EarlierStateFolder.fileFolders.filter { isNew && StateFolderContents.exists("\(state.path)/\($0)") }
        let aside = present.isEmpty ? nil : try EarlierStateFolder.make(StateFolder.beginAnewPrefix, in: state.path)
        do {
            if let aside {
                for name in present { try EarlierStateFolder.move("\(state.path)/\(name)", to: "\(aside)/\(name)") }
                EarlierStateFolder.synchronize(aside)
                EarlierStateFolder.synchronize(state.path)
            }
            let store = try HexStore(path: state.storePath)
            if acceptsAny { try store.setMetaSync(OwnIdentity.acceptingAny) }
            try store.close()
        } catch {
            if let aside {
                for name in present { rename("\(aside)/\(name)", "\(state.path)/\(name)") }
                rmdir(aside)
            }
            throw error
        }
        return aside
    }

    /// The result, as lines of text for the user.
    public var lines: [String] {
        [
            hasNewStore ? "The store is new and empty." : "The existing store was kept.",
            hasNewIdentity
                ? "The identity is new: this machine is \(peer) now, and a stranger to others." : "This machine is \(peer), as before.",
        ] + (aside.map { ["The previous files are in \($0)."] } ?? [])
    }
}
