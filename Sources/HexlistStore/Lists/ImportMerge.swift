import HexlistModel

/// Compares an imported hex with a stored hex of the same description and sender, and lists the additions that the stored one needs: links
/// with new addresses (`NormalizedLinkAddress`), and new inner hexes. Existing content is neither changed nor removed.
///
/// Inner hexes are matched level by level. An imported and a stored inner hex are merged if they have the same description and sender, and
/// no sibling of either has the same description and sender. Otherwise the imported inner hex is added, unless there is an equal stored
/// one. A second import of the same hex therefore adds nothing.
struct ImportMerge {
    /// The additions to one stored hex or inner hex.
    struct Addition {
        /// The index in `content.children` of the stored hex; `nil` for the stored hex itself.
        var hex: Int?
        var links: [LinkContent] = []
        /// Indices in `children` of the imported hex. Each of these inner hexes is added with all hexes inside it.
        var children: [Int] = []
    }

    private(set) var additions: [Addition] = []
    /// The imported links that are not added because the stored hex has their address in another spelling.
    private(set) var respellings: [EquivalentLink] = []

    /// Maximum bytes of the texts of a merged hex, so that it still fits into one request to send it.
    private static let bytes = 900 << 10

    /// Returns `nil` if the senders differ, or if the merged hex would exceed the bounds of a hex.
    init?(of new: HexContent, into old: HexDetail, _ digest: (HexContent) -> [UInt8]) {
        guard Sender(new) == Sender(old.content) else { return nil }
        var pairs: [(new: Int?, old: Int?)] = [(nil, nil)]
        var (links, hexes, bytes) = (old.content.allLinkCount, old.content.hexCount, old.content.byteCount)
        while let pair = pairs.popLast() {
            var addition = Addition(hex: pair.old)
            addition.links = missing(new, pair.new, in: old.content, pair.old)
            links += addition.links.count
            bytes += addition.links.reduce(0) { $0 + $1.byteCount }
            let before = Self.byTitle(old.content, pair.old)
            for (title, found) in Self.byTitle(new, pair.new) {
                let there = before[title] ?? []
                if found.count == 1, there.count == 1, !title.isBlank {
                    pairs.append((found[0], there[0]))
                    continue
                }
                var equal: [[UInt8]: Int] = [:]
                for index in there { equal[digest(old.content.subtree(index)), default: 0] += 1 }
                for index in found {
                    let tree = new.subtree(index)
                    if !equal.isEmpty {
                        let key = digest(tree)
                        if let count = equal[key], count > 0 {
                            equal[key] = count - 1
                            continue
                        }
                    }
                    addition.children.append(index)
                    links += tree.allLinkCount
                    hexes += tree.hexCount
                    bytes += tree.byteCount
                }
            }
            addition.children.sort()
            if !addition.links.isEmpty || !addition.children.isEmpty { additions.append(addition) }
        }
        guard additions.isEmpty || links <= ProtocolLimits.links && hexes <= ProtocolLimits.children && bytes <= Self.bytes else {
            return nil
        }
    }

    /// Returns the links of the imported hex whose addresses the stored hex does not have. If the imported hex has an address more often
    /// than the stored hex, its surplus links are returned. Equal spellings are matched first.
    private mutating func missing(_ new: HexContent, _ hex: Int?, in old: HexContent, _ there: Int?) -> [LinkContent] {
        var counts: [[UInt8]: Int] = [:]
        for link in old.links(of: there) { counts[old.withBytes(of: link.url) { Array($0) }, default: 0] += 1 }
        let rest = new.links(of: hex).filter { link in
            let url = new.withBytes(of: link.url) { Array($0) }
            guard let count = counts[url], count > 0 else { return true }
            counts[url] = count - 1
            return false
        }
        guard !rest.isEmpty else { return [] }
        var stored: [[UInt8]: [[UInt8]]] = [:]
        for (url, count) in counts where count > 0 {
            stored[NormalizedLinkAddress.of(url), default: []] += Array(repeating: url, count: count)
        }
        return rest.filter { link in
            let url = new.withBytes(of: link.url) { Array($0) }
            guard let other = stored[NormalizedLinkAddress.of(url)]?.popLast() else { return true }
            respellings.append(
                EquivalentLink(url: String(decoding: url, as: UTF8.self), stored: String(decoding: other, as: UTF8.self)))
            return false
        }
    }

    private static func byTitle(_ content: HexContent, _ parent: Int?) -> [Title: [Int]] {
        Dictionary(grouping: content.children(of: parent)) { Title(content.children[$0], of: content) }
    }

    /// The claimed sender of a hex.
    private struct Sender: Hashable {
        var uuid: [UInt8]
        var name: [UInt8]

        init(_ content: HexContent) { self.init(content, content.senderUUID, content.senderName) }

        init(_ content: HexContent, _ uuid: TextSlice, _ name: TextSlice) {
            self.uuid = content.withBytes(of: uuid) { Array($0) }
            self.name = content.withBytes(of: name) { Array($0) }
        }
    }

    private struct Title: Hashable {
        private var description: [UInt8]
        private var sender: Sender
        var isBlank: Bool { description.allSatisfy { $0 == 0x20 } }

        init(_ child: ChildContent, of content: HexContent) {
            description = content.withBytes(of: child.hexDescription) { Array($0) }
            sender = Sender(content, child.senderUUID, child.senderName)
        }
    }
}
