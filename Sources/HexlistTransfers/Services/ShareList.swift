import HexlistAPI
import HexlistFiles
import HexlistModel

/// Lists and links for the shares of this machine and of peers.
enum ShareList {
    static let noCursor = HexlistError(.badRequest, "`after` must be the `next` of a list in the same order.")

    /// Returns a page of a listing that is completely in memory.
    static func page(_ list: FolderListing, by order: FolderSortOrder, after: String?, limit: Int) throws(HexlistError) -> FilePage {
        if let after, !FolderCursor.isCursor(after, order) { throw noCursor }
        return FilePage(list.page(by: order, after: after, limit: limit))
    }

    /// Creates links to files that exist, four at a time.
    static func links(
        _ service: some ContentService, _ peer: PeerID, _ paths: [SharePath], _ wish: LinkOptions,
        _ each: @escaping @Sendable (ServiceLinkResult) -> Void
    ) async throws {
        guard wish.expire == nil, !wish.revokes else {
            throw HexlistError(
                .notSupported, "A link into a share is valid as long as the share exists.",
                hint: "To end one of your shares: `hexlist share rm`.")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, path) in paths.enumerated() {
                if index >= 4 { try await group.next() }
                group.addTask {
                    do {
                        guard let share = path.names.first else {
                            throw HexlistError(.badRequest, "Which share? Give the name of a share, or a path in one.")
                        }
                        let link = FileLink(peer: peer, target: .share(name: share, path: path.withoutFirst))
                        guard try await service.entry(at: path).kind.known != .folder else { throw ShareFault.isFolder(path, link) }
                        each(ServiceLinkResult(path: path.description, url: link.description))
                    } catch let error as HexlistError {
                        each(ServiceLinkResult(path: path.description, error: error))
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

/// Errors about files in shares, with messages for users.
enum ShareFault {
    static func isFile(_ path: SharePath) -> HexlistError {
        HexlistError(.badRequest, "\(TerminalText.clean(path.description, columns: 200)) is a file.", hint: "To fetch it: `hexlist fetch`.")
    }

    /// The error for a link to a folder. Links can only lead to files.
    static func isFolder(_ path: SharePath, _ link: FileLink) -> HexlistError {
        HexlistError(
            .badRequest, "\(TerminalText.clean(path.description, columns: 200)) is a folder; only files can be linked.",
            hint: "Its recipients can fetch it: \(PeerFetch.command(for: link)).")
    }

    static func mapped<Value>(_ path: SharePath, _ body: () throws(FileFault) -> Value) throws(HexlistError) -> Value {
        do throws(FileFault) {
            return try body()
        } catch {
            guard case .system(let fault) = error else {
                throw HexlistError(.notFound, "\(TerminalText.clean(path.description, columns: 200)) does not exist, or is not readable.")
            }
            throw HexlistError(.internal, "\(TerminalText.clean(path.description, columns: 200)) cannot be read: \(fault).")
        }
    }
}

extension FilePage {
    init(_ listing: FolderListing) {
        self.init(
            items: listing.entries.map { FileEntry($0, named: $0.name) }, next: listing.next, leftOut: listing.unlisted + listing.leftOut)
    }
}

extension FileEntry {
    init(_ entry: FolderListing.Entry, named name: String?) {
        self.init(
            name: name ?? "", kind: entry.kind == .folder ? .folder : .file, size: entry.size,
            modified: entry.modified.map { Timestamp(milliseconds: $0) }, mediaType: entry.mediaType)
    }
}
