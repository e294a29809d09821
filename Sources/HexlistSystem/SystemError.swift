#if canImport(Glibc)
    internal import Glibc
#endif

/// The error of a system call.
public struct SystemError: Error, Equatable, CustomStringConvertible {
    /// The errno.
    public var code: CInt

    public init(code: CInt) { self.code = code }

    /// The error of the last system call.
    public static var last: SystemError { SystemError(code: errno) }

    /// Whether the file system or the user's quota has no room.
    public var isDiskFull: Bool { code == ENOSPC || code == EDQUOT }

    /// The text of strerror(3): `No such file or directory`.
    public var description: String { String(cString: strerror(code)) }
}
