internal import CLinux
import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// Opens and reads files and folders inside a folder. Symbolic links that lead out of the folder are never followed.
extension Descriptor {
    /// O_PATH, which Swift does not import. The descriptor then identifies a file, but cannot read it.
    static let pathOnly: CInt = 0o10_000_000

    /// Opens a shared folder by its absolute path. No symbolic link is followed: the path had none when the folder was shared.
    static func open(folder path: String, byHand: Bool) throws(FileFault) -> Descriptor {
        guard let names = SharePath(typed: path) else { throw .notFound }
        let top = try Self.open("/", pathOnly | O_DIRECTORY)
        return try top.open(beneath: names, O_RDONLY | O_DIRECTORY, byHand: byHand)
    }

    /// Opens a file or folder beneath this folder. No symbolic link is followed, neither inside the path nor at its end, even if one is
    /// created concurrently.
    /// - Parameters:
    ///   - path: the path relative to this folder; empty for the folder itself.
    ///   - byHand: whether to open each component of the path separately. This is the fallback for kernels without openat2(2).
    func open(beneath path: SharePath, _ flags: CInt, byHand: Bool = false) throws(FileFault) -> Descriptor {
        guard let last = path.names.last else { return try Self.open(".", flags | O_DIRECTORY, in: self) }
        if !byHand {
            // A concurrent rename inside the path can make openat2(2) fail with EAGAIN, so the call is retried.
            for _ in 1...8 {
                let number = use { hexlist_open_beneath($0, path.description, flags | O_NOFOLLOW | O_NOCTTY) }
                if number >= 0 { return Descriptor(number) }
                switch errno {
                case EINTR, EAGAIN: continue
                case EXDEV: throw .notFound
                case ENOSYS, EPERM: return try open(beneath: path, flags, byHand: true)
                default: throw .last
                }
            }
            throw .notFound
        }
        var folder = self
        for name in path.names.dropLast() {
            folder = try Self.open(name, Self.pathOnly | O_DIRECTORY | O_NOFOLLOW, in: folder)
        }
        return try Self.open(last, flags | O_NOFOLLOW, in: folder)
    }

    /// The kind of an entry as readdir(3) reports it, without a call of stat(2).
    enum EntryKind {
        case file, folder, link, special, unknown
    }

    /// Calls `body` for each entry except `.` and `..`, in the order of the file system, until `body` returns `false`.
    func entries(_ body: (_ name: UnsafeBufferPointer<UInt8>, _ kind: EntryKind) -> Bool) throws(FileFault) {
        _ = try EntryStream(of: self).read(body)
    }

    /// Returns the names of at most `limit` entries, in the order of the file system. Stops at the first error.
    func names(atMost limit: Int) -> [String] {
        var names: [String] = []
        try? entries { name, _ in
            names.append(String(decoding: name, as: UTF8.self))
            return names.count < limit
        }
        return names
    }

    /// Deletes at most `limit` files in a folder, and then the folder if it is empty. Does nothing if the path leads to no folder.
    static func removeFolder(_ path: String, atMost limit: Int) {
        guard let folder = try? Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) else { return }
        for name in folder.names(atMost: limit) { _ = folder.use { unlinkat($0, name, 0) } }
        _ = rmdir(path)
    }

    /// Returns the kind of an entry. Calls stat(2) if readdir(3) did not report the kind. `unknown` if the entry no longer exists.
    func kind(of name: String, _ kind: EntryKind) throws(FileFault) -> EntryKind {
        guard kind == .unknown, let status = try status(of: name) else { return kind }
        switch status.kind {
        case S_IFREG: return .file
        case S_IFDIR: return .folder
        case S_IFLNK: return .link
        default: return .special
        }
    }
}

/// Reads the entries of an open folder in several steps. Not thread-safe.
final class EntryStream: @unchecked Sendable {
    private let stream: OpaquePointer

    init(of folder: Descriptor) throws(FileFault) {
        // The folder is opened again, because duplicated descriptors share their read position.
        let number = folder.use { openat($0, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard number >= 0 else { throw .last }
        guard let stream = fdopendir(number) else {
            let fault = FileFault.last
            close(number)
            throw fault
        }
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// Calls `body` for the next entries except `.` and `..`, until `body` returns `false`.
    /// - Returns: whether there may be more entries.
    func read(_ body: (_ name: UnsafeBufferPointer<UInt8>, _ kind: Descriptor.EntryKind) -> Bool) throws(FileFault) -> Bool {
        let offset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw .last }
                return false
            }
            let start = UnsafeRawPointer(entry).advanced(by: offset)
            let count = strlen(start.assumingMemoryBound(to: CChar.self))
            let name = UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: count)
            guard !name.elementsEqual(".".utf8), !name.elementsEqual("..".utf8) else { continue }
            let kind: Descriptor.EntryKind =
                switch Int(entry.pointee.d_type) {
                case Int(DT_REG): .file
                case Int(DT_DIR): .folder
                case Int(DT_LNK): .link
                case Int(DT_UNKNOWN): .unknown
                default: .special
                }
            guard body(name, kind) else { return true }
        }
    }
}
