public import HexlistSystem

#if canImport(Glibc)
    internal import Glibc
#endif

/// The reason why a file cannot be offered, read or written.
public enum FileFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file does not exist, or the peer has no permission to fetch it.
    case notFound
    /// This user has no permission to read the file, or to write to the folder.
    case notAllowed
    /// The file is a folder, a symbolic link, a device, a pipe or a socket.
    case notRegular
    /// The path does not lead to a folder.
    case notFolder
    /// The file is not the offered one or another version of it, or it changed while it was read.
    case changed
    /// The path belongs to this program (state, configuration or cache), or is inside such a folder or contains one.
    case protected
    /// The folder has more files than fit into one hex.
    case tooManyFiles(most: Int)
    /// The folder has more levels of sub-folders than fit into one hex.
    case tooDeep(most: Int)
    /// Less than `minimumFree` bytes would stay free on the disk. The transfer continues when there is enough space.
    case diskFull
    /// The peer sent more bytes than announced.
    case tooLong
    /// The source ended before the announced size. The value is the number of bytes that were received.
    case tooShort(Int64)
    /// The SHA-256 digest differs from the announced one. The received bytes are deleted.
    case otherBytes
    /// The partial file is locked by another process, or belongs to another user.
    case partInUse
    /// The partial file was deleted or replaced by another program while it was written.
    case partLost
    /// All tried variants of the name with a number, such as `a (2).txt`, exist already.
    case noFreeName
    /// The caller cancelled the operation.
    case cancelled
    case system(SystemError)

    /// The fault for the present value of `errno`.
    static var last: FileFault { FileFault(code: errno) }

    init(code: CInt) {
        switch code {
        case ENOENT, ENOTDIR: self = .notFound
        case EACCES, EPERM: self = .notAllowed
        case ELOOP, ENXIO: self = .notRegular
        case ENOSPC, EDQUOT: self = .diskFull
        default: self = .system(SystemError(code: code))
        }
    }

    /// The end of a sentence whose subject is the file, such as "does not exist".
    public var description: String {
        switch self {
        case .notFound: "does not exist"
        case .notAllowed: "may not be read or written"
        case .notRegular: "is not a regular file"
        case .notFolder: "is not a folder"
        case .changed: "has changed"
        case .protected: "is inside a folder of Hexlist, or contains one"
        case .tooManyFiles(let maximum): "has more than \(maximum) files"
        case .tooDeep(let maximum): "has more than \(maximum) levels of folders"
        case .diskFull: "does not fit on the disk"
        case .tooLong: "has more bytes than announced"
        case .tooShort(let count): "ended early, after \(count) bytes"
        case .otherBytes: "differs from the announced SHA-256; the bytes were deleted"
        case .partInUse: "is already being fetched there"
        case .partLost: "was deleted during the transfer"
        case .noFreeName: "exists under too many names"
        case .cancelled: "was cancelled"
        case .system(let error): "failed: \(error)"
        }
    }
}
