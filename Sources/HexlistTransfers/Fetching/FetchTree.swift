import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistStore

/// A file of a service, or a folder with all that is in it, on its way to be transfers.
struct FetchTree {
    struct File: Sendable {
        /// The name in its folder. Path and link, which may be kilobytes long, are built on demand.
        var entryName: String
        var size: Int64?
        /// Milliseconds since 1970.
        var modified: Int64?
        /// The index in `folders`.
        var folder: Int

        /// The name on this machine.
        var name: String { FileName(entryName).description }
    }

    /// The folders to be made, as names from the destination on; the first is the destination, each stands behind the one it is in.
    private(set) var folders: [[String]] = [[]]
    private(set) var files: [File] = []
    private let service: any ContentService
    /// The path in the service of each of `folders`; of the destination, that of the folder the file or folder is in.
    private var places: [SharePath]
    /// Entries that are neither fetched nor files that are there: a folder in the named one that cannot be listed is one.
    private(set) var leftOut = 0
    private var emptyPages = 0
    /// The most pages without an entry: a folder that changes while it is read has some, a list that is made up has no end of them.
    private static let mostEmptyPages = 100

    private init(_ service: any ContentService, in place: SharePath) {
        self.service = service
        places = [place]
    }

    /// Reads what there is, folder by folder and page by page. A folder becomes a folder of its name; one that was listed and is not found is
    /// left out.
    /// - Throws: `HexlistError`: `tooLarge` for more than may wait at once; the errors of the service.
    static func read(_ service: any ContentService, _ path: SharePath) async throws -> FetchTree {
        guard let name = path.names.last else {
            throw HexlistError(
                .badRequest, "Name a file or a folder of it: SERVICE:PATH.",
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
                    // Its parent lists it, but the service cannot read it, or it was deleted. The others are fetched nevertheless.
                    tree.leftOut += 1
                    guard after == nil else { break }
                    // No file is in it yet, so no index in `files` changes.
                    tree.folders.remove(at: index)
                    tree.places.remove(at: index)
                    continue folders
                }
                if page.items.isEmpty, page.next != nil { tree.emptyPages += 1 }
                guard tree.emptyPages <= Self.mostEmptyPages else {
                    throw HexlistError(
                        .refused, "The list of \(TerminalText.clean(here.description, columns: 200)) does not come to an end.")
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
                // Each page says the same of the whole folder.
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
        // Bounded by the size in the list.
        if case .remote = source, entry.size == nil {
            leftOut += 1
            return
        }
        files.append(File(entryName: name, size: entry.size, modified: entry.modified?.milliseconds, folder: folder))
    }

    /// The link that a transfer of a file has.
    func source(of file: File) throws -> FetchSource {
        guard let path = places[file.folder].appending(file.entryName) else { throw HexlistError(.internal, "A listed path is too long.") }
        return try service.source(of: path)
    }

    private func check() throws(HexlistError) {
        guard files.count < TransferRow.limit, folders.count < TransferRow.limit else {
            throw HexlistError(
                .tooLarge, "The folder has more than \(TransferRow.limit) files or folders; so many can be fetched at once.",
                hint: "Fetch the folders in it one after the other.")
        }
    }

    /// Takes out the files that are in the destination already: of the same name, size and time.
    /// - Returns: how many there were.
    mutating func dropPresent(in base: String) -> Int {
        let before = files.count
        files.removeAll { file in
            let path = (folders[file.folder] + [file.name]).joined(separator: "/")
            return FileMatch.exists(HexlistPaths.join(base, path), size: file.size, modified: file.modified)
        }
        return before - files.count
    }
}
