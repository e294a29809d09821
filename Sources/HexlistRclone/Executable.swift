#if canImport(Glibc)
    internal import Glibc
#endif

/// Programs, as the system finds them.
enum Executable {
    /// Whether there is a regular file at the path, symbolic links followed, that this process may run.
    static func isThere(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }
}
