import HexlistModel
import HexlistTransport

#if canImport(Glibc)
    import Glibc
#endif

/// The parts of a state folder, as a start finds them. Distinguishes a first start, which makes store and identity, from a state of which a part is
/// missing: an empty store in the place of a lost one would look as if nothing had ever been there.
///
/// The first start makes the store, then the identity, and everything else after these. So one that was interrupted leaves nothing, or
/// a store that was never used and no identity; and a folder with anything else, but no store, had one.
enum StateFolderContents {
    /// - Throws: `HexlistError` `storeUnusable`, `identity` or `stateFolder` that names the missing part.
    static func check(_ folder: String) throws {
        let store = StateFolder.storePath(folder)
        try checkRestore(folder)
        guard !exists(store), let trace = trace(in: folder) else { return }
        throw HexlistError(
            .storeUnusable, "The store \(store) is missing, and \(trace) is there: this is no first start.",
            hint: "Mount the disk it is on, or put it back (`hexlist restore FILE`). `hexlistd --begin-anew` makes an empty one.")
    }

    /// - Throws: `HexlistError` `stateFolder` if a restore was interrupted, so that parts are in other folders.
    static func checkRestore(_ folder: String) throws {
        let isStoreHere = exists(StateFolder.storePath(folder))
        guard exists("\(folder)/\(StateFolder.restoringName)"), !isStoreHere || !exists("\(folder)/\(Identity.fileName)") else { return }
        let missing = isStoreHere ? Identity.fileName : StateFolder.storeName
        throw HexlistError(
            .stateFolder, "A restore in \(folder) was interrupted: \(missing) is missing.",
            hint: "Restore again (`hexlist restore FILE`). What was there before is in a folder \(StateFolder.asidePrefix)… beside it.")
    }

    /// The name of something that only a daemon makes that has a store and an identity, or that a restore or a new beginning leaves.
    private static func trace(in folder: String) -> String? {
        let names = names(in: folder)
        let aside = names.filter { $0.hasPrefix(StateFolder.asidePrefix) || $0.hasPrefix(StateFolder.beginAnewPrefix) }.min()
        return ([Identity.fileName] + SetAsideFolder.fileFolders).first(where: names.contains) ?? aside
    }

    private static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            names.append(withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names
    }

    /// Whether there is a file, a folder, or a link, wherever that leads.
    static func exists(_ path: String) -> Bool {
        var info = stat()
        return lstat(path, &info) == 0
    }

    /// The target of a link; `nil` if the path is no link.
    static func target(ofLink path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }
}
