import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistSystem
import HexlistTransfers
import Hummingbird
import NIOCore

/// `/v1/offers`, `/v1/transfers` and `/v1/upload-requests`: files offered to peers, files fetched from them, and requests of LocalSend
/// devices to send files.
struct OfferAndTransferRoutes: Sendable {
    let api: APIContext

    /// Maximum number of paths in an offer.
    private static let paths = 10_000
    private static let progressPause = Duration.milliseconds(300)

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/offers", use: offer)
        router.post("/v1/transfers") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.transfers.fetch(try await RequestInput.requiredShape(request)))
        }
        router.get("/v1/transfers", use: list)
        router.get("/v1/transfers/summary", use: summary)
        router.get("/v1/upload-requests") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(HexlistAPI.Page(items: await api.node.uploadRequests.all(), next: nil))
        }
        router.post("/v1/upload-requests/:id/accept") { request, context in
            let trusting = try APIQuery(request, allowing: ["trust"]).flag("trust")
            return APIReply.json(try await api.node.uploadRequests.accept(try RequestInput.id(context), trusting: trusting))
        }
        router.post("/v1/upload-requests/:id/refuse") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.uploadRequests.refuse(try RequestInput.id(context)))
        }
        router.get("/v1/transfers/:id") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.transfers.transfer(try RequestInput.id(context)))
        }
        router.post("/v1/transfers/:id/cancel") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.transfers.cancel(try RequestInput.id(context)))
        }
        router.post("/v1/transfers/:id/retry") { request, context in
            let force = try APIQuery(request, allowing: ["force"]).flag("force")
            return APIReply.json(try await api.node.transfers.retry(try RequestInput.id(context), force: force))
        }
        router.post("/v1/transfers/:id/open") { request, context in
            let (transfer, path) = try await received(request, context)
            try await api.desktop.open(path)
            return APIReply.json(transfer)
        }
        router.post("/v1/transfers/:id/show") { request, context in
            let (transfer, path) = try await received(request, context)
            try await api.desktop.show(path)
            return APIReply.json(transfer)
        }
        router.get("/v1/transfers/:id/image", use: image)
        router.delete("/v1/transfers/:id") { request, context in
            _ = try APIQuery(request)
            try await api.node.transfers.forget(try RequestInput.id(context))
            return APIReply.json(ChangeCountJSON(changed: 1))
        }
    }

    /// Reads files and offers them. The reply is a stream of progress lines that ends with a hex with links to the files.
    private func offer(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        return try await offer(try await RequestInput.requiredShape(request), request)
    }

    func offer(_ wanted: OfferRequest, _ request: Request) async throws -> Response {
        guard wanted.hex == nil || wanted.paths.isEmpty else {
            throw HexlistError(.badRequest, "`hex` and `paths` do not go together.")
        }
        guard wanted.hex != nil || (1...Self.paths).contains(wanted.paths.count) else {
            throw HexlistError(.badRequest, "One request offers 1 to \(Self.paths) paths; \(wanted.paths.count) were named.")
        }
        let audience = try await audience(wanted)
        let (offers, protected) = (api.node.transfers.offers, await api.ownFolders())
        let copying: OfferCopyPolicy = wanted.copy.map { $0 ? .always : .never } ?? (wanted.copySmall ?? false ? .ifSmall : .never)
        return ProgressStream.response(request, api: api, pause: Self.progressPause) { tell -> OfferResult in
            if let hex = wanted.hex, case .peers(let peers) = audience {
                return try await offers.reoffer(hex, to: peers, copying: copying, protecting: protected, progress: tell)
            }
            return try await offers.offer(wanted.paths, for: audience, copying: copying, protecting: protected, progress: tell)
        }
    }

    private func audience(_ wanted: OfferRequest) async throws -> OfferAudience {
        guard wanted.mine ?? false else {
            guard wanted.parent == nil else { throw HexlistError(.badRequest, "`in` needs `mine`.") }
            return .peers(try await SendRoutes(api: api).targets(named: wanted.to, all: wanted.toAll ?? false))
        }
        guard wanted.to.isEmpty, !(wanted.toAll ?? false), wanted.hex == nil else {
            throw HexlistError(.badRequest, "`mine` does not go together with `to`, `toAll` or `hex`.")
        }
        return .mine(hex: wanted.parent)
    }

    private func list(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["state", "hex", "limit", "after"])
        let stages: [TransferStage] = try query.texts("state").map { try APIQuery.choice($0, of: "state") }
        let page = try await api.node.transfers.page(
            stages.isEmpty ? nil : Set(stages), hex: try query.number("hex", 1...Int64.max), before: try query.cursor(),
            limit: try query.limit())
        return APIReply.page(page.rows, next: page.next, cursor: \.id) { $0 }
    }

    /// Returns a finished transfer with the path of its file.
    /// - Throws: `badRequest` if the transfer is not finished.
    private func received(_ request: Request, _ context: BasicRequestContext) async throws -> (TransferView, path: String) {
        _ = try APIQuery(request)
        let transfer = try await api.node.transfers.transfer(try RequestInput.id(context))
        guard transfer.state.known == .done else { throw HexlistError(.badRequest, "This file has not been downloaded yet.") }
        return (transfer, HexlistPaths.join(transfer.folder, transfer.file))
    }

    /// Maximum bytes of an image that is read for a thumbnail.
    private static let imageBytes = 32 << 20
    private static let pieceBytes = 256 << 10

    /// Returns the bytes of a received image of a trusted peer, from which the page makes a thumbnail.
    private func image(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let (transfer, path) = try await received(request, context)
        guard transfer.tag?.trust == .trusted else { throw HexlistError(.forbidden, "Only images of trusted peers are read.") }
        guard OpenableFile.kind(ofName: path) == .image, try OpenableFile.isOpenable(path) else {
            throw HexlistError(.badRequest, "This file is not an image.")
        }
        guard let file = OpenFile(path), file.bytes <= Self.imageBytes else {
            throw HexlistError(.tooLarge, "This image is larger than \(Self.imageBytes >> 20) MiB.")
        }
        let body = ResponseBody(contentLength: file.bytes) { writer in
            while let piece = file.next(Self.pieceBytes) { try await writer.write(piece) }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: LocalAPI.uploadType, .cacheControl: "no-store"], body: body)
    }

    /// Returns the totals of a range of transfers, once or as an event stream.
    private func summary(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["first", "last"])
        let first = try query.number("first", 1...Int64.max) ?? 1
        let last = try query.number("last", 1...Int64.max) ?? .max
        let read = { @Sendable [supervisor = api.supervisor] in
            // If `first` is above `last`, the range is empty, which `ClosedRange` cannot express.
            first <= last ? try await supervisor.node.transfers.summary(first...last) : TransferSummary()
        }
        if EventStreamReply.isWanted(request) {
            return EventStreamReply.response(ChangedValueSource(event: "transfers", read: read), api: api)
        }
        return APIReply.json(try await read())
    }
}
