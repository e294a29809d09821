import HexlistAPI
import HexlistModel
import HexlistSystem

#if canImport(Glibc)
    import Glibc
#endif

/// The folder of the store and the identity. It is created with access for this user only, and is locked while this value exists.
struct StateFolder {
    let path: String
    private let lock: LockFile

    /// Creates, checks and locks the folder.
    /// - Parameter socket: the path of the API socket. It is recorded in the lock file, where `hexlist` finds it even if it runs with other
    ///   environment variables.
    /// - Throws: `HexlistError` `stateFolder`, or `alreadyRunning` with the process id of the daemon that has the lock.
    init(path: String, socket: String? = nil) throws {
        try PrivateFolder.make(path)
        try Self.check(path)
        do {
            lock = try LockFile(path: "\(path)/\(HexlistPaths.lockName)", socket: socket.map(HexlistPaths.absolute))
        } catch {
            throw error.explained(at: "\(path)/\(HexlistPaths.lockName)") { holder in
                let socket = holder.socket.map { " Its socket is \($0)." } ?? ""
                return HexlistError(
                    .alreadyRunning, "Another hexlistd\(holder.words) uses the state folder \(path).\(socket)",
                    hint: "Stop it, or choose another state folder with --state-dir.")
            }
        }
        self.path = path
        Self.removeBackup(path)
    }

    var storePath: String { Self.storePath(path) }

    /// Records the path of the API socket in the lock file, for `hexlist`.
    func record(socket: String) { lock.write(socket: HexlistPaths.absolute(socket)) }

    static let storeName = "hexlist.sqlite"

    static func storePath(_ folder: String) -> String { "\(folder)/\(storeName)" }

    /// The name of the subfolder in which a restore creates store and identity, and the prefixes of the names of folders with an earlier
    /// state.
    static let (restoringName, asidePrefix, beginAnewPrefix) = ("restoring", "before-restore-", "before-begin-anew-")

    /// Returns the path of the file in which a backup is made.
    static func backupPath(_ folder: String) -> String { "\(folder)/hexlist.backup.new" }

    /// Removes an incomplete backup of a daemon that was killed.
    static func removeBackup(_ folder: String) {
        for leftover in [backupPath(folder), backupPath(folder) + "-journal"] { unlink(leftover) }
    }

    private static func check(_ path: String) throws(HexlistError) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let reason = String(cString: strerror(errno))
            guard let target = StateFolderContents.target(ofLink: path) else { throw fault(path, reason) }
            throw HexlistError(
                .stateFolder, "The state folder \(path) is a link to \(target), which is missing.",
                hint: "Mount its disk, or choose another folder with --state-dir. To start with an empty state, remove the link.")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw fault(path, "it is not a folder") }
        guard status.st_uid == geteuid() else { throw fault(path, "it belongs to user \(status.st_uid)") }
        if status.st_mode & 0o077 != 0, chmod(path, 0o700) != 0 { throw fault(path, String(cString: strerror(errno))) }
        guard access(path, R_OK | W_OK | X_OK) == 0 else { throw fault(path, String(cString: strerror(errno))) }
    }

    private static func fault(_ path: String, _ reason: String) -> HexlistError {
        HexlistError(
            .stateFolder, "The state folder \(path) cannot be used (\(reason)).",
            hint: "Make it a folder of this user with mode 0700, or choose another one with --state-dir.")
    }
}

extension LockFile.Fault {
    /// Converts the fault to a `HexlistError` for the user.
    /// - Parameters:
    ///   - path: the path of the lock file.
    ///   - held: returns the error if another process has the lock.
    func explained(at path: String, held: (LockFile.Holder) -> HexlistError) -> HexlistError {
        switch self {
        case .closed(let error):
            HexlistError(
                .stateFolder, "\(path) cannot be created (\(error)).",
                hint: "Make its folder writable for this user, or choose another one.")
        case .unlockable(let error):
            HexlistError(
                .stateFolder, "\(path) cannot be locked (\(error)).",
                hint: "Its file system may not support locks. Choose a local folder.")
        case .held(let holder): held(holder)
        }
    }
}

extension LockFile.Holder {
    /// The text ` (pid 123)` for messages; empty if the lock file does not name the process.
    var words: String { pid.map { " (pid \($0))" } ?? "" }
}

/// Creates folders that only this user can access.
enum PrivateFolder {
    /// Creates a folder, and its missing parent folders, with mode 0700. Does nothing if the folder exists.
    static func make(_ path: String) throws(HexlistError) {
        guard mkdir(path, 0o700) != 0 else { return }
        switch errno {
        case EEXIST: return
        case ENOENT where HexlistPaths.folder(of: path) != path:
            try make(HexlistPaths.folder(of: path))
            guard mkdir(path, 0o700) != 0, errno != EEXIST else { return }
            throw fault(path)
        default: throw fault(path)
        }
    }

    private static func fault(_ path: String) -> HexlistError {
        HexlistError(
            .stateFolder, "The folder \(path) cannot be created (\(String(cString: strerror(errno)))).",
            hint: "Create it for this user, or choose another one with --state-dir or --socket.")
    }
}
