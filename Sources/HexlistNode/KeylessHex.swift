public import HexlistFiles
public import HexlistModel
public import HexlistStore

/// A text and files that a guest or a drop token sent.
public struct KeylessHex: Sendable {
    public struct File: Sendable {
        /// The ID in the link to the file.
        public var id: OfferID
        /// The stored file. Its name is a valid `FileName`.
        public var file: ArrivedFile
        /// Milliseconds since 1970.
        public var modified: Int64

        public init(id: OfferID, file: ArrivedFile, modified: Int64) { (self.id, self.file, self.modified) = (id, file, modified) }
    }

    /// `guest` or `drop`.
    private let kind: PeerKind
    /// The random UUID under which the sender is recorded.
    public var peer: PeerID
    public var name: String
    public var address: IPAddress
    /// Whether the hex is held until the user accepts it. Otherwise it goes to the inbox, because the user invited the guest or created the
    /// drop token.
    public var isHeld: Bool
    /// The text, at most `ProtocolLimits.stringBytes` bytes.
    public var text: String
    public var files: [File]

    /// - Parameter name: the name that the guest gave itself. Untrusted text.
    public init(from peer: PeerID, name: String, address: IPAddress, isHeld: Bool, text: String, files: [File]) {
        kind = .guest
        self.name = Self.label(name, address: address)
        (self.peer, self.address, self.isHeld, self.text, self.files) = (peer, address, isHeld, text, files)
    }

    /// - Parameter name: the name of the drop token, which the user of this machine chose.
    public init(drop peer: PeerID, name: String, address: IPAddress, text: String, files: [File]) {
        kind = .drop
        isHeld = false
        (self.peer, self.name, self.address, self.text, self.files) = (peer, name, address, text, files)
    }

    /// Maximum length of the name of a guest, in characters.
    private static let nameLength = 40

    /// The name under which a guest is recorded: `"Anna" 192.168.7.31`, or the address alone.
    private static func label(_ name: String, address: IPAddress) -> String {
        let line = PeerName.line(name).filter { $0 != "\"" }
        // The bytes are limited too, because a character can have any number of scalars.
        let short = PeerName.cut(String(line.prefix(nameLength)), bytes: 4 * nameLength)
        return short.allSatisfy(\.isWhitespace) ? "\(address)" : "\"\(short)\" \(address)"
    }

    /// Builds the hex. The addresses in the text become links, and the rest of the text becomes the description. Each file becomes a link
    /// to a file of the sender. If the text is blank, the description is the name of the only file, or the number of files.
    /// - Parameter messageID: the id by which a repeated request is recognised; `nil` for none.
    func hex(_ messageID: MessageID? = nil) -> IncomingHex {
        var content = HexContent()
        content.setSender(peer, name: name)
        content.addText(text, limit: ProtocolLimits.links - files.count)
        if !files.isEmpty, text.allSatisfy(\.isWhitespace) {
            content.hexDescription = content.add(files.count == 1 ? files[0].file.name : "\(files.count) files")
        }
        for file in files {
            content.links.append(
                content.link(
                    toFile: FileName(file.file.name), size: file.file.size, sha256: file.file.sha256,
                    mediaType: MediaType.of(file.file.name), modified: file.modified, of: peer, file.id))
        }
        return IncomingHex(content: content, messageID: messageID, weight: content.weight(frame: 0))
    }

    var sender: Sender { Sender(peer: peer, kind: kind, fingerprint: nil, name: name, address: "\(address)") }
}
