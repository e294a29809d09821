internal import CLinux
import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// A regular file, open for reading at any offset. Any thread may use it; reading blocks.
///
/// Whoever gives it out reads with `read(into:at:)`, which fails where the file has become shorter, and calls `check()` after the last byte:
/// what was sent before is then known to be of one file.
public final class OfferedFile: Sendable {
    /// The identity of the file when it was opened.
    public let identity: FileIdentity
    private let descriptor: Descriptor

    /// Bytes.
    public var size: Int64 { identity.size }

    /// Opens a path whose last name is no symbolic link.
    /// - Parameters:
    ///   - path: absolute.
    ///   - remembered: the identity the file had; `nil` where it is opened for the first time.
    /// - Throws: `notFound`, `notRegular`, `notAllowed`, `changed`; `system`.
    public convenience init(path: String, remembered: FileIdentity? = nil) throws(FileFault) {
        try self.init(Descriptor.open(path, Self.flags))
        if let remembered, !remembered.isSame(as: identity) { throw .changed }
    }

    /// Neither follows a symbolic link, nor waits for who writes into a pipe.
    static let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK

    init(_ descriptor: Descriptor) throws(FileFault) {
        let status = try descriptor.status()
        guard status.isRegular else { throw .notRegular }
        self.descriptor = descriptor
        identity = FileIdentity(status)
    }

    /// Reads bytes from an offset on: as many as the buffer has room for, or as there are.
    /// - Throws: `changed` if the file has become shorter.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileFault) -> Int {
        let expected = min(Int64(buffer.count), max(0, size - offset))
        guard expected > 0 else { return 0 }
        let count = try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(expected)]), at: offset)
        guard Int64(count) == expected else { throw .changed }
        return count
    }

    /// Makes a file have what this one has, without copying it.
    /// - Returns: whether the file system can.
    func clone(to file: Descriptor) -> Bool { size > 0 && descriptor.use { from in file.use { hexlist_clone(from, $0) } } == 0 }

    /// - Throws: `changed` if it is no longer the file that was opened, unchanged.
    public func check() throws(FileFault) {
        guard FileIdentity(try descriptor.status()).isSame(as: identity) else { throw .changed }
    }
}
