#if canImport(Glibc)
    internal import Glibc
#endif

/// Why a call of the system failed.
public struct SystemError: Error, Equatable, CustomStringConvertible {
    /// An errno.
    public var code: CInt

    public init(code: CInt) { self.code = code }

    /// Of the call before this one.
    static var last: SystemError { SystemError(code: errno) }

    /// As strerror(3) has it: `No such file or directory`.
    public var description: String { String(cString: strerror(code)) }
}
