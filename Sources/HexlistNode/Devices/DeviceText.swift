import HexlistFormats
import HexlistModel

/// A text that a device sent, as a hex: its addresses become links, the rest becomes the description.
enum DeviceText {
    /// - Parameters:
    ///   - text: at most `ProtocolLimits.stringBytes`.
    ///   - sender: the device, by its proven certificate.
    ///   - name: the name it gives itself.
    static func hex(_ text: String, from sender: PeerID, name: String) -> IncomingHex {
        var content = HexContent()
        content.senderUUID = content.add(sender.description)
        content.senderName = content.add(PeerName.cut(name, bytes: ProtocolLimits.nameBytes))
        let found = LinkText(text)
        if found.links.count <= ProtocolLimits.links {
            content.hexDescription = content.add(found.description)
            for link in found.links {
                let service = Service(ofLink: link.url) ?? .unknown
                content.links.append(
                    LinkContent(
                        url: content.add(link.url), linkDescription: content.add(link.title), service: content.add(service.rawValue)))
            }
        } else {
            content.hexDescription = content.add(text)
        }
        return IncomingHex(content: content, messageID: nil, weight: content.weight(frame: 0))
    }
}
