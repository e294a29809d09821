#if canImport(Glibc)
    internal import Glibc
#endif

/// The error of a system call, as an errno value.
public struct SystemError: Error, Equatable, CustomStringConvertible {
    /// The errno value, such as `ENOENT`.
    public var code: CInt

    public init(code: CInt) { self.code = code }

    /// The error of the system call that failed last in this thread.
    public static var last: SystemError { SystemError(code: errno) }

    /// Whether the disk is full or the user's quota is exceeded.
    public var isDiskFull: Bool { code == ENOSPC || code == EDQUOT }

    /// The text of strerror(3), such as `No such file or directory`.
    public var description: String { String(cString: strerror(code)) }
}
