import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistModel
import HexlistTransfers
import Hummingbird
import NIOCore

/// `/v1/services`: lists the services (shares of peers, own shares, rclone remotes) and their files, and makes links to files.
struct ServiceRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/services") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(Page(items: try await api.node.transfers.services.all().map(\.view)))
        }
        router.get("/v1/services/:service/files", use: files)
        router.post("/v1/services/:service/links", use: links)
    }

    private func files(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["path", "sort", "limit", "after", "force"])
        let path = try Self.path(try query.text("path") ?? "")
        let order = try query.choice("sort", FolderSortOrder.name)
        let service = try await service(context, force: try query.flag("force"))
        return APIReply.json(try await service.page(of: path, by: order, after: try query.text("after"), limit: try query.limit()))
    }

    /// Returns the service that the path names.
    /// - Parameter force: whether its requests ignore a back-off after earlier failures.
    private func service(_ context: BasicRequestContext, force: Bool) async throws -> any ContentService {
        let service = try await api.node.transfers.services.named(try RequestInput.text(context, "service"))
        return force ? service.forced : service
    }

    /// Makes links to files of a service. The reply is a stream with a line for each path, and a summary as the last line.
    private func links(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: ServiceLinksRequest = try await RequestInput.requiredShape(request)
        guard (1...LocalAPI.linkPaths).contains(wanted.paths.count) else {
            throw HexlistError(.badRequest, "One request takes 1 to \(LocalAPI.linkPaths) paths; \(wanted.paths.count) were named.")
        }
        if let expire = wanted.expire, !(1...Self.longestExpiry).contains(expire) {
            throw HexlistError(.badRequest, "`expire` is a number of seconds, up to a year.")
        }
        let paths = try wanted.paths.map(Self.path)
        let service = try await service(context, force: wanted.force ?? false)
        let wish = LinkOptions(expire: wanted.expire, revokes: wanted.revoke ?? false)
        let (address, logger) = (request.uri.path, api.logger)
        let body = ResponseBody { writer in
            // The buffer has at most one element for each path, and a `nil` every 2 s.
            let (steps, step) = AsyncStream.makeStream(of: ServiceLinkResult?.self)
            async let fault = { () async -> HexlistError? in
                defer { step.finish() }
                do {
                    try await service.links(to: paths, wish) { step.yield($0) }
                    return nil
                } catch {
                    return ReplyMiddleware.fault(error, at: address, logger)
                }
            }()
            async let _: Void = { while (try? await Task.sleep(for: Self.waiting)) != nil { step.yield(nil) } }()
            var summary = ServiceLinkCounts(made: 0, failed: 0)
            for await line in steps {
                guard let line else {
                    // The write throws if the caller has disconnected. That cancels the running requests.
                    let left = paths.count - summary.made - summary.failed
                    let waits = LinkLine.other(JSONValue { json in json.object { $0.member("waiting", left) } })
                    try await writer.write(ByteBuffer(bytes: waits.lineBytes))
                    continue
                }
                if line.code == nil { summary.made += 1 } else { summary.failed += 1 }
                try await writer.write(ByteBuffer(bytes: LinkLine.reply(line).lineBytes))
            }
            let end = await fault.map { LinkLine.error(ErrorJSON($0)) } ?? .summary(summary)
            try await writer.write(ByteBuffer(bytes: end.lineBytes))
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: LocalAPI.bulkType, .cacheControl: "no-store"], body: body)
    }

    /// Interval of the lines `{"waiting":N}`, which report the number of paths without a result.
    private static let waiting = Duration.seconds(2)
    private static let longestExpiry = 366 * 86_400.0

    private static func path(_ text: String) throws(HexlistError) -> SharePath {
        guard let path = SharePath(typed: text) else {
            throw HexlistError(
                .badRequest, "\"\(TerminalText.clean(text, columns: 100))\" is not a path in a service.",
                hint: "A path consists of names separated by /, none of them empty, . or ..")
        }
        return path
    }
}
