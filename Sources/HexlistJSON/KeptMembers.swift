public import HexlistModel

extension JSONWriter {
    /// Writes the unknown members of a frame or of a hex as received: `{"wrapper":{…},"hex":{…},"links":{"0":{…}},"children":{"0":{…}}}`,
    /// those of a link and of a hex inside under its position, empty levels left out.
    /// - Parameter wrapper: an object; empty if nothing was kept.
    public mutating func keptMembers(ofWrapper wrapper: [UInt8] = [], of hex: HexContent?) {
        object { json in
            if !wrapper.isEmpty { json.named("wrapper") { $0.raw(wrapper) } }
            guard let hex else { return }
            json.kept(hex.extra, of: hex, nil, hex.children.isEmpty ? [] : hex.childrenWithKeptMembers)
        }
    }

    /// Writes what was kept of one hex and of those inside it. It calls itself once for each of their levels (`ProtocolLimits.levels`).
    /// - Parameter keeps: for each of `hex.children`, whether anything was kept of it or inside it.
    private mutating func kept(_ extra: TextSlice, of hex: HexContent, _ child: Int?, _ keeps: [Bool]) {
        if !extra.isEmpty { named("hex") { $0.raw(extra, of: hex) } }
        let links = hex.links(of: child)
        if links.contains(where: { !$0.extra.isEmpty }) {
            named("links") { json in
                json.object { json in
                    for (place, link) in links.enumerated() where !link.extra.isEmpty {
                        json.named(String(place)) { $0.raw(link.extra, of: hex) }
                    }
                }
            }
        }
        guard !keeps.isEmpty else { return }
        let children = hex.children(of: child)
        guard children.contains(where: { keeps[$0] }) else { return }
        named("children") { json in
            json.object { json in
                for (place, child) in children.enumerated() where keeps[child] {
                    json.named(String(place)) { json in
                        json.object { $0.kept(hex.children[child].extra, of: hex, child, keeps) }
                    }
                }
            }
        }
    }

    private mutating func raw(_ slice: TextSlice, of hex: HexContent) {
        hex.withBytes(of: slice) { raw($0) }
    }
}

extension HexContent {
    /// For each of `children`, whether anything was kept of it or of a hex inside it.
    fileprivate var childrenWithKeptMembers: [Bool] {
        var keeps = children.map { child in !child.extra.isEmpty || childLinks[child.links].contains { !$0.extra.isEmpty } }
        for index in children.indices.reversed() where keeps[index] {
            if let parent = children[index].parent { keeps[parent] = true }
        }
        return keeps
    }
}
