public import HexlistAPI
public import HexlistFiles
public import HexlistModel

/// A source of files that can be listed and linked to: the shares of this machine, those of a peer, or an rclone remote.
///
/// Cancelling the calling task cancels a request; the service drops late answers to it. Each service limits its number of concurrent
/// requests.
public protocol ContentService: Sendable {
    /// The name and kind of the service, and whether it can be used now.
    var view: ServiceView { get }

    /// Reads a page of a folder.
    /// - Parameters:
    ///   - path: the folder; empty for the top-level folder.
    ///   - after: the `next` of the previous page, in the same order; `nil` for the first page.
    ///   - limit: maximum number of entries, 1 to `LocalAPI.pageLimit`. Even a page with fewer may not be the last.
    /// - Throws: `HexlistError`: `notFound`; `badRequest` for the path of a file; `gone` if the service cannot be used now.
    func page(of path: SharePath, by order: FileOrder, after: String?, limit: Int) async throws -> FilePage

    /// Returns the list entry of one file or folder. The name of the top-level folder is empty.
    /// - Throws: the same errors as `page`.
    func entry(at path: SharePath) async throws -> FileEntry

    /// Creates links to files and folders, several concurrently. Calls `each` exactly once for each path, in any order, unless the task is
    /// cancelled.
    func links(to paths: [SharePath], _ wish: LinkRequestKind, each: @escaping @Sendable (LinkReply) -> Void) async throws

    /// Returns the source from which a transfer fetches this file.
    /// - Throws: `notSupported` if files of this service cannot be fetched.
    func source(of path: SharePath) throws -> FetchSource

    /// The same service, without the pause that follows repeated failures of a request.
    var forced: any ContentService { get }
}

extension ContentService {
    public var forced: any ContentService { self }
}

/// Options for creating or revoking links.
public struct LinkRequestKind: Sendable {
    /// Seconds after which the links expire; `nil` to leave that to the service.
    public var expire: Double?
    /// Whether to revoke links instead of creating them.
    public var revokes: Bool

    public init(expire: Double? = nil, revokes: Bool = false) {
        self.expire = expire
        self.revokes = revokes
    }
}

/// The source of a file to fetch.
public enum FetchSource: Sendable {
    /// A peer, which serves the file on a file connection.
    case peer(FileLink)
    /// An rclone remote, with the path of the file there.
    case remote(RemoteLink)
}

/// The services that a part of the daemon outside the node provides: the rclone remotes.
public protocol ContentServices: Sendable {
    /// All remotes. Cheap enough to call for each request.
    func all() async throws -> [any ContentService]

    /// Writes a file of a remote into a local folder, replacing a file with the same name. Cancelling the task cancels the copy.
    /// - Parameter file: the local name: letters, digits and dots only.
    /// - Throws: `RemoteFault`; `CancellationError`.
    func copy(_ link: RemoteLink, to folder: String, as file: String) async throws
}
