public import HexlistFiles
public import HexlistModel
import HexlistStore

/// A file of this machine that a guest may read. It can only be opened as long as it has not changed since it was found.
public struct LocalFile: Sendable {
    public var path: String
    public var name: String
    public var size: Int64
    fileprivate var identity: String

    fileprivate init(path: String, name: String) throws(FileFault) {
        let file = try OfferedFile(path: path)
        (self.path, self.name, size, identity) = (path, name, file.size, file.identity.description)
    }

    /// Opens the file. Blocks.
    /// - Throws: `changed` if the file has changed or was replaced; `notFound`, `notRegular`, `notAllowed`, `system`.
    public func open() throws(FileFault) -> OfferedFile { try OfferedFile(offered: path, identity) }
}

extension FileOffers {
    /// Lists files, and the files in folders. Their content is not read.
    /// - Parameters:
    ///   - paths: absolute paths.
    ///   - folders: protected folders, as in `offer`.
    /// - Throws: `HexlistError` `badRequest` if a file cannot be offered.
    public func localFiles(at paths: [String], protecting folders: [String]) async throws -> [LocalFile] {
        try await transfers.onFileThread {
            try OfferPlan(paths, protecting: folders).paths.map { path, name in
                do {
                    return try LocalFile(path: path, name: name)
                } catch let fault as FileFault {
                    throw OfferPlan.refused(path, fault)
                }
            }
        }
    }

    /// Returns the file on this machine for each link of a hex; `nil` for a link to the web, or to a file that this machine does not have.
    /// The links of the outermost hex come first, then those of its inner hexes.
    public func localFiles(of content: HexContent, protecting folders: [String]) async throws -> [LocalFile?] {
        let copies = LocalCopies(
            of: content, store: transfers.store, pool: transfers.pool, copies: copies, own: transfers.id, protecting: folders)
        return try await transfers.onFileThread {
            try copies.filesOfLinks().map { $0.flatMap { try? LocalFile(path: $0.path, name: $0.name) } }
        }
    }
}
