public import HexlistModel

extension JSONWriter {
    /// Writes the unknown members of a frame or of a hex as received: `{"wrapper":{…},"hex":{…},"links":{"0":{…}}}`, each link's under its
    /// position, empty levels left out.
    /// - Parameter wrapper: an object; empty if nothing was kept.
    public mutating func keptMembers(ofWrapper wrapper: [UInt8] = [], of hex: HexContent?) {
        object { json in
            if !wrapper.isEmpty { json.named("wrapper") { $0.raw(wrapper) } }
            guard let hex else { return }
            if !hex.extra.isEmpty { json.named("hex") { $0.raw(hex.extra, of: hex) } }
            let links = hex.links.enumerated().filter { !$0.element.extra.isEmpty }
            guard !links.isEmpty else { return }
            json.named("links") { json in
                json.object { json in
                    for link in links { json.named(String(link.offset)) { $0.raw(link.element.extra, of: hex) } }
                }
            }
        }
    }

    private mutating func raw(_ slice: TextSlice, of hex: HexContent) {
        hex.withBytes(of: slice) { raw($0) }
    }
}
