internal import Crypto

/// Computes the SHA-256 of a file in chunks. Blocks, so it is called on a file thread.
public enum FileDigest {
    /// Size of a chunk in bytes.
    static let piece = 1 << 20

    /// Computes the SHA-256 of a file.
    /// - Parameter progress: called after each chunk with the number of bytes read so far; returns `false` to cancel.
    /// - Returns: the digest, 32 bytes.
    /// - Throws: `changed` if the file changes while it is read; `cancelled`.
    public static func sha256(
        of file: OfferedFile, progress: (_ bytes: Int64) -> Bool = { _ in true }
    ) throws(FileFault) -> [UInt8] {
        var digest = SHA256()
        try pieces(
            upTo: file.size, progress: progress, read: { buffer, offset throws(FileFault) in try file.read(into: buffer, at: offset) }
        ) {
            digest.update(bufferPointer: $0)
        }
        try file.check()
        return Array(digest.finalize())
    }

    /// Reads the first `size` bytes of a source in chunks, and passes each chunk to `take`, in order.
    /// - Throws: `changed` if the source has fewer bytes; `cancelled` if `progress` returned `false`.
    static func pieces(
        upTo size: Int64, progress: (Int64) -> Bool, read: (UnsafeMutableRawBufferPointer, Int64) throws(FileFault) -> Int,
        take: (UnsafeRawBufferPointer) -> Void
    ) throws(FileFault) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: piece, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < size {
            let wanted = Int(min(Int64(piece), size - offset))
            let count = try read(UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), offset)
            guard count > 0 else { throw .changed }
            take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
            guard progress(offset) else { throw .cancelled }
        }
    }
}
