internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

/// A file that one process at a time holds locked, until it ends or releases the object.
///
/// The file contains the process id of the holder on its first line, and after it the socket that the holder listens on, if it has one.
/// Two locks: that of flock(2) excludes other holders, and that of fcntl(2), taken once the text is complete, lets a reader see that
/// the text belongs to a process that still runs.
public final class LockFile: Sendable {
    /// The process that holds a lock, as the file names it.
    public struct Holder: Error, Equatable, Sendable {
        /// `nil` if the file does not contain it.
        public var pid: Int?
        /// The absolute path of its socket; `nil` if the file does not contain it.
        public var socket: String?

        public init(pid: Int?, socket: String? = nil) {
            self.pid = pid
            self.socket = socket
        }
    }

    public enum Fault: Error, Equatable, Sendable {
        /// The file cannot be opened or created.
        case closed(SystemError)
        /// The file system has no locks.
        case unlockable(SystemError)
        case held(Holder)
    }

    /// The most bytes of the text that are read. A socket's path has 107 at most.
    private static let textBytes = 4_096

    private let descriptor: CInt

    /// Creates the file if it is missing, and locks it.
    /// - Parameter socket: the absolute path of the socket that this process listens on.
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

    // Also if `init` throws; the locks of another holder stay.
    deinit {
        hexlist_unlock_file(descriptor)
        close(descriptor)
    }

    /// Replaces the text of the file. It is written over the old one before the file is cut, so that it takes no room on a full disk. A
    /// failure leaves an incomplete text, which readers ignore.
    public func write(socket: String?) {
        let text = Array(("\(getpid())\n" + (socket.map { "\($0)\n" } ?? "")).utf8)
        _ = text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        _ = ftruncate(descriptor, off_t(text.count))
    }

    /// Returns the running process that holds the lock of the file `name` in a folder.
    /// - Returns: `nil` if no process holds it, or another user could have written the text: folder and file have to belong to the user of
    ///   this process, and nobody else may write to them.
    public static func holder(of name: String, in folder: String) -> Holder? {
        let place = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard place >= 0 else { return nil }
        defer { close(place) }
        let file = openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard isOwn(place, S_IFDIR), isOwn(file, S_IFREG), hexlist_is_file_locked(file) == 1 else { return nil }
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

    /// Parses `PID\nSOCKET\n`. A path that is relative or has no end is ignored.
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
