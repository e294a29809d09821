public import HexlistJSON
public import HexlistModel

/// The body of `POST /v1/drops`, which adds a drop token.
public struct DropTokenRequest: JSONShape, Sendable, Equatable {
    /// The name of the drop token, 1 to 40 characters. No other drop token may have it.
    public var name: String
    /// The address of this machine in `url`. By default its mDNS name, such as `ada.local`, or its best IP address if mDNS does not run.
    public var address: String?

    private enum CodingKeys: String, RequestKey {
        case name, address
    }

    public init(name: String, address: String? = nil) { (self.name, self.address) = (name, address) }
}

/// A drop token: a secret in a URL, to which programs without Hexlist send texts and files for the inbox.
public struct DropTokenView: JSONShape, Sendable, Equatable {
    /// The UUID that is stored as the sender of the hexes sent with this token.
    public var uuid: PeerID
    public var name: String
    public var createdAt: Timestamp
    /// The time at which a hex sent with this token was last stored; `nil` before the first one.
    public var usedAt: Timestamp?
    /// The URL with the token. Set only in the reply to `POST /v1/drops`, because the store has only a hash of the token.
    public var url: String?
    /// The same URL with each other address of this machine; set together with `url`.
    public var urls: [String]?
    /// The QR code of `url`, as an SVG image; set together with `url`.
    public var qr: String?

    public init(
        uuid: PeerID, name: String, createdAt: Timestamp, usedAt: Timestamp? = nil, url: String? = nil, urls: [String]? = nil,
        qr: String? = nil
    ) {
        (self.uuid, self.name, self.createdAt, self.usedAt) = (uuid, name, createdAt, usedAt)
        (self.url, self.urls, self.qr) = (url, urls, qr)
    }

    /// The display name of the sender of hexes sent with this token.
    public var label: PeerDisplayName { PeerDisplayName(uuid: uuid.description, name: name, alias: nil, trust: PeerKind.drop.rawValue) }
}
