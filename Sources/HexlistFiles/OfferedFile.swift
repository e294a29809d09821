internal import CLinux
import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// A regular file, opened for reading at any offset. Thread-safe; reading blocks.
///
/// To send the file, call `read(into:at:)`, which fails if the file was truncated. After the last byte, call `check()`, which verifies that
/// the file did not change meanwhile.
public final class OfferedFile: Sendable {
    /// The file's identity when it was opened.
    public let identity: FileIdentity
    private let descriptor: Descriptor

    /// Size in bytes.
    public var size: Int64 { identity.size }

    /// Opens a file. A symbolic link in the last component of the path is not followed.
    /// - Parameters:
    ///   - path: the absolute path.
    ///   - remembered: the identity that the file must have; `nil` to accept any.
    /// - Throws: `notFound`, `notRegular`, `notAllowed`, `changed`; `system`.
    public convenience init(path: String, remembered: FileIdentity? = nil) throws(FileFault) {
        try self.init(Descriptor.open(path, Self.flags))
        if let remembered, !remembered.isSame(as: identity) { throw .changed }
    }

    /// Flags for opening a file. `O_NOFOLLOW` refuses symbolic links. With `O_NONBLOCK`, opening a pipe does not wait for a writer.
    static let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK

    init(_ descriptor: Descriptor) throws(FileFault) {
        let status = try descriptor.status()
        guard status.isRegular else { throw .notRegular }
        self.descriptor = descriptor
        identity = FileIdentity(status)
    }

    /// Reads at an offset, until the buffer is full or the file ends.
    /// - Throws: `changed` if the file was truncated.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileFault) -> Int {
        let expected = min(Int64(buffer.count), max(0, size - offset))
        guard expected > 0 else { return 0 }
        let count = try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(expected)]), at: offset)
        guard Int64(count) == expected else { throw .changed }
        return count
    }

    /// Makes another file share this file's blocks (reflink), so that no bytes are copied.
    /// - Returns: `false` if the file is empty or the file system does not support cloning.
    func clone(to file: Descriptor) -> Bool { size > 0 && descriptor.use { from in file.use { hexlist_clone(from, $0) } } == 0 }

    /// Checks that the file was not modified since it was opened.
    /// - Throws: `changed` if it was.
    public func check() throws(FileFault) {
        guard FileIdentity(try descriptor.status()).isSame(as: identity) else { throw .changed }
    }
}
