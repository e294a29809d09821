public import HexlistFiles
public import HexlistModel
import HexlistStore

/// A file of this machine that a guest may read, as it was found. It must still be the same file when it is read.
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
    /// - Throws: `changed` if it is another file now; `notFound`, `notRegular`, `notAllowed`, `system`.
    public func open() throws(FileFault) -> OfferedFile { try OfferedFile(offered: path, identity) }
}

extension FileOffers {
    /// Lists files, and the files in folders, without reading their content.
    /// - Parameters:
    ///   - paths: absolute paths.
    ///   - folders: protected folders, as for `offer`.
    /// - Throws: `HexlistError` `badRequest` for a file that cannot be offered.
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

    /// Returns the local file to which each link of a hex leads, followed by the links of its nested hexes; `nil` for a link to the web or to
    /// a file that is not on this machine.
    public func localFiles(of content: HexContent, protecting folders: [String]) async throws -> [LocalFile?] {
        let copies = LocalCopies(
            of: content, store: transfers.store, pool: transfers.pool, copies: copies, own: transfers.id, protecting: folders)
        return try await transfers.onFileThread {
            try copies.filesOfLinks().map { $0.flatMap { try? LocalFile(path: $0.path, name: $0.name) } }
        }
    }
}
