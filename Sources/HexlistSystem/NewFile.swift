#if canImport(Glibc)
    internal import Glibc
#endif

/// A new file that only its owner may access.
public final class NewFile: Sendable {
    private let descriptor: CInt
    public let path: String

    /// - Throws: EEXIST if the file exists.
    public init(path: String) throws(SystemError) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .last }
        self.path = path
    }

    deinit { close(descriptor) }

    /// Bytes that a process without special privileges can still write to the file system; `nil` if the file system does not report them.
    public var freeBytes: Int64? { FileSystemSpace.freeBytes(descriptor) }

    /// Appends bytes to the file.
    /// - Throws: the error of write(2). Some of the bytes may have been written before it.
    public func append(_ bytes: [UInt8]) throws(SystemError) { try BlockingWrite.write(bytes, to: descriptor) }

    /// Waits until the file and its name are on disk.
    public func synchronize() throws(SystemError) {
        guard fsync(descriptor) == 0 else { throw .last }
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let folder = open(end.map { "\(path[..<$0])/" } ?? ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw .last }
        defer { close(folder) }
        guard fsync(folder) == 0 || errno == EINVAL else { throw .last }  // EINVAL: not supported for folders
    }

    /// Deletes the file. Errors are ignored.
    public func remove() { unlink(path) }
}
