public import HexlistJSON
public import HexlistModel

/// The body of `POST /v1/invitations`: the content that guests may read, and the options of the invitation. All members are optional.
public struct InvitationRequest: JSONShape, Sendable, Equatable {
    /// The allowed durations of an invitation in seconds: 1 minute to 24 hours.
    public static let durations = 60...86_400

    /// The ids of hexes that guests may read.
    public var hexes: [Int64]?
    /// Absolute paths of files and folders that guests may read. Not accepted from the page of `hexlist web`.
    public var paths: [String]?
    /// Duration in seconds, within `durations`; 10 minutes by default.
    public var seconds: Int?
    /// Whether the invitation ends after the first hex of a guest.
    public var once: Bool?
    /// Whether hexes of guests are held until the user accepts them.
    public var held: Bool?
    /// The IP address of this machine in `Invitation.url`; by default an address of the interface with the default route.
    public var address: String?

    private enum CodingKeys: String, RequestKey {
        case hexes, paths, seconds, once, held, address
    }

    public init(
        hexes: [Int64]? = nil, paths: [String]? = nil, seconds: Int? = nil, once: Bool? = nil, held: Bool? = nil, address: String? = nil
    ) {
        (self.hexes, self.paths, self.seconds, self.once, self.held, self.address) = (hexes, paths, seconds, once, held, address)
    }
}

/// A guest invitation: guests that open its URL in a browser can send hexes and files without Hexlist.
public struct Invitation: JSONShape, Sendable, Equatable {
    /// The reason why an invitation ended.
    public enum End: String, JSONWord, Sendable {
        /// The duration is over.
        case time
        /// The user ended the invitation.
        case user
        /// The invitation was for one hex, which arrived.
        case once
        /// Too many wrong keys were sent by browsers.
        case keys
        /// The daemon stopped.
        case stopped
    }

    public var id: Int
    /// The URL for guests, with the key of the invitation after `#`.
    public var url: String
    /// The same URL with each other address of this machine.
    public var urls: [String]
    public var until: Timestamp
    /// `true` if the invitation ends after the first hex, otherwise `nil`.
    public var once: Bool?
    /// `true` if hexes of guests are held until the user accepts them, otherwise `nil`.
    public var held: Bool?
    /// Number of files that guests can read.
    public var files: Int
    /// The browsers that opened the invitation.
    public var guests: [InvitationGuest]
    /// The hexes of guests, oldest first.
    public var hexes: [InvitationHex]
    /// The QR code of `url`, as an SVG image.
    public var qr: String
    /// The reason why the invitation ended; `nil` while it is active.
    public var ended: ForwardCompatibleEnum<End>?

    public init(
        id: Int, url: String, urls: [String], until: Timestamp, once: Bool, held: Bool, files: Int, guests: [InvitationGuest] = [],
        hexes: [InvitationHex] = [], qr: String, ended: End? = nil
    ) {
        (self.id, self.url, self.urls, self.until) = (id, url, urls, until)
        (self.once, self.held, self.files) = (once ? true : nil, held ? true : nil, files)
        (self.guests, self.hexes, self.qr) = (guests, hexes, qr)
        self.ended = ended.map { ForwardCompatibleEnum($0) }
    }
}

/// A browser that opened an invitation.
public struct InvitationGuest: JSONShape, Sendable, Equatable {
    public var address: String
    /// The kind of device, as far as the browser states it: `iPhone`, `Android`, …; `nil` if unknown.
    public var device: String?
    public var at: Timestamp

    public init(address: String, device: String?, at: Timestamp) {
        (self.address, self.device, self.at) = (address, device, at)
    }
}

/// A hex that arrived from a guest.
public struct InvitationHex: JSONShape, Sendable, Equatable {
    public var hex: Int64
    /// The UUID that is stored as the sender of the guest's hexes.
    public var peer: PeerID
    /// The name of the guest, with its IP address. Text of a guest: clean it before display.
    public var name: String
    public var files: Int
    /// Total bytes of the files.
    public var size: Int64
    public var at: Timestamp

    public init(hex: Int64, peer: PeerID, name: String, files: Int, size: Int64, at: Timestamp) {
        (self.hex, self.peer, self.name, self.files, self.size, self.at) = (hex, peer, name, files, size, at)
    }

    public var label: PeerDisplayName { PeerDisplayName(uuid: peer.description, name: name, alias: nil, trust: "guest") }
}
