import HexlistModel

#if canImport(Glibc)
    import Glibc
#endif

/// Reads a small text of the user.
enum SmallFile {
    /// - Parameter limit: bytes; a longer file is refused.
    /// - Returns: `nil` where there is no such file and there need not be.
    /// - Throws: `HexlistError` `configuration`.
    static func read(_ path: String, limit: Int, mustExist: Bool) throws(HexlistError) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if !mustExist, errno == ENOENT || errno == ENOTDIR { return nil }
            throw HexlistError(
                .configuration, "\(path) cannot be read (\(String(cString: strerror(errno)))).",
                hint: "Make it readable, or name another file with --config.")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while bytes.count <= limit {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw HexlistError(
                    .configuration, "\(path) cannot be read (\(String(cString: strerror(errno)))).",
                    hint: "Name another file with --config.")
            }
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        guard bytes.count <= limit, let text = String(validating: bytes, as: UTF8.self) else {
            throw HexlistError(
                .configuration, "\(path) is no configuration: it is longer than \(limit) bytes, or no UTF-8 text.",
                hint: "Name another file with --config.")
        }
        return text
    }
}
