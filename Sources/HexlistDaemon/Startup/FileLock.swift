import HexlistModel

#if canImport(Glibc)
    import Glibc
#endif

/// A lock on a file, held until `release` or the end of the process. The file contains the process id of the holder.
final class FileLock: Sendable {
    private let descriptor: CInt

    /// - Throws: `Held` with the holder's process id, or `HexlistError` `stateFolder` if the file cannot be made.
    init(path: String) throws {
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw HexlistError(
                .stateFolder, "\(path) cannot be made (\(String(cString: strerror(errno)))).",
                hint: "Make its folder writable for this user, or name another one.")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else {
                throw HexlistError(
                    .stateFolder, "\(path) cannot be locked (\(String(cString: strerror(errno)))).",
                    hint: "Is the folder on a file system without locks? Name a local one.")
            }
            throw Held(pid: Self.pid(in: descriptor))
        }
        // For people only. Written over the old one before it is cut, so that it takes no room on a full disk.
        let text = Array("\(getpid())\n".utf8)
        _ = text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        _ = ftruncate(descriptor, off_t(text.count))
    }

    deinit { close(descriptor) }  // also where `init` throws

    /// The error if another process holds the lock.
    struct Held: Error {
        /// The holder's process id; `nil` if the file does not have it.
        var pid: Int?
    }

    private static func pid(in descriptor: CInt) -> Int? {
        var buffer = [UInt8](repeating: 0, count: 32)
        let count = buffer.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return nil }
        return Int(String(decoding: buffer[..<count].prefix(while: ASCII.isDigit), as: UTF8.self))
    }
}
