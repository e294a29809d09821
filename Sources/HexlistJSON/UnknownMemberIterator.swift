public import HexlistModel

extension JSONWriter {
    /// Writes the unknown members of a frame and its hex: `{"wrapper":{…},"hex":{…},"links":{"0":{…}},"children":{"0":{…}}}`. Unknown
    /// members of links and inner hexes are keyed by the position of the link or hex. Objects without unknown members are omitted.
    /// - Parameter wrapper: the wrapper's unknown members as a JSON object; empty if there are none.
    public mutating func keptMembers(ofWrapper wrapper: [UInt8] = [], of hex: HexContent?) {
        object { json in
            if !wrapper.isEmpty { json.named("wrapper") { $0.raw(wrapper) } }
            guard let hex else { return }
            json.kept(hex.extra, of: hex, nil, hex.children.isEmpty ? [] : hex.childrenWithKeptMembers)
        }
    }

    /// Writes the unknown members of one hex and its descendants. Recursive, at most `ProtocolLimits.levels` deep.
    /// - Parameter keeps: for each of `hex.children`, whether the child or a descendant of it has unknown members.
    private mutating func kept(_ extra: TextSlice, of hex: HexContent, _ child: Int?, _ keeps: [Bool]) {
        if !extra.isEmpty { named("hex") { $0.raw(extra, of: hex) } }
        let links = hex.links(of: child)
        if links.contains(where: { !$0.extra.isEmpty }) {
            named("links") { json in
                json.object { json in
                    for (index, link) in links.enumerated() where !link.extra.isEmpty {
                        json.named(String(index)) { $0.raw(link.extra, of: hex) }
                    }
                }
            }
        }
        guard !keeps.isEmpty else { return }
        let children = hex.children(of: child)
        guard children.contains(where: { keeps[$0] }) else { return }
        named("children") { json in
            json.object { json in
                for (index, child) in children.enumerated() where keeps[child] {
                    json.named(String(index)) { json in
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
    /// Returns the names of the unknown members of the hex, a link or an inner hex.
    /// - Parameter extra: the property `extra` of the hex, link or inner hex.
    public func memberNames(of extra: TextSlice) -> [String] {
        guard extra.count > 0 else { return [] }
        return (try? JSONValue(parsing: string(extra)))?.members?.map(\.name) ?? []
    }

    /// For each of `children`, whether the child or a descendant of it has unknown members.
    fileprivate var childrenWithKeptMembers: [Bool] {
        var keeps = children.map { child in !child.extra.isEmpty || childLinks[child.links].contains { !$0.extra.isEmpty } }
        for index in children.indices.reversed() where keeps[index] {
            if let parent = children[index].parent { keeps[parent] = true }
        }
        return keeps
    }
}
