import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// Recognizes a file by its path, size and modification time, without opening it.
public enum FileMatch {
    /// Whether a regular file with this size and modification time exists at a path. `false` if size or time is `nil`.
    /// - Parameter modified: milliseconds since 1970.
    public static func exists(_ path: String, size: Int64?, modified: Int64?) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0, status.isRegular else { return false }
        return Int64(status.st_size) == size && FileIdentity(status).modified / 1_000_000 == modified
    }
}
