import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistStore

#if canImport(Glibc)
    import Glibc
#endif

/// The destination of fetched files: a folder of the user, or the pool.
enum FetchDestination: Equatable {
    case folder(String)
    case place(PoolLocation)

    /// Reads the destination from a request.
    /// - Throws: `HexlistError` `badRequest` unless the request names exactly one destination.
    init(_ request: TransferRequest) throws(HexlistError) {
        switch (request.to, request.cache ?? false, request.keep ?? false) {
        case (nil, true, false): self = .place(.pool)
        case (nil, false, true): self = .place(.kept)
        case (let folder?, false, false):
            guard folder.hasPrefix("/"), !folder.utf8.contains(0) else {
                throw HexlistError(.badRequest, "`to` must be the absolute path of a folder.")
            }
            self = .folder(folder)
        default: throw HexlistError(.badRequest, "Where to? Give one of `to`, `cache` and `keep`.")
        }
    }

    var isFolder: Bool { if case .folder = self { true } else { false } }
}

/// Creates folders for fetched files.
enum FolderCreator {
    /// Creates folders inside an existing folder.
    /// - Throws: `HexlistError` `badRequest` if a path that exists is a symbolic link or not a folder.
    static func make(_ folders: [[String]], in base: String, mask: Int) throws {
        var status = stat()
        guard stat(base, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw HexlistError(
                .badRequest, "\(TerminalText.clean(base, columns: 200)) is not a folder.", hint: "Name an existing folder with `--to`.")
        }
        guard access(base, W_OK | X_OK) == 0 else {
            throw HexlistError(
                .badRequest, "\(TerminalText.clean(base, columns: 200)) cannot be written (\(String(cString: strerror(errno)))).")
        }
        for folder in folders {
            let path = ([base] + folder).joined(separator: "/")
            let mode = mode_t(0o777 & ~mask)
            if mkdir(path, mode) == 0 {
                // Symbolic links are not followed when the folder is opened. Another user who may write here could have replaced the folder
                // by a link.
                let made = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                if made >= 0 {
                    _ = fchmod(made, mode)
                    close(made)
                }
                continue
            }
            let reason = errno
            guard reason == EEXIST, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw HexlistError(
                    .badRequest,
                    "The folder \(TerminalText.clean(path, columns: 300)) cannot be created (\(String(cString: strerror(reason)))).",
                    hint: "Fetch into another folder with `--to`.")
            }
        }
    }
}
