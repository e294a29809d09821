internal import Crypto

/// The SHA-256 of a file, read in pieces. Blocks; for a thread that may.
public enum FileDigest {
    /// Bytes that are read at once.
    static let piece = 1 << 20

    /// - Parameter progress: called with the bytes read so far, after each piece; `false` ends the reading.
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

    /// Reads the first bytes of something and hands them over in order.
    /// - Throws: `changed` where it is shorter.
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
