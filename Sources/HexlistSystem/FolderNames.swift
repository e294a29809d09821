#if canImport(Glibc)
    import Glibc
#endif

/// Reads the names in a folder.
public enum FolderNames {
    /// Returns the names that `isWanted` accepts, at most `limit`, in the order of the file system; `nil` if the folder cannot be opened.
    public static func read(_ path: String, atMost limit: Int = .max, where isWanted: (String) -> Bool = { _ in true }) -> [String]? {
        guard let stream = opendir(path) else { return nil }
        defer { closedir(stream) }
        var names: [String] = []
        while names.count < limit, let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            if isWanted(name) { names.append(name) }
        }
        return names
    }
}
