public import HexlistJSON
public import HexlistModel

/// The body of `POST /v1/drops`.
public struct DropRequest: JSONShape, Sendable, Equatable {
    /// The name of the drop token, different from those of the others: 1 to 40 characters.
    public var name: String
    /// The address of this machine in `url`; by default its name in mDNS.
    public var address: String?

    private enum CodingKeys: String, RequestKey {
        case name, address
    }

    public init(name: String, address: String? = nil) { (self.name, self.address) = (name, address) }
}

/// A drop token: with its address, programs without Hexlist send texts and files into the inbox.
public struct DropView: JSONShape, Sendable, Equatable {
    /// The UUID under which its hexes are recorded.
    public var uuid: PeerID
    public var name: String
    public var createdAt: Timestamp
    /// The time of the last stored hex; `nil` before the first.
    public var usedAt: Timestamp?
    /// The address with the token; `nil` except in the reply that adds it, because only a hash is stored.
    public var url: String?
    /// The same for the other addresses of this machine.
    public var urls: [String]?
    /// The QR code of `url`, as an SVG image.
    public var qr: String?

    public init(
        uuid: PeerID, name: String, createdAt: Timestamp, usedAt: Timestamp? = nil, url: String? = nil, urls: [String]? = nil,
        qr: String? = nil
    ) {
        (self.uuid, self.name, self.createdAt, self.usedAt) = (uuid, name, createdAt, usedAt)
        (self.url, self.urls, self.qr) = (url, urls, qr)
    }

    /// The display name of its hexes' sender.
    public var label: PeerDisplayName { PeerDisplayName(uuid: uuid.description, name: name, alias: nil, trust: PeerKind.drop.rawValue) }
}
