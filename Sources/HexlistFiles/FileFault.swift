public import HexlistSystem

#if canImport(Glibc)
    internal import Glibc
#endif

/// Why a file is not offered, read, or written.
public enum FileFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// There is none under this name, or none that is given out.
    case notFound
    /// This user may not read it, or not write there.
    case notAllowed
    /// It is a folder, a symbolic link, a device, a pipe or a socket.
    case notRegular
    /// It is no folder.
    case notFolder
    /// It is not the file that was remembered, or it changed while it was read.
    case changed
    /// It is, contains, or lies in a folder of this program: state, configuration or cache.
    case protected
    /// A folder has more files or levels than go into one hex.
    case tooManyFiles(most: Int)
    case tooDeep(most: Int)
    /// There is no room for it on the disk, less what is to stay free. Nothing is lost: it goes on when there is.
    case diskFull
    /// More bytes came than were announced.
    case tooLong
    /// All that came is fewer bytes than were announced; so many are there.
    case tooShort(Int64)
    /// The bytes are others than were announced: their SHA-256 differs. They are deleted.
    case otherBytes
    /// The partial file is being written by another process, or it belongs to somebody else.
    case partTaken
    /// The partial file was deleted or replaced while it was written.
    case partLost
    /// As many files as are tried have the same name.
    case noFreeName
    /// Who asked for it no longer wants it.
    case cancelled
    case system(SystemError)

    /// The fault of the previous system call.
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

    /// What happened, as the second half of a sentence that names the file: "`x` …".
    public var description: String {
        switch self {
        case .notFound: "is not there"
        case .notAllowed: "may not be read or written"
        case .notRegular: "is no regular file"
        case .notFolder: "is no folder"
        case .changed: "has changed"
        case .protected: "is in a folder of Hexlist itself, or contains one"
        case .tooManyFiles(let most): "has more than \(most) files"
        case .tooDeep(let most): "has more than \(most) levels of folders"
        case .diskFull: "does not fit on the disk"
        case .tooLong: "has more bytes than were announced"
        case .tooShort(let count): "ended after \(count) bytes, too early"
        case .otherBytes: "came with other bytes than were announced (SHA-256), which were deleted"
        case .partTaken: "is being fetched there already"
        case .partLost: "was deleted while it was fetched"
        case .noFreeName: "is there under too many names"
        case .cancelled: "was cancelled"
        case .system(let error): "failed: \(error)"
        }
    }
}
