internal import CLinux
import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// A folder that stores files under their SHA-256 digest: `FOLDER/<64 hexadecimal digits>/NAME`. Only this user can read it. Calls block.
public struct DigestFolder: Sendable {
    /// Absolute path of the folder, which is created when the first file is added.
    public let path: String

    public init(path: String) { self.path = path }

    /// The sub-folder of one digest. It contains the file under its own name.
    public func folder(of digest: [UInt8]) -> String { "\(path)/\(Self.name(digest))" }

    public func path(of digest: [UInt8], name: String) -> String { "\(folder(of: digest))/\(name)" }

    private static func name(_ digest: [UInt8]) -> String {
        String(decoding: Hexadecimal.encode(digest).utf8.map(ASCII.lowercased), as: UTF8.self)
    }

    /// Creates the folder of one digest and its parents.
    /// - Throws: `notFolder`, `notAllowed`; `system`.
    public func make(_ digest: [UInt8]) throws(FileFault) {
        try Self.make(folder(of: digest))
    }

    private static func make(_ path: String) throws(FileFault) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT else { throw .last }
        try make(ProtectedFolders.parent(of: path))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .last }
    }

    /// Opens the file with a digest; `nil` if it does not exist.
    public func open(_ digest: [UInt8], name: String) -> OfferedFile? {
        guard SharePath.isName(name) else { return nil }
        return try? OfferedFile(path: path(of: digest, name: name))
    }

    /// Deletes a file, unless this process or another one has it open.
    /// - Returns: `false` if the file still exists.
    public func removeUnused(_ digest: [UInt8], name: String) -> Bool {
        guard SharePath.isName(name), let folder = try? Descriptor.open(folder(of: digest), Self.flags) else { return true }
        guard folder.use({ hexlist_remove_unused($0, name) }) == 0 || errno != EBUSY else { return false }
        _ = rmdir(self.folder(of: digest))
        return (try? folder.status(of: name)) == nil
    }

    /// Deletes all files of a digest.
    public func remove(_ digest: [UInt8]) {
        Descriptor.removeFolder(folder(of: digest), atMost: Self.maximumNames)
    }

    /// Deletes the folder of a digest if it is empty.
    public func removeEmpty(_ digest: [UInt8]) { _ = rmdir(folder(of: digest)) }

    /// The digests whose sub-folders exist, at most `maximumDigests`.
    public func digests() -> [[UInt8]] {
        guard let folder = try? Descriptor.open(path, Self.flags) else { return [] }
        var digests: [[UInt8]] = []
        try? folder.entries { name, _ in
            if name.count == 64, let digest = Hexadecimal.decode(String(decoding: name, as: UTF8.self)) { digests.append(digest) }
            return digests.count < Self.maximumDigests
        }
        return digests
    }

    /// Moves a file with this digest from `path` into the folder, on the same file system.
    /// - Throws: `notFound`, `diskFull`; `system`.
    public func add(_ digest: [UInt8], name: String, moving path: String) throws(FileFault) {
        guard SharePath.isName(name) else { throw .notFound }
        try make(digest)
        guard rename(path, self.path(of: digest, name: name)) == 0 else { throw .last }
        try Descriptor.open(folder(of: digest), Self.flags).synchronize()
    }

    /// Moves a file into another `DigestFolder`. If that is on another file system, the file is copied, and its digest is verified.
    /// - Throws: `notFound`, `changed`, `otherBytes`, `diskFull`; `system`.
    public func move(_ digest: [UInt8], name: String, to other: DigestFolder) throws {
        guard SharePath.isName(name) else { throw FileFault.notFound }
        try other.make(digest)
        if rename(path(of: digest, name: name), other.path(of: digest, name: name)) != 0 {
            guard errno == EXDEV else { throw FileFault.last }
            let source = try OfferedFile(path: path(of: digest, name: name))
            let specification = PartFile.Specification(
                name: FileName(name), id: "moved", size: source.size, digest: digest, modified: source.identity.modified, umask: 0o177)
            PartFile.discard(folder: other.folder(of: digest), specification: specification)
            let part = try PartFile(folder: other.folder(of: digest), specification: specification)
            try part.fill(from: source)
            _ = try part.finish()
            _ = unlink(path(of: digest, name: name))
        } else {
            try Descriptor.open(other.folder(of: digest), Self.flags).synchronize()
        }
        _ = rmdir(folder(of: digest))
    }

    private static let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
    /// Maximum number of digests that `digests` returns. It bounds the memory if other programs put entries into the folder. The cache
    /// never has so many files.
    private static let maximumDigests = 100_000
    private static let maximumNames = 1_000
}
