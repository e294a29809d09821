internal import Crypto

/// Computes the SHA-256 of a file, reading it in chunks. Blocks, so it must be called on a file thread.
public enum FileDigest {
    /// Size of a read, in bytes.
    static let piece = 1 << 20

    /// - Parameter progress: called after each read with the bytes read so far; returns `false` to cancel.
    /// - Returns: 32 bytes.
    /// - Throws: `changed` if the file changes meanwhile; `cancelled`.
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

    /// Reads the first `size` bytes of a source in chunks and passes each one to `take`, in order.
    /// - Throws: `changed` if the source is shorter; `cancelled`.
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
