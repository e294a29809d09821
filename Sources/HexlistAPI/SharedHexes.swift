public import HexlistJSON
public import HexlistModel

/// The access of a member to a shared hex.
public enum ShareAccess: String, Sendable, CaseIterable {
    case read, write
    /// The hex was shared with the peer before, and is not any more.
    case none
}

/// A hex of My Hexlist that the user shares with others, or that another person shares with the user.
public struct SharedHexView: JSONShape, Sendable, Equatable {
    /// The UUID of the list that the hex shows. It is the same on all machines.
    public var list: String
    /// The id of the hex. `nil` on a machine that did not join it itself, until the first contents have arrived there.
    public var hex: Int64?
    /// The subject of the hex. May contain text of a peer: clean it before display.
    public var title: String
    /// Whether the user shares it. If not, it belongs to the person whose machines are in `peers`.
    public var owned: Bool
    /// The access of the user.
    public var access: ForwardCompatibleEnum<ShareAccess>
    /// Numbers of hexes and links inside.
    public var hexes: Int
    public var links: Int
    /// The members of an owned hex, also former ones; of another one the machines of its owner that the user has confirmed.
    public var peers: [Peer]
    /// Whether the user owns the hex, and changes of members may not be received because it has nearly the maximum of hexes and links,
    /// deleted ones included. Renewing it leaves out the deleted ones.
    @OmittedIfEmpty public var needsRenewal: Bool
    /// Number of links that others added and that the user has not seen; 1 000 stands for 1 000 or more.
    @OmittedIfEmpty public var new: Int

    /// A member of an owned hex, or a machine of the owner.
    public struct Peer: JSONShape, Sendable, Equatable {
        public enum State: String, Sendable, CaseIterable {
            /// The peer has not joined yet.
            case offered
            case joined
            /// The peer has deleted the hex.
            case left
        }

        public var uuid: PeerID
        @InlinedMembers public var tag: PeerSummary?
        public var access: ForwardCompatibleEnum<ShareAccess>
        public var state: ForwardCompatibleEnum<State>
        /// Whether there is a session with the peer.
        public var online: Bool
        /// Whether this machine does not trust the peer, so that only another machine of the user can exchange the hex with it.
        @OmittedIfEmpty public var indirect: Bool
        /// The time of the last changes that were received from the peer; `nil` if there were none.
        public var receivedAt: Timestamp?
        /// Number of changed hexes and links that the peer has not received yet.
        @OmittedIfEmpty public var behind: Int
        /// The reason for which nothing is exchanged, as a sentence; `nil` if there is none.
        public var message: String?

        public init(
            uuid: PeerID, tag: PeerSummary?, access: ShareAccess, state: State, online: Bool, indirect: Bool = false,
            receivedAt: Timestamp? = nil, behind: Int = 0,
            message: String? = nil
        ) {
            self.uuid = uuid
            self.tag = tag
            self.access = ForwardCompatibleEnum(access)
            self.state = ForwardCompatibleEnum(state)
            self.online = online
            self.indirect = indirect
            self.receivedAt = receivedAt
            self.behind = behind
            self.message = message
        }

        public var label: PeerDisplayName { PeerDisplayName(uuid, tag) }
    }

    public init(
        list: String, hex: Int64?, title: String, owned: Bool, access: ShareAccess, hexes: Int, links: Int, peers: [Peer],
        needsRenewal: Bool = false, new: Int = 0
    ) {
        self.list = list
        self.hex = hex
        self.title = title
        self.owned = owned
        self.access = ForwardCompatibleEnum(access)
        self.hexes = hexes
        self.links = links
        self.peers = peers
        self.needsRenewal = needsRenewal
        self.new = new
    }
}

/// The body of `POST /v1/mine/{id}/seen`, which marks the links of a shared hex as seen.
public struct SeenRequest: JSONShape, Sendable, Equatable {
    /// `HexSharingJSON.sequence` of the hex as it was shown, so that links that arrived since then stay new; `nil` for all links.
    public var sequence: Int64?

    private enum CodingKeys: String, RequestKey {
        case sequence
    }

    public init(sequence: Int64? = nil) { self.sequence = sequence }
}

/// The reply to `POST /v1/mine/{id}/renew`.
public struct SharedHexRenewal: JSONShape, Sendable, Equatable {
    /// The hex with its new list. The members have to join it again.
    public var shared: SharedHexView
    /// The number of deleted hexes and links that were left out.
    public var removed: Int

    public init(shared: SharedHexView, removed: Int) {
        self.shared = shared
        self.removed = removed
    }
}

/// A hex that a peer offers to share. The user has not joined it, or has joined it from another peer (`further`).
public struct SharedHexOffer: JSONShape, Sendable, Equatable {
    /// The number by which the user joins or declines the offer. It is valid on this machine only.
    public var number: Int64
    /// The UUID of the list. It is the same on all machines.
    public var list: String
    public var uuid: PeerID
    @InlinedMembers public var tag: PeerSummary?
    /// May contain any text of the peer: clean it before display.
    public var title: String
    /// `read` or `write`.
    public var access: ForwardCompatibleEnum<ShareAccess>
    /// Numbers of hexes and links inside, at all levels, as the peer reports them.
    public var hexes: Int
    public var links: Int
    /// The time of the first offer.
    public var at: Timestamp
    /// Whether the list is joined already from another peer. The peer of this offer claims to be a further machine of the owner; ask the
    /// user.
    @OmittedIfEmpty public var further: Bool
    /// Whether the user has declined the offer, or has left the hex. It can still be joined.
    @OmittedIfEmpty public var declined: Bool

    public init(
        number: Int64, list: String, uuid: PeerID, tag: PeerSummary?, title: String, access: ShareAccess, hexes: Int, links: Int,
        at: Timestamp, further: Bool = false, declined: Bool = false
    ) {
        self.number = number
        self.list = list
        self.uuid = uuid
        self.tag = tag
        self.title = title
        self.access = ForwardCompatibleEnum(access)
        self.hexes = hexes
        self.links = links
        self.at = at
        self.further = further
        self.declined = declined
    }

    public var label: PeerDisplayName { PeerDisplayName(uuid, tag) }
}

/// All shared hexes, and the offers of others.
public struct SharedHexes: JSONShape, Sendable, Equatable {
    public var shared: [SharedHexView]
    public var offers: [SharedHexOffer]

    public init(shared: [SharedHexView], offers: [SharedHexOffer]) {
        self.shared = shared
        self.offers = offers
    }

    /// The offers that the user has not declined.
    public var openOffers: [SharedHexOffer] { offers.filter { !$0.declined } }
}

/// The body of `PUT /v1/mine/{id}/share`: a change of the members of a shared hex.
public struct ShareHexRequest: JSONShape, Sendable, Equatable {
    /// 1 to 100 members. Peers that are not named keep their access.
    public var with: [Member]

    public struct Member: JSONShape, Sendable, Equatable {
        /// A UUID, an alias, or the beginning of a UUID.
        public var peer: String
        public var access: ForwardCompatibleEnum<ShareAccess>

        private enum CodingKeys: String, RequestKey {
            case peer, access
        }

        public init(peer: String, access: ShareAccess) {
            self.peer = peer
            self.access = ForwardCompatibleEnum(access)
        }
    }

    private enum CodingKeys: String, RequestKey {
        case with
    }

    public init(with members: [Member]) { with = members }
}
