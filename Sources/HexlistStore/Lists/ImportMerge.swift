import HexlistModel

/// Compares an imported hex with a stored hex of the same description and sender, and lists the additions that the stored one needs: links
/// with new URLs, and new inner hexes. Existing content is neither changed nor removed.
///
/// Inner hexes are matched level by level. An imported and a stored inner hex are merged if they have the same description and sender, and
/// no sibling of either has the same too. Otherwise the imported inner hex is added, unless there is an equal stored one. A second import
/// of the same hex therefore adds nothing.
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

    /// Maximum bytes of the texts of a merged hex, so that it still fits into one request to send it.
    private static let bytes = 900 << 10

    /// Returns `nil` if the senders differ, or if the merged hex would exceed the bounds of a hex.
    init?(of new: HexContent, into old: HexDetail, _ digest: (HexContent) -> [UInt8]) {
        guard Sender(new) == Sender(old.content) else { return nil }
        var pairs: [(new: Int?, old: Int?)] = [(nil, nil)]
        var (links, hexes, bytes) = (old.content.allLinkCount, old.content.hexCount, old.content.byteCount)
        while let pair = pairs.popLast() {
            var addition = Addition(hex: pair.old)
            addition.links = Self.missing(new, pair.new, in: old.content, pair.old)
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

    /// Returns the links of the imported hex whose URLs the stored hex does not have. A URL that the imported hex has more often than the
    /// stored one is returned for the surplus.
    private static func missing(_ new: HexContent, _ hex: Int?, in old: HexContent, _ there: Int?) -> [LinkContent] {
        var known: [[UInt8]: Int] = [:]
        for link in old.links(of: there) { known[old.withBytes(of: link.url) { Array($0) }, default: 0] += 1 }
        return new.links(of: hex).filter { link in
            let bytes = new.withBytes(of: link.url) { Array($0) }
            guard let count = known[bytes], count > 0 else { return true }
            known[bytes] = count - 1
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
