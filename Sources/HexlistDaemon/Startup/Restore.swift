public import HexlistModel
import HexlistStore
import HexlistTransport

#if canImport(Glibc)
    import Glibc
#endif

/// A backup put back while no daemon runs: `hexlistd --restore FILE`.
///
/// The store and the identity are made and checked in a folder of their own inside the state folder. Only then what was there is moved
/// aside, and they take its place by renames. What is killed before that has changed nothing; what is killed in between leaves everything in
/// one of the folders, and restoring again does all of it.
public struct Restore: Sendable, Equatable {
    /// The name of the backup's file for the identity.
    static let identityName = Identity.fileName

    public var peer: PeerID
    /// Hexes in the inbox.
    public var inbox: Int
    /// Where the store, the identity and the files went that were there; `nil` if there were none.
    public var aside: String?

    /// - Throws: `HexlistError`: `badRequest`, `storeUnusable` or `identity` for a file that is no backup or damaged, `alreadyRunning` with a
    ///   daemon that uses the folder, `stateFolder`, `storageFull`.
    public static func run(_ backup: String, into folder: String) throws -> Restore {
        umask(0o077)
        let state: StateFolder
        do {
            state = try StateFolder(path: folder)
        } catch var error as HexlistError where error.code == .alreadyRunning {
            error.hint = "Stop it first (`systemctl --user stop hexlistd`, where it is a service), then restore again."
            throw error
        }
        let making = "\(state.path)/\(StateFolder.restoringName)"
        remove(making)
        try PrivateFolder.make(making)
        defer { remove(making) }

        let files = try StoreBackup.restore(backup, to: StateFolder.storePath(making))
        guard let pem = files[identityName] else {
            throw HexlistError(.badRequest, "The backup \(backup) has no identity.", hint: "Take another one.")
        }
        let identity = try Identity.restore(pem, in: making)
        let store = try HexStore(path: StateFolder.storePath(making))
        let inbox = try store.readSync { try $0.counts().inbox }
        // The store is copied after the identity: a rotation in between leaves another one in it.
        try store.setMetaSync(OwnIdentity.values(for: identity))
        try store.close()

        let aside = try moveAside(state.path)
        for name in [StateFolder.storeName, Identity.fileName] {
            try SetAsideFolder.move("\(making)/\(name)", to: "\(state.path)/\(name)")
        }
        SetAsideFolder.synchronize(state.path)
        withExtendedLifetime(state) {}  // the lock
        return Restore(peer: identity.peerID, inbox: Int(clamping: inbox), aside: aside)
    }

    /// What it says to the person.
    public var lines: [String] {
        ["Restored: this machine is \(peer) now, with \(inbox) \(inbox == 1 ? "hex" : "hexes") in the inbox."]
            + (aside.map { ["What was here before is in \($0)."] } ?? [])
            + [
                "Two machines may not run one identity. If the one this backup is of still runs, run `hexlist id rotate` on one of them "
                    + "before both are on a network."
            ]
    }

    /// The files of a state folder that a backup takes the place of.
    private static let names = ["", "-wal", "-shm", "-journal"].map { StateFolder.storeName + $0 } + [Identity.fileName]

    /// What is moved aside, in this order. Without its identity a folder with an interrupted restore is refused (`StateFolderContents`), so that goes
    /// first: no start finds the store without its log. The log belongs to its store and goes before it, so that no other store finds it.
    static let namesMovedAside = [Identity.fileName] + names.filter { $0 != Identity.fileName }.reversed() + SetAsideFolder.fileFolders

    private static func moveAside(_ folder: String) throws -> String? {
        // A link that leads nowhere is moved aside as well.
        let present = namesMovedAside.filter { StateFolderContents.exists("\(folder)/\($0)") }
        guard !present.isEmpty else { return nil }
        let aside = try SetAsideFolder.make(StateFolder.asidePrefix, in: folder)
        for name in present {
            try SetAsideFolder.move("\(folder)/\(name)", to: "\(aside)/\(name)")
            if name == Identity.fileName { SetAsideFolder.synchronize(folder) }
        }
        SetAsideFolder.synchronize(aside)
        return aside
    }

    private static func remove(_ folder: String) {
        for name in names + [Identity.fileName + ".new"] { unlink("\(folder)/\(name)") }
        rmdir(folder)
    }
}
