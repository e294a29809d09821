import HexlistAPI
import HexlistFormats
import HexlistModel
import HexlistNode
import HexlistStore

/// Makes the Atom feed of a feed address, from links in the store.
struct AtomFeedBuilder: Sendable {
    /// Maximum number of links of a feed. Feed readers keep the entries that they received earlier.
    static let links = 100

    let api: APIContext

    /// Returns the feed as XML.
    /// - Throws: `notFound` if the hex of the feed was deleted.
    func xml(of address: FeedAddress) async throws -> String {
        let (uuid, name) = (api.node.id, await api.node.nameAndPort().name)
        let (links, subject) = try await links(of: address.content)
        let id =
            switch address.content {
            case .hex(let id): AtomFeed.feedID(hex: id, machine: uuid)
            case .search(let text, let location): AtomFeed.feedID(search: text, location: location, machine: uuid)
            case .newest(let location): AtomFeed.feedID(location: location, machine: uuid)
            }
        let entries = links.map { link in
            AtomFeed.Entry(
                id: AtomFeed.linkID(String(decoding: link.url, as: UTF8.self), machine: uuid),
                url: String(decoding: link.url, as: UTF8.self),
                title: String(decoding: link.description, as: UTF8.self), updated: "\(Timestamp(milliseconds: link.hex.receivedAt))",
                author: link.hex.peerLabel?.text(columns: 200) ?? "", note: link.annotations.note, categories: link.annotations.tags)
        }
        return AtomFeed(
            id: id, title: Self.title(address.content, subject: subject), author: name, entries: entries
        ).xml
    }

    private func links(of content: FeedAddress.Content) async throws -> (links: [ListedLink], subject: String?) {
        switch content {
        case .hex(let id):
            return try await api.store.read { reader in
                guard let hex = try reader.hex(id)?.summary else { throw HexlistError.noHex(id) }
                return (Array(try reader.links(of: hex).prefix(Self.links)), hex.subject)
            }
        case .search(let text, let location):
            var filter = try await api.searchFilter(text)
            filter.location = location
            let wanted = filter
            return (try await api.store.readWithIndex { try $0.searchLinks(wanted, limit: Self.links) }.hits.map(\.link), nil)
        case .newest(let location):
            let filter = HexFilter(location: location)
            return (try await api.store.read { try $0.linkPage(filter, unique: false, limit: Self.links) }.items, nil)
        }
    }

    /// Returns the title of a feed.
    /// - Parameter subject: the subject of the hex; `nil` for other feeds, and after the hex was deleted.
    static func title(_ content: FeedAddress.Content, subject: String?) -> String {
        switch content {
        case .hex(let id): subject ?? "Hex \(id)"
        case .search(let text, let location): AtomFeed.title(search: text, location: location)
        case .newest(let location): AtomFeed.title(search: "", location: location)
        }
    }
}
