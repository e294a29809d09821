#if canImport(Glibc)
    internal import Glibc
#endif

/// Paths that must never be offered or shared: this program's state, configuration and cache. Files and folders are compared by device and
/// inode, so a symbolic link or another spelling of a path does not bypass the check.
public struct ProtectedFolders: Sendable {
    /// Absolute paths. If a path does not exist yet, its nearest existing ancestor cannot be offered either, because it may contain the
    /// path later.
    public let paths: [String]

    public init(_ paths: [String]) { self.paths = paths }

    /// Checks that a path is not inside a protected folder and does not contain one.
    /// - Parameter path: the absolute path.
    /// - Throws: `protected`; `notFound`, `notAllowed`, `system`.
    public func check(_ path: String) throws(FileFault) {
        let opened = try Descriptor.open(path, Self.flags)
        let isFolder = try opened.status().isFolder
        // A file has no entry `..`, so its folder is opened by path. The last component is not a symbolic link, so the file is in that
        // folder.
        let start = isFolder ? opened : try Descriptor.open(Self.parent(of: path), Self.flags | O_DIRECTORY)
        let above = try Self.ancestors(of: start)
        let own = try Identity(opened.status())
        for path in paths {
            if let named = try? Descriptor.open(path, Self.flags), try Identity(named.status()) == own { throw .protected }
            guard let (folder, isThere) = Self.nearest(path) else { continue }
            let aboveIt = try Self.ancestors(of: folder)
            guard let own = aboveIt.first, let mine = above.first else { continue }
            if isThere, above.contains(own) { throw .protected }
            if isFolder, aboveIt.contains(mine) { throw .protected }
        }
    }

    private struct Identity: Equatable {
        let device: UInt64
        let inode: UInt64

        init(_ status: stat) { (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino)) }
    }

    /// Flags for opening a path. With `O_NONBLOCK`, opening a pipe does not wait for a writer.
    private static let flags = Descriptor.pathOnly | O_NONBLOCK
    /// Maximum number of ancestors, more than any path has.
    private static let maximumLevels = 4_096

    /// Returns the identities of a folder and its ancestors up to `/`.
    private static func ancestors(of folder: Descriptor) throws(FileFault) -> [Identity] {
        var identities: [Identity] = []
        var folder = folder
        while identities.count < maximumLevels {
            let identity = try Identity(folder.status())
            guard identities.last != identity else { break }
            identities.append(identity)
            folder = try Descriptor.open("..", flags | O_DIRECTORY, in: folder)
        }
        return identities
    }

    /// Opens the folder at a path; if it does not exist, its nearest existing ancestor.
    /// - Returns: `isThere` is `false` for an ancestor.
    private static func nearest(_ path: String) -> (Descriptor, isThere: Bool)? {
        var (path, isThere) = (path, true)
        while true {
            if let folder = try? Descriptor.open(path, flags | O_DIRECTORY) { return (folder, isThere) }
            guard path.utf8.count > 1 else { return nil }
            (path, isThere) = (parent(of: path), false)
        }
    }

    /// The path without its last component.
    static func parent(of path: String) -> String {
        var bytes = Array(path.utf8)
        while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        while let last = bytes.last, last != UInt8(ascii: "/") { bytes.removeLast() }
        while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        return bytes.isEmpty ? "." : String(decoding: bytes, as: UTF8.self)
    }
}
