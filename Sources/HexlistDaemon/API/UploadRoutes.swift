import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird

/// `/v1/uploads`: offers a file that is the body of the request, for callers that cannot pass a path.
struct UploadRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/uploads") { request, _ in
            let query = try APIQuery(request, allowing: ["name", "to"])
            guard LocalAPI.isUpload(request.headers[.contentType]) else {
                throw HexlistError(.badRequest, "A file is uploaded as `\(LocalAPI.uploadType)`.")
            }
            let lengths = request.headers[values: .contentLength]
            guard lengths.count == 1, let size = Int64(lengths[0]), size >= 0 else {
                throw HexlistError(.badRequest, "The request has no Content-Length.", hint: "It takes `Content-Length`.")
            }
            let peers = try await SendRoutes(api: api).targets(named: query.texts("to"), all: false)
            let name = try query.text("name") ?? ""
            return APIReply.json(try await api.node.transfers.offers.upload(name, size: size, to: peers, request.body))
        }
    }
}
