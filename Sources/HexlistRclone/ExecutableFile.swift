#if canImport(Glibc)
    internal import Glibc
#endif

enum ExecutableFile {
    /// Whether the path leads to a regular file, following symbolic links, that this process may execute.
    static func exists(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }
}
