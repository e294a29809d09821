internal import CLinux
import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// A regular file, opened for reading at any offset. Thread-safe; reading blocks.
///
/// To send the file, read it with `read(into:at:)`, which fails if the file was truncated, and call `check()` after the last byte to verify
/// that all bytes belong to one version.
public final class OfferedFile: Sendable {
    /// The file's identity at the time it was opened.
    public let identity: FileIdentity
    private let descriptor: Descriptor

    /// Size in bytes.
    public var size: Int64 { identity.size }

    /// Opens a path without following a symbolic link in its last component.
    /// - Parameters:
    ///   - path: the absolute path.
    ///   - remembered: the identity that the file must have; `nil` for any.
    /// - Throws: `notFound`, `notRegular`, `notAllowed`, `changed`; `system`.
    public convenience init(path: String, remembered: FileIdentity? = nil) throws(FileFault) {
        try self.init(Descriptor.open(path, Self.flags))
        if let remembered, !remembered.isSame(as: identity) { throw .changed }
    }

    /// Flags to open a file: `O_NOFOLLOW` refuses symbolic links, and `O_NONBLOCK` keeps the opening of a pipe from waiting for a writer.
    static let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK

    init(_ descriptor: Descriptor) throws(FileFault) {
        let status = try descriptor.status()
        guard status.isRegular else { throw .notRegular }
        self.descriptor = descriptor
        identity = FileIdentity(status)
    }

    /// Reads from an offset until the buffer is full or the file ends.
    /// - Throws: `changed` if the file was truncated.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileFault) -> Int {
        let expected = min(Int64(buffer.count), max(0, size - offset))
        guard expected > 0 else { return 0 }
        let count = try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(expected)]), at: offset)
        guard Int64(count) == expected else { throw .changed }
        return count
    }

    /// Clones the file's blocks into another file (reflink), without copying them.
    /// - Returns: `false` if the file is empty or the file system does not support cloning.
    func clone(to file: Descriptor) -> Bool { size > 0 && descriptor.use { from in file.use { hexlist_clone(from, $0) } } == 0 }

    /// Checks that the file was not modified since it was opened.
    /// - Throws: `changed` if it was.
    public func check() throws(FileFault) {
        guard FileIdentity(try descriptor.status()).isSame(as: identity) else { throw .changed }
    }
}
