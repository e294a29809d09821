import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// A file that is read sequentially, and closed when this object is deinitialised.
final class OpenFile: Sendable {
    let bytes: Int
    private let descriptor: CInt

    /// Opens a file. Returns `nil` if it cannot be opened.
    init?(_ path: String) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else { return nil }
        bytes = Int(status.st_size)
    }

    deinit { close(descriptor) }

    /// Reads the next bytes, at most `bytes`. Returns `nil` at the end of the file, and after an error. The HTTP client recognises an
    /// error, because the reply is then shorter than its Content-Length.
    func next(_ bytes: Int) -> ByteBuffer? {
        var buffer = ByteBuffer()
        let count = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: bytes) { space in
            max(0, read(descriptor, space.baseAddress, min(space.count, bytes)))
        }
        return count > 0 ? buffer : nil
    }
}
