import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistTransfers

/// The hexes and files that the guests of one invitation may read.
struct GuestReadableContent: Sendable {
    /// Maximum number of files. It is limited because each guest gets a ticket, a random key in the URL, for each file.
    static let fileLimit = 500
    static let hexLimit = 20

    struct Hex: Sendable {
        var description: String
        var links: [GuestMessage.Link]
        var files: [LocalFile]
    }

    private(set) var hexes: [Hex] = []

    var fileCount: Int { hexes.reduce(0) { $0 + $1.files.count } }

    /// Reads the hexes, and finds their files and those at `paths` on this machine.
    /// - Parameter folders: Hexlist's own folders, whose files must not be read.
    /// - Throws: `HexlistError` for a missing hex or file, and for too many hexes or files.
    static func read(hexes ids: [Int64], paths: [String], node: Node, protecting folders: [String]) async throws -> GuestReadableContent {
        var content = GuestReadableContent()
        guard ids.count <= hexLimit else { throw HexlistError(.badRequest, "An invitation shows at most \(hexLimit) hexes.") }
        let offers = node.transfers.offers
        for id in ids {
            guard let hex = try await node.store.read({ try $0.hex(id) }) else { throw HexlistError.noHex(id) }
            content.add(hex.content, try await offers.localFiles(of: hex.content, protecting: folders))
        }
        if !paths.isEmpty {
            do {
                content.hexes.append(
                    Hex(description: "", links: [], files: try await offers.localFiles(at: paths, protecting: folders)))
            } catch var error as HexlistError {
                error.hint = "Nobody was invited."
                throw error
            }
        }
        guard content.fileCount <= fileLimit else {
            throw HexlistError(.badRequest, "An invitation has at most \(fileLimit) files.", hint: "Put them into an archive.")
        }
        return content
    }

    /// Adds a hex, and each of its inner hexes that has links.
    private mutating func add(_ content: HexContent, _ files: [LocalFile?]) {
        add(content.string(content.hexDescription), content.links[...], files[..<content.links.count], of: content)
        for child in content.children where !child.links.isEmpty {
            let start = content.links.count + child.links.lowerBound
            add(
                content.string(child.hexDescription), content.childLinks[child.links], files[start..<(start + child.links.count)],
                of: content)
        }
    }

    private mutating func add(
        _ description: String, _ links: ArraySlice<LinkContent>, _ files: ArraySlice<LocalFile?>, of content: HexContent
    ) {
        let others = zip(links, files).filter { $0.1 == nil }.map { link, _ in
            Self.link(content.string(link.url), content.string(link.linkDescription))
        }
        hexes.append(Hex(description: description, links: others, files: files.compactMap(\.self)))
    }

    /// Converts a link for the guest page. Only `http`, `https` and `mailto` links can be opened; their host is shown beside the name.
    private static func link(_ url: String, _ name: String) -> GuestMessage.Link {
        guard let target = try? LinkTarget(url, schemes: ["http", "https", "mailto"]) else {
            return GuestMessage.Link(name: name.isEmpty ? PeerName.cut(url, bytes: 1_024) : name)
        }
        return GuestMessage.Link(name: name.isEmpty ? url : name, url: url, host: target.summary)
    }
}
