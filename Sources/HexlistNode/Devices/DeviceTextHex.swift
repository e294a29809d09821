import HexlistFormats
import HexlistModel

/// Converts a text that a device sent to a hex: its addresses become links, the rest becomes the description.
enum DeviceTextHex {
    /// - Parameters:
    ///   - text: at most `ProtocolLimits.stringBytes` bytes.
    ///   - sender: the device, by its proven certificate.
    ///   - name: the name that the device gives itself.
    static func hex(_ text: String, from sender: PeerID, name: String) -> IncomingHex {
        var content = HexContent()
        content.setSender(sender, name: name)
        content.addText(text)
        return IncomingHex(content: content, messageID: nil, weight: content.weight(frame: 0))
    }
}

extension HexContent {
    /// Sets the UUID and name of the sender in the hex.
    mutating func setSender(_ sender: PeerID, name: String) {
        senderUUID = add(sender.description)
        senderName = add(PeerName.cut(name, bytes: ProtocolLimits.nameBytes))
    }

    /// Adds a text: its addresses become links, and the rest becomes the description. A text with more than `limit` addresses becomes the
    /// description unchanged.
    /// - Parameter limit: maximum number of links.
    mutating func addText(_ text: String, limit: Int = ProtocolLimits.links) {
        let found = LinkText(text)
        guard found.links.count <= limit else { return hexDescription = add(text) }
        hexDescription = add(found.description)
        links += found.links.map { link in
            let service = Service(ofLink: link.url) ?? .unknown
            return LinkContent(url: add(link.url), linkDescription: add(link.title), service: add(service.rawValue))
        }
    }
}
