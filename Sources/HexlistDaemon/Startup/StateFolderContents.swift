import HexlistModel
import HexlistSystem
import HexlistTransport

#if canImport(Glibc)
    import Glibc
#endif

/// Checks the state folder when the daemon starts. It distinguishes a first start, which creates store and identity, from a folder that has
/// lost its store: a new, empty store would hide the loss.
///
/// A first start creates the store, then the identity, then everything else. After an interrupted first start the folder is empty, or has
/// an unused store and no identity. A folder without a store that has an identity or later files has therefore lost its store.
enum StateFolderContents {
    /// Checks that no part is missing.
    /// - Throws: `HexlistError` `storeUnusable`, `identity` or `stateFolder` that names the missing part.
    static func check(_ folder: String) throws {
        let store = StateFolder.storePath(folder)
        try checkRestore(folder)
        guard !exists(store), let trace = trace(in: folder) else { return }
        throw HexlistError(
            .storeUnusable, "The store \(store) is missing, but \(trace) exists, so this is not a first start.",
            hint: "Mount its disk, or restore a backup (`hexlist restore FILE`). For an empty store: `hexlistd --begin-anew`.")
    }

    /// Checks that no restore was interrupted.
    /// - Throws: `HexlistError` `stateFolder` if a restore was interrupted while it moved files, so that some of them are in other folders.
    static func checkRestore(_ folder: String) throws {
        let isStoreHere = exists(StateFolder.storePath(folder))
        guard exists("\(folder)/\(StateFolder.restoringName)"), !isStoreHere || !exists("\(folder)/\(Identity.fileName)") else { return }
        let missing = isStoreHere ? Identity.fileName : StateFolder.storeName
        throw HexlistError(
            .stateFolder, "A restore in \(folder) was interrupted: \(missing) is missing.",
            hint: "Restore again (`hexlist restore FILE`). The earlier files are in a folder \(StateFolder.asidePrefix)… beside it.")
    }

    /// Returns the name of an entry that shows that the folder had a store and an identity, because only a running daemon, a restore or
    /// `--begin-anew` creates such an entry; `nil` if there is none.
    private static func trace(in folder: String) -> String? {
        let names = FolderNames.read(folder) ?? []
        let aside = names.filter { $0.hasPrefix(StateFolder.asidePrefix) || $0.hasPrefix(StateFolder.beginAnewPrefix) }.min()
        return ([Identity.fileName] + EarlierStateFolder.fileFolders).first(where: names.contains) ?? aside
    }

    /// Whether there is a file, a folder or a symbolic link at a path. A dangling link counts too.
    static func exists(_ path: String) -> Bool {
        var info = stat()
        return lstat(path, &info) == 0
    }

    /// Returns the target of a symbolic link; `nil` if the path is not a symbolic link.
    static func target(ofLink path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }
}
