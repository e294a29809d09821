public import HexlistSystem

#if canImport(Glibc)
    internal import Glibc
#endif

/// The reason why a file cannot be offered, read or written.
public enum FileFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file does not exist, or the peer may not have it.
    case notFound
    /// This user has no permission to read the file, or to write to the folder.
    case notAllowed
    /// The file is a folder, a symbolic link, a device, a pipe or a socket.
    case notRegular
    /// The path does not lead to a folder.
    case notFolder
    /// The file is not the one that was offered, or it changed while it was read.
    case changed
    /// The path is, contains, or is inside a folder of this program: state, configuration or cache.
    case protected
    /// The folder has more files, or more levels, than fit into one hex.
    case tooManyFiles(most: Int)
    case tooDeep(most: Int)
    /// The free space on the disk, minus `minimumFree`, is too small. The transfer continues when there is enough.
    case diskFull
    /// The peer sent more bytes than it announced.
    case tooLong
    /// The source ended before the announced size. The value is the number of bytes received.
    case tooShort(Int64)
    /// The SHA-256 digest differs from the announced one. The bytes are deleted.
    case otherBytes
    /// The partial file is locked by another process, or belongs to another user.
    case partInUse
    /// The partial file was deleted or replaced while it was being written.
    case partLost
    /// All numbered variants of the name that were tried exist.
    case noFreeName
    /// The caller cancelled the operation.
    case cancelled
    case system(SystemError)

    /// Returns the fault for the current `errno`.
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

    /// The fault as the predicate of a sentence whose subject is the file.
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
