internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

/// A lock file. At most one process at a time holds the lock, until the process exits or the object is released.
///
/// The first line of the file is the process ID of the holder. The second line, if any, is the path of the socket on which it listens.
/// The holder has two locks: flock(2) excludes other holders; the lock of fcntl(2), taken after the text was written, shows readers that
/// the text is complete and that the holder is still running.
public final class LockFile: Sendable {
    /// The process that holds the lock, as stated in the file.
    public struct Holder: Error, Equatable, Sendable {
        /// The process ID; `nil` if the file does not contain it.
        public var pid: Int?
        /// The absolute path of the process's socket; `nil` if the file does not contain it.
        public var socket: String?

        public init(pid: Int?, socket: String? = nil) {
            self.pid = pid
            self.socket = socket
        }
    }

    public enum Fault: Error, Equatable, Sendable {
        /// The file cannot be opened or created.
        case closed(SystemError)
        /// The file system does not support locks.
        case unlockable(SystemError)
        case held(Holder)
    }

    /// Maximum bytes of text that are read from the file. The path of a socket has at most 107 bytes.
    private static let textBytes = 4_096

    private let descriptor: CInt

    /// Creates the file if it does not exist, and locks it.
    /// - Parameter socket: the absolute path of the socket on which this process listens.
    public init(path: String, socket: String? = nil) throws(Fault) {
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .closed(.last) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else { throw .unlockable(.last) }
            throw .held(Self.holder(descriptor))
        }
        write(socket: socket)
        _ = hexlist_lock_file(descriptor)
    }

    // Also runs if `init` throws because another process holds the lock. That does not affect the other process's locks.
    deinit {
        hexlist_unlock_file(descriptor)
        close(descriptor)
    }

    /// Replaces the text of the file. The new text is written over the old one, and the file is truncated afterwards, so this works on a
    /// full disk. If writing fails, the text is incomplete, and readers ignore it.
    public func write(socket: String?) {
        let text = Array(("\(getpid())\n" + (socket.map { "\($0)\n" } ?? "")).utf8)
        _ = text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        _ = ftruncate(descriptor, off_t(text.count))
    }

    /// Returns the running process that holds the lock of the file `name` in a folder.
    /// - Returns: `nil` if no process holds the lock or if the text cannot be trusted, because the folder or file does not belong to this
    ///   user or because other users can write to it.
    public static func holder(of name: String, in folder: String) -> Holder? {
        let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return nil }
        defer { close(directory) }
        let file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard isOwn(directory, S_IFDIR), isOwn(file, S_IFREG), hexlist_is_file_locked(file) == 1 else { return nil }
        return holder(file)
    }

    private static func isOwn(_ descriptor: CInt, _ kind: mode_t) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == kind else { return false }
        return status.st_uid == geteuid() && status.st_mode & 0o022 == 0
    }

    private static func holder(_ descriptor: CInt) -> Holder {
        var buffer = [UInt8](repeating: 0, count: textBytes)
        let count = buffer.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        return holder(text: buffer.prefix(max(0, count)))
    }

    /// Parses `PID\nSOCKET\n`. Ignores a path that is relative or has no line break at its end.
    static func holder(text: some Collection<UInt8>) -> Holder {
        let newline = UInt8(ascii: "\n")
        guard let end = text.firstIndex(of: newline), let pid = Int(String(decoding: text[..<end], as: UTF8.self)), pid > 0 else {
            return Holder(pid: nil)
        }
        let rest = Array(text[text.index(after: end)...])
        guard rest.first == UInt8(ascii: "/"), rest.last == newline, let path = String(validating: rest.dropLast(), as: UTF8.self),
            !path.utf8.contains(0)
        else { return Holder(pid: pid) }
        return Holder(pid: pid, socket: path)
    }
}
