import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistStore

/// The files and folders to fetch, if one file or folder of a service was requested.
struct FetchTree {
    struct File: Sendable {
        /// The name of the file in its folder. Its path and its link may take kilobytes, so they are built only when they are needed.
        var entryName: String
        var size: Int64?
        /// Modification time in milliseconds since 1970.
        var modified: Int64?
        /// Index of the file's folder in `folders`.
        var folder: Int

        /// The name of the file on this machine.
        var name: String { FileName(entryName).description }
    }

    /// The folders to create, as paths relative to the destination. The first one is the destination itself. Each folder comes after the
    /// one that contains it.
    private(set) var folders: [[String]] = [[]]
    private(set) var files: [File] = []
    private let service: any ContentService
    /// The path in the service for each element of `folders`. For the destination it is the folder that contains the requested file or
    /// folder.
    private var places: [SharePath]
    /// Number of entries that are not fetched, for example sub-folders that cannot be listed.
    private(set) var leftOut = 0
    private var emptyPages = 0
    /// Maximum number of empty pages. A folder that changes while it is read causes a few of them. A malicious service could send any
    /// number.
    private static let mostEmptyPages = 100

    private init(_ service: any ContentService, in place: SharePath) {
        self.service = service
        places = [place]
    }

    /// Reads the requested file or folder with all sub-folders, page by page. A sub-folder that cannot be read is skipped.
    /// - Throws: `HexlistError`: `tooLarge` if there are more files or folders than the queue may have; the errors of the service.
    static func read(_ service: any ContentService, _ path: SharePath) async throws -> FetchTree {
        guard let name = path.names.last else {
            throw HexlistError(
                .badRequest, "Which file or folder? Write SERVICE:PATH.",
                hint: "`hexlist files \(service.view.uuid?.shortID ?? service.view.name):` lists them.")
        }
        var tree = FetchTree(service, in: SharePath(path.names.dropLast()) ?? .root)
        let entry = try await service.entry(at: path)
        guard entry.kind.known == .folder else {
            try tree.add(entry, at: path, name, to: 0)
            guard !tree.files.isEmpty else {
                throw HexlistError(
                    .notSupported, "\(TerminalText.clean("\(service.view.name):\(path)", columns: 200)) has no size: it cannot be fetched.",
                    hint: "`rclone copy` fetches documents that the service writes when they are read.")
            }
            return tree
        }
        tree.folders.append([FileName(name).description])
        tree.places.append(path)
        var index = 1
        folders: while index < tree.folders.count {
            let here = tree.places[index]
            var after: String?
            repeat {
                let page: FilePage
                do {
                    page = try await service.page(of: here, by: .name, after: after, limit: LocalAPI.pageLimit)
                } catch let error as HexlistError where error.code == .notFound && index > 1 {
                    // The folder that contains this one lists it, but it cannot be read or was deleted. The other folders are fetched
                    // nevertheless.
                    tree.leftOut += 1
                    guard after == nil else { break }
                    // No file refers to this folder yet, so removing it changes no index.
                    tree.folders.remove(at: index)
                    tree.places.remove(at: index)
                    continue folders
                }
                if page.items.isEmpty, page.next != nil { tree.emptyPages += 1 }
                guard tree.emptyPages <= Self.mostEmptyPages else {
                    throw HexlistError(
                        .refused, "The list of \(TerminalText.clean(here.description, columns: 200)) does not end.")
                }
                for entry in page.items {
                    guard let inner = here.appending(entry.name) else {
                        tree.leftOut += 1
                        continue
                    }
                    if entry.kind.known == .folder {
                        try tree.check()
                        tree.places.append(inner)
                        tree.folders.append(tree.folders[index] + [FileName(entry.name).description])
                    } else if entry.kind.known == .file {
                        try tree.add(entry, at: inner, entry.name, to: index)
                    } else {
                        tree.leftOut += 1
                    }
                }
                // Each page has the number of entries that the service omits in the whole folder, so it is added only once.
                if after == nil { tree.leftOut += page.leftOut }
                after = page.next
            } while after != nil
            index += 1
        }
        return tree
    }

    private mutating func add(
        _ entry: FileEntry, at path: SharePath, _ name: String, to folder: Int
    ) throws {
        try check()
        let source = try service.source(of: path)
        // A file of a remote without a size is not fetched, because nothing would limit its size on the disk.
        if case .remote = source, entry.size == nil {
            leftOut += 1
            return
        }
        files.append(File(entryName: name, size: entry.size, modified: entry.modified?.milliseconds, folder: folder))
    }

    /// Returns the source of a file, for its transfer.
    func source(of file: File) throws -> FetchSource {
        guard let path = places[file.folder].appending(file.entryName) else { throw HexlistError(.internal, "A listed path is too long.") }
        return try service.source(of: path)
    }

    private func check() throws(HexlistError) {
        guard files.count < TransferRow.limit, folders.count < TransferRow.limit else {
            throw HexlistError(
                .tooLarge, "The folder has more than \(TransferRow.limit) files or folders; that is the maximum for one fetch.",
                hint: "Fetch its folders one by one.")
        }
    }

    /// Removes the files that the destination already has, with the same name, size and modification time.
    /// - Parameter base: the path of the destination.
    /// - Returns: the number of removed files.
    mutating func dropPresent(in base: String) -> Int {
        let before = files.count
        files.removeAll { file in
            let path = (folders[file.folder] + [file.name]).joined(separator: "/")
            return FileMatch.exists(HexlistPaths.join(base, path), size: file.size, modified: file.modified)
        }
        return before - files.count
    }
}
