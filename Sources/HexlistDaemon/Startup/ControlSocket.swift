import HexlistAPI
import HexlistModel
import HexlistSystem
import ServiceLifecycle
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// The path of the API socket, in a folder in which other users cannot replace it. Never replaces a socket on which a process listens.
final class ControlSocket: Sendable {
    private struct Identity: Equatable {
        var device: dev_t
        var inode: ino_t
    }

    let path: String
    /// The state folder, whose lock file records the path of the socket, and which can contain a spare socket; `nil` for a spare socket
    /// itself.
    private let state: StateFolder?
    /// The device and inode of the socket file that this process bound; `nil` before it was bound.
    private let bound = Mutex<Identity?>(nil)
    private let currentPath: Mutex<String>
    /// The lock that prevents another daemon from binding the same socket. It is held while this object exists.
    private let lock: LockFile

    /// Creates the folder, and checks whether the path is free.
    /// - Parameters:
    ///   - isNamed: whether the user chose the path. Then the mode of an existing folder is not changed.
    ///   - state: the state folder that records the path.
    /// - Throws: `HexlistError`: `alreadyRunning` if a process may be listening on the socket; `configuration` if the path is too long or
    ///   is another file; `stateFolder` if the folder is unsuitable.
    init(path: String, isNamed: Bool, state: StateFolder? = nil) throws {
        self.path = path
        self.state = state
        currentPath = Mutex(path)
        guard path.utf8.count <= SystemSocket.maximumPathBytes else {
            throw HexlistError(
                .configuration, "The socket path \(path) has \(path.utf8.count) bytes; the maximum is \(SystemSocket.maximumPathBytes).",
                hint: "Choose a shorter path with --socket, or a shorter state folder.")
        }
        let folder = HexlistPaths.folder(of: path)
        try PrivateFolder.make(folder)
        try Self.check(folder: folder, isNamed: isNamed)
        do {
            lock = try LockFile(path: path + ".lock")
        } catch {
            throw error.explained(at: path + ".lock") { Self.taken("Another hexlistd\($0.words) uses the socket \(path).") }
        }
        try Self.probe(path)
    }

    /// Sets mode 0600 after binding. Until then the umask protects the socket.
    func protect() {
        chmod(path, 0o600)
        bound.withLock { $0 = Self.identity(path) }
    }

    /// The path on which the daemon currently listens: that of the spare socket if there is one.
    var current: String { currentPath.withLock { $0 } }

    var isBound: Bool { bound.withLock { $0 != nil } }

    /// Whether the bound socket still exists at its path.
    private var isThere: Bool { bound.withLock { $0 != nil && $0 == Self.identity(path) } }

    /// Removes the socket, unless another process has replaced it.
    func remove() { if isThere { unlink(path) } }

    /// Waits until the socket file is deleted. At logout, for example, systemd deletes the runtime folder of the user.
    /// - Returns: `false` if the task is cancelled or the daemon stops before that.
    /// - Throws: `SystemError` if the folder cannot be watched.
    func isDeleted() async throws -> Bool {
        let removals = try FolderWatch.removals(in: HexlistPaths.folder(of: path))
        guard isThere else { return true }
        for await _ in removals.cancelOnGracefulShutdown() where !isThere { return true }
        return false
    }

    /// Makes a spare socket in the state folder, and records its path in the lock file; `nil` without a state folder.
    func spare() throws -> ControlSocket? {
        guard let state else { return nil }
        let spare = HexlistPaths.join(state.path, "control.sock")
        let isSame = HexlistPaths.absolute(spare) == HexlistPaths.absolute(path)
        let socket = isSame ? self : try ControlSocket(path: spare, isNamed: false)
        state.record(socket: spare)
        currentPath.withLock { $0 = spare }
        return socket
    }

    private static func identity(_ path: String) -> Identity? {
        var status = stat()
        return lstat(path, &status) == 0 ? Identity(device: status.st_dev, inode: status.st_ino) : nil
    }

    private static func check(folder: String, isNamed: Bool) throws(HexlistError) {
        var status = stat()
        guard stat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { throw unfit(folder, "it is not a folder") }
        // The owner of the folder can replace the socket. Without the sticky bit, other users who can write to the folder can do so too.
        guard status.st_uid == geteuid() || status.st_uid == 0 else { throw unfit(folder, "it belongs to user \(status.st_uid)") }
        let isShared = status.st_mode & 0o022 != 0 && status.st_mode & S_ISVTX == 0
        if status.st_uid == geteuid(), !isNamed, status.st_mode & 0o077 != 0 {
            guard chmod(folder, 0o700) == 0 else { throw unfit(folder, String(cString: strerror(errno))) }
        } else if isShared {
            throw unfit(folder, "others may write to it")
        }
    }

    /// Checks an existing file at the path of the socket. A socket that refuses connections is stale and may be replaced.
    /// - Throws: `configuration` if the file is not a socket, `alreadyRunning` if a process may be listening on it.
    private static func probe(_ path: String) throws(HexlistError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw HexlistError(
                .configuration, "\(path) exists and is not a socket.", hint: "Move it away, or choose another path with --socket.")
        }
        let descriptor = SystemSocket.open(AF_UNIX, .stream, isBlocking: false)
        guard descriptor >= 0 else { throw unknown(path, .last) }
        defer { close(descriptor) }
        let connected = SystemSocket.withUnixAddress(path) { connect(descriptor, $0, $1) }
        if connected == 0 { throw taken("Another process listens on \(path) already.") }
        // After another error, such as a full queue or a missing permission, a process may be listening.
        if errno != ECONNREFUSED { throw unknown(path, .last) }
    }

    private static func unknown(_ path: String, _ error: SystemError) -> HexlistError {
        taken("Another process may be listening on \(path) (\(error)).")
    }

    private static func taken(_ message: String) -> HexlistError {
        HexlistError(
            .alreadyRunning, message, hint: "Stop that process, or choose another socket with --socket.")
    }

    private static func unfit(_ folder: String, _ reason: String) -> HexlistError {
        HexlistError(
            .stateFolder, "The socket cannot be in \(folder) (\(reason)).",
            hint: "Choose a folder of this user with --socket.")
    }
}
