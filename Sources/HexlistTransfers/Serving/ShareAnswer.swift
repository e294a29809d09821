import HexlistFiles
import HexlistModel
import HexlistStore

/// The answer to a request for a file or folder in a share. It is created on a file thread.
enum ShareAnswer: Sendable {
    case file(FileBody, mediaType: String?)
    case list(FolderListing)
    /// A listing that has to be read, in steps.
    case folder(FolderPageReader)

    /// Returns the shares that a peer may see, as a listing with a folder for each. A share whose folder does not exist is omitted.
    static func shares(_ rows: [ShareRow]) -> ShareAnswer {
        let entries = rows.compactMap { row -> FolderListing.Entry? in
            guard let about = try? ShareRoot(row).about(.root) else { return nil }
            return FolderListing.Entry(name: row.name, kind: .folder, modified: about.modified)
        }
        return .list(FolderListing(entries: entries))
    }

    /// Finds the file or folder at a path in a share.
    /// - Throws: `notFound`; `system`.
    init(_ row: ShareRow, _ path: SharePath, _ query: FileRequestTarget.EntryQuery) throws(FileFault) {
        let root = ShareRoot(row)
        switch query {
        case .about:
            var entry = try root.about(path)
            if path.names.isEmpty { entry.name = row.name }
            self = .list(FolderListing(entries: [entry]))
        case .list(let order, let after):
            guard case .folder(let folder) = try root.open(path) else { throw .notFound }
            self = .folder(try folder.reading(by: order, after: after))
        case .content:
            switch try root.open(path) {
            case .folder(let folder): self = .folder(try folder.reading())
            case .file(let file): self = .file(FileBody(file), mediaType: path.names.last.flatMap(MediaType.of))
            }
        }
    }
}

extension ShareRoot {
    init(_ row: ShareRow) { self.init(path: row.path, showsHidden: row.showsHidden) }
}
