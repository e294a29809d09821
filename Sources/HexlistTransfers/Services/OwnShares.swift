import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistStore

/// The shares of this machine as a service for its user. The top folder has a folder for each share.
struct OwnShares: ContentService {
    let transfers: FileTransfers

    var view: ServiceView { ServiceView(name: LocalAPI.ownService, kind: .own) }

    func page(of path: SharePath, by order: FolderSortOrder, after: String?, limit: Int) async throws -> FilePage {
        guard let share = path.names.first else { return try ShareList.page(await list(), by: order, after: after, limit: limit) }
        if let after, !FolderCursor.isCursor(after, order) { throw ShareList.noCursor }
        let row = try await row(share)
        return try await transfers.onFileThread {
            switch try ShareFault.mapped(path, { () throws(FileFault) in try ShareRoot(row).open(path.withoutFirst) }) {
            case .file: throw ShareFault.isFile(path)
            case .folder(let folder):
                let page = try ShareFault.mapped(path) { () throws(FileFault) in try folder.page(by: order, after: after, limit: limit) }
                return FilePage(page.listing)
            }
        }
    }

    func entry(at path: SharePath) async throws -> FileEntry {
        guard let share = path.names.first else { return FileEntry(name: "", kind: .folder) }
        let row = try await row(share)
        return try await transfers.onFileThread {
            FileEntry(
                try ShareFault.mapped(path) { () throws(FileFault) in try ShareRoot(row).about(path.withoutFirst) }, named: path.names.last)
        }
    }

    func links(to paths: [SharePath], _ wish: LinkOptions, each: @escaping @Sendable (ServiceLinkResult) -> Void) async throws {
        try await ShareList.links(self, transfers.id, paths, wish, each)
    }

    func source(of path: SharePath) throws -> FetchSource {
        throw HexlistError(.badRequest, "These are your own shares; the files are already here.")
    }

    private func row(_ share: String) async throws -> ShareRow {
        guard let row = try await transfers.store.read({ try $0.share(share) }) else {
            throw HexlistError(
                .notFound, "There is no share \(TerminalText.clean(share, columns: 80)).", hint: "`hexlist share` lists the shares.")
        }
        return row
    }

    private func list() async throws -> FolderListing {
        let rows = try await transfers.store.read { try $0.shares() }
        return try await transfers.onFileThread {
            guard case .list(let list) = ShareAnswer.shares(rows) else { return FolderListing() }
            return list
        }
    }
}
