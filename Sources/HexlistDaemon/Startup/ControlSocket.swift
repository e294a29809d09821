import HexlistAPI
import HexlistModel
import HexlistSystem

#if canImport(Glibc)
    import Glibc
#endif

/// The place the local API listens at: in a folder of this user alone, and never taken from somebody who answers there.
struct ControlSocket {
    let path: String
    /// Held while the daemon runs, so that of two that start at once only one looks and binds.
    private let lock: FileLock

    /// Makes the folder and looks who is there.
    /// - Parameter isNamed: whether the user chose the place; a folder that was there keeps its mode then.
    /// - Throws: `HexlistError`: `alreadyRunning` where somebody answers, `configuration` where the place cannot be a socket.
    init(path: String, isNamed: Bool) throws {
        guard path.utf8.count <= SystemSocket.maximumPathBytes else {
            throw HexlistError(
                .configuration, "The socket path \(path) has \(path.utf8.count) bytes; \(SystemSocket.maximumPathBytes) fit.",
                hint: "Name a shorter one with --socket, or a shorter state folder.")
        }
        let folder = HexlistPaths.folder(of: path)
        try PrivateFolder.make(folder)
        try Self.check(folder: folder, isNamed: isNamed)
        do {
            lock = try FileLock(path: path + ".lock")
        } catch is FileLock.Held {
            throw Self.taken(path)
        }
        try Self.probe(path)
        self.path = path
    }

    /// Mode 0600, once it is bound. The process's mask kept others out before already.
    func protect() { chmod(path, 0o600) }

    func remove() { unlink(path) }

    private static func check(folder: String, isNamed: Bool) throws(HexlistError) {
        var status = stat()
        guard stat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { throw unfit(folder, "it is no folder") }
        // Its owner, as well as whoever may write there, and no sticky bit forbids it, could put another socket in its place.
        guard status.st_uid == geteuid() || status.st_uid == 0 else { throw unfit(folder, "it belongs to user \(status.st_uid)") }
        let isShared = status.st_mode & 0o022 != 0 && status.st_mode & S_ISVTX == 0
        if status.st_uid == geteuid(), !isNamed, status.st_mode & 0o077 != 0 {
            guard chmod(folder, 0o700) == 0 else { throw unfit(folder, String(cString: strerror(errno))) }
        } else if isShared {
            throw unfit(folder, "others may write to it")
        }
    }

    /// A file nobody answers on is left over and may be replaced.
    private static func probe(_ path: String) throws(HexlistError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw HexlistError(
                .configuration, "\(path) is there and is no socket.", hint: "Move it away, or name another socket with --socket.")
        }
        let descriptor = SystemSocket.open(AF_UNIX, .stream, isBlocking: false)
        guard descriptor >= 0 else { throw taken(path) }
        defer { close(descriptor) }
        let connected = SystemSocket.withUnixAddress(path) { connect(descriptor, $0, $1) }
        // Anything but a plain refusal (a full queue, no permission) means that somebody may be there.
        if connected == 0 || errno != ECONNREFUSED { throw taken(path) }
    }

    private static func taken(_ path: String) -> HexlistError {
        HexlistError(
            .alreadyRunning, "Somebody listens on \(path) already.",
            hint: "Stop that daemon first, or give this one a socket of its own with --socket.")
    }

    private static func unfit(_ folder: String, _ reason: String) -> HexlistError {
        HexlistError(
            .stateFolder, "The socket cannot be in \(folder) (\(reason)).",
            hint: "Name a place in a folder of this user with --socket.")
    }
}
