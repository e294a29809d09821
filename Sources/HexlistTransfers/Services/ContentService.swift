public import HexlistAPI
public import HexlistFiles
public import HexlistModel

/// A source of files that can be listed and linked to: the shares of this machine, the shares of a peer, or an rclone remote.
///
/// A request is cancelled by cancelling the task; a late answer to it is ignored. Each service limits the number of its concurrent
/// requests.
public protocol ContentService: Sendable {
    /// The name and kind of the service, and whether it can be used now.
    var view: ServiceView { get }

    /// Reads a page of a folder.
    /// - Parameters:
    ///   - path: the path of the folder; empty for the top folder.
    ///   - after: the `next` of the previous page, in the same order; `nil` for the first page.
    ///   - limit: maximum number of entries, 1 to `LocalAPI.pageLimit`. A page with fewer entries is not necessarily the last one.
    /// - Throws: `HexlistError`: `notFound`; `badRequest` for the path of a file; `gone` if the service cannot be used now.
    func page(of path: SharePath, by order: FolderSortOrder, after: String?, limit: Int) async throws -> FilePage

    /// Returns the metadata of one file or folder, in the form of an entry. The name of the top folder is empty.
    /// - Throws: the same errors as `page`.
    func entry(at path: SharePath) async throws -> FileEntry

    /// Creates links to files and folders, several at the same time. `each` is called exactly once for each path, in any order, unless the
    /// task is cancelled.
    func links(to paths: [SharePath], _ wish: LinkOptions, each: @escaping @Sendable (ServiceLinkResult) -> Void) async throws

    /// Returns the source of a file, for its transfer.
    /// - Throws: `notSupported` if files of this service cannot be fetched.
    func source(of path: SharePath) throws -> FetchSource

    /// The same service without the pause: its requests are sent even if requests to the service are suspended after repeated failures.
    var forced: any ContentService { get }
}

extension ContentService {
    public var forced: any ContentService { self }
}

/// The options for creating or revoking links.
public struct LinkOptions: Sendable {
    /// Seconds after which the links expire; `nil` for the service's default.
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
    /// A file of a peer.
    case peer(FileLink)
    /// A file of an rclone remote.
    case remote(RemoteLink)
}

/// The services that are implemented outside the node: the rclone remotes.
public protocol RemoteServices: Sendable {
    /// Returns all remotes. Usually from memory, so it may be called for each request.
    func all() async throws -> [any ContentService]

    /// Copies a file of a remote into a local folder. An existing file of that name is replaced. Cancelling the task cancels the copy.
    /// - Parameter file: the name of the local file. Consists of letters, digits and dots only.
    /// - Throws: `RemoteFault`; `CancellationError`.
    func copy(_ link: RemoteLink, to folder: String, as file: String) async throws
}
