import HTTPTypes
import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistTransport
import Hummingbird
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

struct BackupRoutes: Sendable {
    let api: APIContext
    /// Allows one backup at a time. All requests for backups use this instance: the socket has a single router, and `PageGate` refuses such
    /// requests on the page's listener.
    private let backups = BackupLock()

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/backup") { request, _ in
            _ = try APIQuery(request)
            return try await make()
        }
    }

    /// Bytes per chunk of the reply.
    private static let chunkBytes = 256 << 10

    /// Makes a backup in the state folder and sends it. The open file is unlinked before it is sent, so no file is left if the caller
    /// disconnects.
    /// - Throws: `alreadyRunning` while another backup is made.
    private func make() async throws -> Response {
        let node = api.node
        let path = StateFolder.backupPath(api.stateFolder)
        guard let turn = backups.begin() else {
            throw HexlistError(.alreadyRunning, "Another backup is still running.", hint: "Try again when it is done.")
        }
        defer { backups.end(turn) }
        StateFolder.removeBackup(api.stateFolder)
        try await node.store.backUp(
            to: path, files: [Restore.identityName: node.identity.pemBytes],
            diskReserve: Int64(await node.configuration.limits.diskReserveBytes))
        defer { unlink(path) }
        guard let file = OpenFile(path) else { throw HexlistError(.internal, "The new backup cannot be read.") }
        let body = ResponseBody(contentLength: file.bytes) { writer in
            while let piece = file.next(Self.chunkBytes) { try await writer.write(piece) }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: LocalAPI.backupType, .cacheControl: "no-store"], body: body)
    }
}
