import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistStore
import Hummingbird

/// `/v1/feeds`: lists, adds and removes feed addresses, from which feed readers on this machine read links.
struct FeedAddressRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/feeds") { request, _ in
            _ = try APIQuery(request)
            let found = try await api.store.read { reader in
                try reader.feedAddresses().map { ($0, try Self.subject(of: $0, reader)) }
            }
            return APIReply.json(Page(items: found.map { FeedAddressJSON($0, subject: $1) }, next: nil))
        }
        router.post("/v1/feeds", use: add)
        router.delete("/v1/feeds/:id") { request, context in
            _ = try APIQuery(request)
            try await api.store.removeFeedAddress(try RequestInput.id(context))
            if try await api.store.read({ try $0.feedAddresses().isEmpty }) { await api.feeds.close() }
            return APIReply.json(ChangeCountJSON(changed: 1))
        }
    }

    private func add(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let content = try await content(try await RequestInput.shape(request) ?? FeedRequest())
        let key = PageListenerState.random()
        let address = try await api.store.addFeedAddress(content, keyDigest: FeedResponder.digest(of: key), at: Timestamp.now.milliseconds)
        let port: Int
        do {
            port = try await api.feeds.port()
        } catch {
            try await api.store.removeFeedAddress(address.id)
            throw error
        }
        var shape = FeedAddressJSON(address, subject: try await api.store.read { try Self.subject(of: address, $0) })
        shape.url = FeedResponder.url(port: port, key: key)
        return APIReply.json(shape)
    }

    private func content(_ wanted: FeedRequest) async throws -> FeedAddress.Content {
        if let hex = wanted.hex {
            guard wanted.text == nil, wanted.location == nil else {
                throw HexlistError(.badRequest, "`hex` does not go with `text` and `location`.")
            }
            return .hex(hex)
        }
        let location: HexLocation? = try wanted.location.map { try APIQuery.choice($0, of: "location") }
        guard let text = wanted.text else { return .newest(in: location ?? .mine) }
        _ = try await api.searchFilter(text)
        return .search(text, in: location)
    }

    private static func subject(of address: FeedAddress, _ reader: StoreReader) throws -> String? {
        guard case .hex(let id) = address.content else { return nil }
        return try reader.hex(id)?.summary.subject
    }
}

extension FeedAddressJSON {
    fileprivate init(_ address: FeedAddress, subject: String?) {
        var (hex, text, location): (Int64?, String?, HexLocation?) = (nil, nil, nil)
        switch address.content {
        case .hex(let id): hex = id
        case .search(let search, let place): (text, location) = (search, place)
        case .newest(let place): location = place
        }
        self.init(
            id: address.id, title: AtomFeedBuilder.title(address.content, subject: subject), hex: hex, text: text,
            location: location?.rawValue, createdAt: Timestamp(milliseconds: address.createdAt),
            usedAt: address.usedAt.map { Timestamp(milliseconds: $0) })
    }
}
