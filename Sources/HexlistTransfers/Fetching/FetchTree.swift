import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistStore

/// The files and folders to fetch, read from one file or folder of a service.
struct FetchTree {
    struct File: Sendable {
        /// The name of the file in its folder. The path and the link may be kilobytes long, so they are built on demand.
        var entryName: String
        var size: Int64?
        /// Modification time in milliseconds since 1970.
        var modified: Int64?
        /// Index of the file's folder in `folders`.
        var folder: Int

        /// The name that the file gets on this machine.
        var name: String { FileName(entryName).description }
    }

    /// The folders to create, as paths relative to the destination. The first is the destination itself; a folder comes after its parent.
    private(set) var folders: [[String]] = [[]]
    private(set) var files: [File] = []
    private let service: any ContentService
    /// The path in the service of each folder in `folders`. For the destination, it is the parent of the requested file or folder.
    private var places: [SharePath]
    /// Number of entries that are not fetched, such as a nested folder that cannot be listed.
    private(set) var leftOut = 0
    private var emptyPages = 0
    /// Maximum number of empty pages. A folder that changes while it is read causes a few; a malicious service could send them without end.
    private static let mostEmptyPages = 100

    private init(_ service: any ContentService, in place: SharePath) {
        self.service = service
        places = [place]
    }

    /// Reads the requested file or folder, folder by folder and page by page. Local folders get the names of the remote ones. A nested
    /// folder that was listed but is not found is left out.
    /// - Throws: `HexlistError`: `tooLarge` for more files or folders than the queue may hold; the errors of the service.
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
                    // The parent lists this folder, but the service cannot read it, or it was deleted. The other folders are fetched
                    // nevertheless.
                    tree.leftOut += 1
                    guard after == nil else { break }
                    // The folder has no files yet, so removing it changes no index in `files`.
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
                // Each page has the number of left-out entries of the whole folder, so it is added only once.
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
        // The listed size bounds a remote's file, so a file without a size is not fetched.
        if case .remote = source, entry.size == nil {
            leftOut += 1
            return
        }
        files.append(File(entryName: name, size: entry.size, modified: entry.modified?.milliseconds, folder: folder))
    }

    /// Returns the source from which a transfer fetches the file.
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

    /// Removes files that already exist in the destination with the same name, size and modification time.
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
