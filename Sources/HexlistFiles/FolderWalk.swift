public import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// What of a folder is sent as a hex: its regular files, and its sub-folders with theirs, in the order of the names' bytes.
///
/// Only names and identities are read, so that a folder which is too large is refused before anything is hashed. Symbolic links, what is
/// neither file nor folder, hidden entries, and names that are no UTF-8 are left out and counted.
public struct FolderWalk: Sendable {
    public struct File: Sendable {
        public var name: String
        /// Absolute.
        public var path: String
        public var identity: FileIdentity
    }

    public struct Folder: Sendable {
        public var name: String
        /// The index of the folder it is in; `nil` for the first.
        public var parent: Int?
        public var files: [File] = []
    }

    /// Entries that were left out.
    public struct Skipped: Equatable, Sendable {
        public var hidden = 0
        public var links = 0
        /// Devices, pipes and sockets.
        public var special = 0
        /// Names that are no UTF-8, and files and folders that may not be read.
        public var unreadable = 0
    }

    /// The folder itself, then those in it, level by level.
    public private(set) var folders: [Folder] = []
    public private(set) var skipped = Skipped()
    public private(set) var fileCount = 0
    /// Bytes of all files.
    public private(set) var size: Int64 = 0

    private struct Entry {
        let name: [UInt8]
        let isFolder: Bool
    }

    /// - Parameters:
    ///   - path: absolute; the last name may be a symbolic link to a folder.
    ///   - maximumFiles: the most files, and the most folders.
    ///   - maximumLevels: the folder itself and those inside each other.
    /// - Throws: `tooManyFiles`, `tooDeep`, `protected`, `notFolder`, `notFound`, `notAllowed`; `system`.
    public init(
        path: String, maximumFiles: Int, maximumLevels: Int = ProtocolLimits.levels, protected: ProtectedFolders = ProtectedFolders([])
    ) throws(FileFault) {
        let root = try Descriptor.open(path, O_RDONLY | O_NONBLOCK)
        guard try root.status().isFolder else { throw .notFolder }
        try protected.check(path)
        let name = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) } ?? "/"
        folders = [Folder(name: name, parent: nil)]
        var paths = [SharePath.root]
        var index = 0
        while index < folders.count {
            let here = paths[index]
            for entry in try entries(of: root, at: here, most: 2 * maximumFiles) {
                let name = String(decoding: entry.name, as: UTF8.self)
                guard SharePath.isName(name) else {
                    skipped.unreadable += 1
                    continue
                }
                guard let path = here.appending(name) else { throw .tooDeep(most: maximumLevels) }
                if entry.isFolder {
                    guard path.names.count < maximumLevels else { throw .tooDeep(most: maximumLevels) }
                    guard folders.count < maximumFiles else { throw .tooManyFiles(most: maximumFiles) }
                    folders.append(Folder(name: name, parent: index))
                    paths.append(path)
                } else {
                    guard fileCount < maximumFiles else { throw .tooManyFiles(most: maximumFiles) }
                    try add(path, name, to: index, root: root)
                }
            }
            index += 1
        }
        for index in folders.indices {
            for file in folders[index].files.indices { folders[index].files[file].path = "\(path)/\(folders[index].files[file].path)" }
        }
    }

    private mutating func add(_ path: SharePath, _ name: String, to folder: Int, root: Descriptor) throws(FileFault) {
        let file: OfferedFile
        do throws(FileFault) {
            file = try OfferedFile(try root.open(beneath: path, OfferedFile.flags))
        } catch {
            if case .system = error { throw error }
            skipped.unreadable += 1  // gone meanwhile, replaced, or not this user's
            return
        }
        folders[folder].files.append(File(name: name, path: path.description, identity: file.identity))
        fileCount += 1
        size = size.addingClamped(file.size)
    }

    /// The entries of one folder that are to be looked at, in order.
    private mutating func entries(of root: Descriptor, at path: SharePath, most: Int) throws(FileFault) -> [Entry] {
        let folder: Descriptor
        do throws(FileFault) {
            folder = try root.open(beneath: path, O_RDONLY | O_DIRECTORY)
        } catch {
            if case .system = error { throw error }
            guard !path.names.isEmpty else { throw error }
            skipped.unreadable += 1
            return []
        }
        var (entries, skipped) = ([Entry](), skipped)
        try folder.entries { name, kind in
            guard name.first != UInt8(ascii: ".") else {
                skipped.hidden += 1
                return true
            }
            guard let text = String(validating: name, as: UTF8.self) else {
                skipped.unreadable += 1
                return true
            }
            switch folder.kind(of: text, kind) {
            case .file: entries.append(Entry(name: Array(name), isFolder: false))
            case .folder: entries.append(Entry(name: Array(name), isFolder: true))
            case .link: skipped.links += 1
            case .special: skipped.special += 1
            case .unknown: skipped.unreadable += 1
            }
            return entries.count <= most  // one more than may be is enough to refuse
        }
        self.skipped = skipped
        return entries.sorted { $0.name.lexicographicallyPrecedes($1.name) }
    }
}
