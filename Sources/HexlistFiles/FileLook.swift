import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// A look at a file by its path alone.
public enum FileLook {
    /// Whether there is a regular file of this size that last changed then; not known, and so no, where one of the two is not given.
    /// - Parameter modified: milliseconds since 1970.
    public static func isThere(_ path: String, size: Int64?, modified: Int64?) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0, status.isRegular else { return false }
        return Int64(status.st_size) == size && FileIdentity(status).modified / 1_000_000 == modified
    }
}
