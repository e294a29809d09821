#if canImport(Glibc)
    internal import Glibc
#endif

/// Reads a small text file.
public enum SmallFile {
    public enum Fault: Error, Equatable, Sendable {
        /// The file or its folder does not exist.
        case missing(SystemError)
        /// The file exists but cannot be opened.
        case closed(SystemError)
        /// The file can be opened but not read.
        case unreadable(SystemError)
        /// The file is larger than the limit, or is not UTF-8.
        case noText
    }

    /// Whether a path is a regular file that only its owner may access.
    public static func isPrivate(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o077 == 0
    }

    /// Reads the whole file as UTF-8.
    /// - Parameter limit: maximum bytes of the file.
    public static func read(_ path: String, limit: Int) throws(Fault) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw errno == ENOENT || errno == ENOTDIR ? .missing(.last) : .closed(.last) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while bytes.count <= limit {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .unreadable(.last) }
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        guard bytes.count <= limit, let text = String(validating: bytes, as: UTF8.self) else { throw .noText }
        return text
    }
}
