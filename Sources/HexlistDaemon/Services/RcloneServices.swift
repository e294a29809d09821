import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistRclone
import HexlistTransfers

/// The remotes of rclone as services of the node.
struct RcloneServices: RemoteServices {
    let rclone: Rclone

    /// Returns all remotes as services. If rclone is missing or its configuration cannot be read, returns a single unusable service with
    /// the reason.
    func all() async throws -> [any ContentService] {
        do {
            return try await rclone.remotes().map { RemoteService(remote: $0) }
        } catch let error as HexlistError {
            return [UnusableRclone(obstacle: error)]
        }
    }

    func copy(_ link: RemoteLink, to folder: String, as file: String) async throws { try await rclone.copy(link, to: folder, as: file) }
}

struct RemoteService: ContentService {
    let remote: RcloneRemote
    /// Whether to send requests immediately, despite a back-off after earlier failures.
    var force = false

    var view: ServiceView { remote.view }
    var forced: any ContentService { RemoteService(remote: remote, force: true) }

    func page(of path: SharePath, by order: FolderSortOrder, after: String?, limit: Int) async throws -> FilePage {
        try await remote.page(of: path, by: order, after: after, limit: limit, force: force)
    }

    func entry(at path: SharePath) async throws -> FileEntry { try await remote.entry(at: path, force: force) }

    func links(to paths: [SharePath], _ wish: LinkOptions, each: @escaping @Sendable (ServiceLinkResult) -> Void) async throws {
        try await remote.links(to: paths, expire: wish.expire, revokes: wish.revokes, force: force, each: each)
    }

    func source(of path: SharePath) throws -> FetchSource {
        .remote(RemoteLink(remote: remote.name, path: path))
    }
}

/// A placeholder in the list of services, which shows the reason why rclone cannot be used.
struct UnusableRclone: ContentService {
    let obstacle: HexlistError

    var view: ServiceView { ServiceView(name: "rclone", kind: .rclone, obstacle: obstacle) }

    func page(of path: SharePath, by order: FolderSortOrder, after: String?, limit: Int) async throws -> FilePage { throw obstacle }
    func entry(at path: SharePath) async throws -> FileEntry { throw obstacle }
    func links(to paths: [SharePath], _ wish: LinkOptions, each: @escaping @Sendable (ServiceLinkResult) -> Void) async throws {
        throw obstacle
    }
    func source(of path: SharePath) throws -> FetchSource { throw obstacle }
}
