import HTTPTypes
import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import Hummingbird
import NIOCore

/// Answers the requests of shortcuts on the peer port: `POST /drop/TOKEN`. The replies are short texts that a shortcut can show.
struct DropResponder: Sendable {
    let api: APIContext

    static let path = "/drop/"
    /// Maximum bytes of an `Idempotency-Key`.
    private static let keyBytes = 128

    func respond(to request: Request) async throws -> Response {
        do {
            return Self.reply(.ok, try await answer(request))
        } catch {
            guard let refusal = GuestRefusal(error, logger: api.logger) else { throw error }
            var reply = Self.reply(HTTPResponse.Status(code: refusal.status), refusal.message)
            reply.headers[.connection] = "close"
            return reply
        }
    }

    private static func reply(_ status: HTTPResponse.Status, _ text: String) -> Response {
        var headers = GuestResponder.headers
        headers[.contentType] = "text/plain; charset=utf-8"
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: text + "\n")))
    }

    /// Stores the drop as a hex.
    /// - Returns: the text of the reply, after the hex is durable.
    private func answer(_ request: Request) async throws -> String {
        guard let address = CallerConnection.remoteAddress else { throw GuestRefusal.notFound }
        try await GuestResponder.gate(api).checkDrop(GuestRequestHead(request))
        let (token, node) = (try admit(String(request.uri.path.dropFirst(Self.path.count)), from: address), api.node)
        defer { api.drops.finish(token.peer) }
        let key = try Self.key(request)
        CallerConnection.markAuthenticated()
        let receiver = DropReceiver(transfers: node.transfers, diskReserve: await node.diskReserve)
        var counted = request
        counted.body = RequestBody(
            asyncSequence: request.body.map { [api] bytes in
                try api.drops.receive(bytes.readableBytes, of: token.peer)
                return bytes
            })
        let content = try await receiver.read(counted)
        guard !content.isEmpty else {
            throw GuestRefusal(status: 400, message: "There is nothing to store. Send a text, or the fields text, url or title, or a file.")
        }
        let (id, earlier) = content.messageIDs(at: Timestamp.now.milliseconds)
        let hex = KeylessHex(drop: token.peer, name: token.name, address: address, text: content.text, files: content.files)
        let result = try await node.receive(
            drop: hex, id: key.map(DropContent.messageID(key:)) ?? id, earlier: key == nil ? earlier : nil)
        let name = await node.nameAndPort().name
        switch result {
        case .stored: return "\(name) has it."
        case .storedBefore: return "\(name) has it already."
        case .removed: throw GuestRefusal.noToken
        }
    }

    private func admit(_ token: String, from address: IPAddress) throws(GuestRefusal) -> DropToken {
        switch api.drops.admit(token, from: address) {
        case .admitted(let token): return token
        case .refused(let refusal): throw refusal
        case .limitReached(let refusal):
            api.logger.notice("wrong drop tokens were tried", metadata: ["peer.address": "\(address)"])
            throw refusal
        }
    }

    /// Returns the value of `Idempotency-Key`, which a client chooses and repeats together with a request; `nil` if it is missing.
    private static func key(_ request: Request) throws(GuestRefusal) -> String? {
        guard let name = HTTPField.Name("idempotency-key"), let key = request.headers[name] else { return nil }
        guard (1...keyBytes).contains(key.utf8.count) else {
            throw GuestRefusal(status: 400, message: "Idempotency-Key has 1 to \(keyBytes) bytes.")
        }
        return key
    }
}
