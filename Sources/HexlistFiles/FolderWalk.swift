public import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// Collects the files of a folder that is sent as a hex: its regular files and those of all sub-folders. Each folder's files are sorted by
/// the bytes of their names.
///
/// Only names and metadata are read, so a folder that is too large is refused before any file is hashed. Skipped entries are counted by the
/// reason.
public struct FolderWalk: Sendable {
    public struct File: Sendable {
        public var name: String
        /// The absolute path of the file.
        public var path: String
        public var identity: FileIdentity
    }

    public struct Folder: Sendable {
        public var name: String
        /// Index of the parent folder in `folders`; `nil` for the top folder.
        public var parent: Int?
        public var files: [File] = []
        /// Whether all entries of the folder could be read.
        public var isRead = true
    }

    /// The reason why an entry is skipped.
    public enum Cause: CaseIterable, Sendable {
        /// The name begins with a dot.
        case hidden
        case link
        /// A device, a pipe or a socket.
        case special
        /// The name is not UTF-8.
        case name
        /// This user may not read the file or open the folder. Entries inside such a folder are not counted.
        case notAllowed
        /// The entry was deleted, replaced or modified during the walk.
        case changed
        /// The entry could not be read because of a system error.
        case failed
    }

    /// Counts of the skipped entries, by cause.
    public struct Skipped: Equatable, Sendable {
        /// Maximum number of paths in `paths`.
        public static let maximumPaths = 10

        public private(set) var counts: [Cause: Int] = [:]
        /// Absolute paths of the first skipped entries that could not be read.
        public fileprivate(set) var paths: [String] = []

        public init(_ counts: [Cause: Int] = [:], paths: [String] = []) { (self.counts, self.paths) = (counts, paths) }

        public var total: Int { counts.values.reduce(0, +) }

        public mutating func count(_ cause: Cause, _ path: String? = nil) {
            counts[cause, default: 0] += 1
            if let path, paths.count < Self.maximumPaths { paths.append(path) }
        }

        /// Counts an entry that could not be opened or read because of a fault.
        /// - Throws: the fault, if it ends the whole walk, such as a lack of memory or file descriptors, or the cancellation.
        public mutating func add(_ fault: FileFault, _ path: String) throws(FileFault) {
            switch fault {
            case .system(let error) where [EMFILE, ENFILE, ENOMEM].contains(error.code): throw fault
            case .diskFull, .cancelled, .protected, .tooManyFiles, .tooDeep: throw fault
            case .notAllowed: count(.notAllowed, path)
            case .notFound, .notRegular, .notFolder, .changed, .tooLong, .tooShort: count(.changed, path)
            case .system, .otherBytes, .partInUse, .partLost, .noFreeName: count(.failed, path)
            }
        }

        public mutating func add(_ other: Skipped) {
            counts.merge(other.counts, uniquingKeysWith: +)
            paths += other.paths.prefix(Self.maximumPaths - paths.count)
        }
    }

    /// The top folder, followed by its sub-folders level by level.
    public private(set) var folders: [Folder] = []
    public private(set) var skipped = Skipped()
    public private(set) var fileCount = 0
    /// Sum of the sizes of all files, in bytes.
    public private(set) var size: Int64 = 0

    private struct Entry {
        let name: [UInt8]
        let isFolder: Bool
    }

    /// Walks a folder and its sub-folders.
    /// - Parameters:
    ///   - path: the absolute path; its last component may be a symbolic link to a folder.
    ///   - maximumFiles: maximum number of files, which is also the maximum number of folders.
    ///   - maximumLevels: maximum depth; the top folder is level 1.
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
            let folderPath = paths[index]
            for entry in try entries(of: root, at: folderPath, index, most: 2 * maximumFiles) {
                let name = String(decoding: entry.name, as: UTF8.self)
                guard SharePath.isName(name) else {
                    skipped.count(.name)
                    continue
                }
                guard let path = folderPath.appending(name) else { throw .tooDeep(most: maximumLevels) }
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
        skipped.paths = skipped.paths.map { "\(path)/\($0)" }
        for index in folders.indices {
            for file in folders[index].files.indices { folders[index].files[file].path = "\(path)/\(folders[index].files[file].path)" }
        }
    }

    private mutating func add(_ path: SharePath, _ name: String, to folder: Int, root: Descriptor) throws(FileFault) {
        let file: OfferedFile
        do throws(FileFault) {
            file = try OfferedFile(try root.open(beneath: path, OfferedFile.flags))
        } catch {
            return try skipped.add(error, path.description)
        }
        folders[folder].files.append(File(name: name, path: path.description, identity: file.identity))
        fileCount += 1
        size = size.addingClamped(file.size)
    }

    /// Returns the files and folders in one folder, sorted by name.
    /// - Parameters:
    ///   - index: the folder's index in `folders`.
    ///   - most: maximum number of entries. Reading stops after one more.
    private mutating func entries(of root: Descriptor, at path: SharePath, _ index: Int, most: Int) throws(FileFault) -> [Entry] {
        let folder: Descriptor
        do throws(FileFault) {
            folder = try root.open(beneath: path, O_RDONLY | O_DIRECTORY)
        } catch {
            guard !path.names.isEmpty else { throw error }
            folders[index].isRead = false
            try skipped.add(error, path.description)
            return []
        }
        var (entries, skipped) = ([Entry](), skipped)
        let below = { (name: String) in path.names.isEmpty ? name : "\(path)/\(name)" }
        var fault: FileFault?
        do throws(FileFault) {
            try folder.entries { name, kind in
                guard name.first != UInt8(ascii: ".") else {
                    skipped.count(.hidden)
                    return true
                }
                guard let text = String(validating: name, as: UTF8.self) else {
                    skipped.count(.name)
                    return true
                }
                do throws(FileFault) {
                    switch try folder.kind(of: text, kind) {
                    case .file: entries.append(Entry(name: Array(name), isFolder: false))
                    case .folder: entries.append(Entry(name: Array(name), isFolder: true))
                    case .link: skipped.count(.link)
                    case .special: skipped.count(.special)
                    case .unknown: skipped.count(.changed, below(text))
                    }
                } catch {
                    do throws(FileFault) { try skipped.add(error, below(text)) } catch { fault = error }
                }
                return fault == nil && entries.count <= most  // one entry more than the limit suffices to refuse the folder
            }
        } catch {
            // Entries that were read before the error are sent. The others count as one skipped entry.
            guard !path.names.isEmpty else { throw error }
            folders[index].isRead = false
            try skipped.add(error, path.description)
        }
        if let fault { throw fault }
        self.skipped = skipped
        return entries.sorted { $0.name.lexicographicallyPrecedes($1.name) }
    }
}
