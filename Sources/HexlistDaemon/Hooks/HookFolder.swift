import HexlistAPI
import HexlistStore
import HexlistSystem

#if canImport(Glibc)
    import Glibc
#endif

/// The folder of the user's hooks: executables named after the event for which they run.
///
/// Hooks run as this user. They are refused if another user can write to the folder or to a hook.
struct HookFolder: Sendable {
    enum Fault: Equatable, CustomStringConvertible {
        case gone
        case refused(String)

        var description: String {
            switch self {
            case .gone: "it is gone"
            case .refused(let why): why
            }
        }
    }

    let path: String

    /// Maximum number of entries that are read. There are far fewer event types.
    private static let entries = 1_000

    func path(of name: String) -> String { "\(path)/\(name)" }

    var isThere: Bool { access(path, F_OK) == 0 }

    /// Returns the sorted names of the entries, without names that begin with a dot; `nil` if the folder cannot be read.
    func names() -> [String]? {
        FolderNames.read(path, atMost: Self.entries) { !$0.hasPrefix(".") }?.sorted()
    }

    /// Returns the reason why no hook may run; `nil` if hooks may run. The parent folders are checked too, because a user who can write to
    /// one of them could replace the folder of hooks.
    func fault() -> Fault? { Self.fault(path, kind: S_IFDIR, "it is no folder") ?? Self.fault(above: path) }

    /// Returns the reason why a hook may not run; `nil` if it may run. Symbolic links are followed.
    func fault(of name: String) -> Fault? {
        if let fault = Self.fault(path(of: name), kind: S_IFREG, "it is no file") { return fault }
        return access(path(of: name), X_OK) == 0 ? nil : .refused("it is not executable")
    }

    /// Returns a problem of a parent folder of `path`. Checks the path as given, and with its symbolic links resolved. A parent folder with
    /// the sticky bit may be writable for other users, because they cannot replace the entries of this user and of root in it.
    private static func fault(above path: String) -> Fault? {
        let resolved = realpath(path, nil).map { text in
            defer { free(text) }
            return String(cString: text)
        }
        for start in [path, resolved].compactMap({ $0 }) {
            var folder = start
            while HexlistPaths.folder(of: folder) != folder {
                folder = HexlistPaths.folder(of: folder)
                var status = stat()
                guard stat(folder, &status) == 0 else { return .refused("\(folder): \(String(cString: strerror(errno)))") }
                guard status.st_uid == geteuid() || status.st_uid == 0 else {
                    return .refused("\(folder), above it, belongs to user \(status.st_uid)")
                }
                guard status.st_mode & 0o022 == 0 || status.st_mode & S_ISVTX != 0 else {
                    return .refused("others may write to \(folder), above it")
                }
            }
        }
        return nil
    }

    private static func fault(_ path: String, kind: mode_t, _ otherKind: String) -> Fault? {
        var status = stat()
        guard stat(path, &status) == 0 else { return errno == ENOENT ? .gone : .refused(String(cString: strerror(errno))) }
        guard status.st_mode & S_IFMT == kind else { return .refused(otherKind) }
        guard status.st_uid == geteuid() || status.st_uid == 0 else { return .refused("it belongs to user \(status.st_uid)") }
        guard status.st_mode & 0o022 == 0 else {
            return .refused("others may write to it (mode \(String(status.st_mode & 0o777, radix: 8)))")
        }
        return nil
    }
}
