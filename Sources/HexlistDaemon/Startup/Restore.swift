public import HexlistModel
import HexlistStore
import HexlistTransport

#if canImport(Glibc)
    import Glibc
#endif

/// Restores a backup while no daemon runs (`hexlistd --restore FILE`).
///
/// Store and identity are created and checked in a subfolder of the state folder. Then the existing ones are moved to a separate folder,
/// and the new ones are moved to their places, both with `rename`. A crash before the first `rename` changes nothing. After a later crash
/// no file is lost, and restoring again completes the work.
public struct Restore: Sendable, Equatable {
    /// Name of the identity file in a backup.
    static let identityName = Identity.fileName

    public var peer: PeerID
    /// Number of hexes in the inbox.
    public var inbox: Int
    /// The folder to which the existing store, identity and files were moved; `nil` if there were none.
    public var aside: String?

    /// Restores a backup into a state folder.
    /// - Throws: `HexlistError`: `badRequest`, `storeUnusable` or `identity` for an invalid or damaged backup, `alreadyRunning` if a daemon
    ///   uses the folder, `stateFolder`, `storageFull`.
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
            throw HexlistError(.badRequest, "The backup \(backup) has no identity.", hint: "Use another backup.")
        }
        let identity = try Identity.restore(pem, in: making)
        let store = try HexStore(path: StateFolder.storePath(making))
        let inbox = try store.readSync { try $0.counts().inbox }
        // A backup copies the identity before the store. If the identity was rotated in between, the store in the backup records another
        // one.
        try store.setMetaSync(OwnIdentity.values(for: identity))
        try store.close()

        let aside = try moveAside(state.path)
        for name in [StateFolder.storeName, Identity.fileName] {
            try EarlierStateFolder.move("\(making)/\(name)", to: "\(state.path)/\(name)")
        }
        EarlierStateFolder.synchronize(state.path)
        withExtendedLifetime(state) {}  // holds the lock of the folder
        return Restore(peer: identity.peerID, inbox: Int(clamping: inbox), aside: aside)
    }

    /// The result, as lines of text for the user.
    public var lines: [String] {
        ["Restored: this machine is \(peer) now, with \(inbox) \(inbox == 1 ? "hex" : "hexes") in the inbox."]
            + (aside.map { ["The previous files are in \($0)."] } ?? [])
            + [
                "Two machines cannot share an identity. If the machine of this backup still runs, run `hexlist id rotate` on one of them "
                    + "before both are on a network."
            ]
    }

    /// The names of the files in the state folder that a restore replaces.
    private static let names = ["", "-wal", "-shm", "-journal"].map { StateFolder.storeName + $0 } + [Identity.fileName]

    /// The names of the files and folders that are moved to the separate folder, in this order. The identity is first: after an interrupted
    /// restore, a daemon refuses a folder without an identity (`StateFolderContents`), so it cannot use the store without its WAL. The WAL
    /// precedes its store, so that it is never beside another store.
    static let namesMovedAside = [Identity.fileName] + names.filter { $0 != Identity.fileName }.reversed() + EarlierStateFolder.fileFolders

    private static func moveAside(_ folder: String) throws -> String? {
        // Symbolic links without a target are moved too.
        let present = namesMovedAside.filter { StateFolderContents.exists("\(folder)/\($0)") }
        guard !present.isEmpty else { return nil }
        let aside = try EarlierStateFolder.make(StateFolder.asidePrefix, in: folder)
        for name in present {
            try EarlierStateFolder.move("\(folder)/\(name)", to: "\(aside)/\(name)")
            if name == Identity.fileName { EarlierStateFolder.synchronize(folder) }
        }
        EarlierStateFolder.synchronize(aside)
        return aside
    }

    private static func remove(_ folder: String) {
        for name in names + [Identity.fileName + ".new"] { unlink("\(folder)/\(name)") }
        rmdir(folder)
    }
}
