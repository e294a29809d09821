#if canImport(Glibc)
    internal import Glibc
#endif

/// A temporary file without a name. The system deletes it when its descriptor is closed, even after a crash.
public final class UnnamedFile: Sendable {
    private let descriptor: CInt

    /// - Parameter folder: a folder on the file system that stores the content of the file.
    public init(in folder: String) throws(SystemError) {
        let path = "\(folder)/.hexlist-\(UInt64.random(in: .min ... .max))"
        descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .last }
        unlink(path)
    }

    deinit { close(descriptor) }

    /// Bytes that a process without special privileges can still write to the file system; `nil` if the file system does not report them.
    public var freeBytes: Int64? { FileSystemSpace.freeBytes(descriptor) }

    /// Appends bytes to the file.
    /// - Throws: the error of write(2). Some of the bytes may have been written before it.
    public func append(_ bytes: [UInt8]) throws(SystemError) { try BlockingWrite.write(bytes, to: descriptor) }

    /// Reads bytes that were appended earlier.
    /// - Throws: the error of the system; EIO if the file ends too early.
    public func read(_ count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let read = pread(descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, off_t(offset + filled))
                if read < 0, errno == EINTR { continue }
                guard read > 0 else {
                    failure = read < 0 ? .last : SystemError(code: EIO)
                    return
                }
                filled += read
            }
        }
        if let failure { throw failure }
        return bytes
    }
}

enum FileSystemSpace {
    /// Returns the bytes that a process without special privileges can still write to the file system of a file; `nil` if the file system
    /// does not report them.
    static func freeBytes(_ descriptor: CInt) -> Int64? {
        var status = statvfs()
        guard fstatvfs(descriptor, &status) == 0 else { return nil }
        let (bytes, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return overflow ? .max : Int64(clamping: bytes)
    }
}
