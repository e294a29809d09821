public import HexlistAPI
public import HexlistFiles
public import HexlistModel

/// Something with files that can be listed and pointed to: the shares of this machine, those of a peer, a remote of rclone.
///
/// A request is a call, which its caller cancels by cancelling the task; the service drops late answers to a cancelled request.
/// The service bounds how many of its requests are under way at once.
public protocol ContentService: Sendable {
    /// The name, kind, and whether it can be used now.
    var view: ServiceView { get }

    /// Reads a page of a folder.
    /// - Parameters:
    ///   - path: the folder; empty for the first one.
    ///   - after: the `next` of the page before, in the same order; `nil` for the first page.
    ///   - limit: the most entries, 1 to `LocalAPI.pageLimit`; a page may have fewer and still not be the last.
    /// - Throws: `HexlistError`: `notFound`; `badRequest` for the path of a file; `gone` if the service cannot be used now.
    func page(of path: SharePath, by order: FileOrder, after: String?, limit: Int) async throws -> FilePage

    /// Reads what a list says of one file or folder; its name is empty for the first folder.
    /// - Throws: `HexlistError` as above.
    func entry(at path: SharePath) async throws -> FileEntry

    /// Makes links to files and folders, several at once, and hands over each as it is done, in any order: exactly one for each path, unless
    /// the task is cancelled.
    func links(to paths: [SharePath], _ wish: LinkRequestKind, each: @escaping @Sendable (LinkReply) -> Void) async throws

    /// The link of a transfer of this file (`TransferRow.url`), and the peer it waits for.
    /// - Throws: `notSupported` for a service of which nothing can be fetched.
    func source(of path: SharePath) throws -> FetchSource

    /// The same service, which also repeats requests that failed repeatedly a moment ago.
    var forced: any ContentService { get }
}

extension ContentService {
    public var forced: any ContentService { self }
}

/// The kind of links to create, or to revoke.
public struct LinkRequestKind: Sendable {
    /// Seconds after which they end; `nil` for as long as the service has them.
    public var expire: Double?
    /// Takes them back instead.
    public var revokes: Bool

    public init(expire: Double? = nil, revokes: Bool = false) {
        self.expire = expire
        self.revokes = revokes
    }
}

/// The source of a file to fetch.
public enum FetchSource: Sendable {
    /// A peer, which hands it out on a file connection.
    case peer(FileLink)
    /// A remote of rclone, and the path there.
    case remote(RemoteLink)
}

/// The services that a part of the daemon beside the node knows: the remotes of rclone.
public protocol ContentServices: Sendable {
    /// All remotes. Cheap enough to call for each request.
    func all() async throws -> [any ContentService]

    /// Writes a file into a folder of this machine, in place of one of the same name. Cancelling the task ends that.
    /// - Parameter file: letters, digits and dots.
    /// - Throws: `RemoteFault`; `CancellationError`.
    func copy(_ link: RemoteLink, to folder: String, as file: String) async throws
}
