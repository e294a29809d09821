public import HexlistJSON
public import HexlistModel

/// Numbers of hexes and links of a collection, at all levels.
public struct CollectionSize: JSONShape, Sendable, Equatable {
    public var hexes: Int
    public var links: Int

    public init(hexes: Int, links: Int) {
        self.hexes = hexes
        self.links = links
    }
}

/// Another machine of the user, with which this machine keeps one My Hexlist.
public struct OwnMachineView: JSONShape, Sendable, Equatable {
    /// The state of the exchange.
    public enum State: String, Sendable, CaseIterable {
        /// There is no session with the machine.
        case away
        /// The user has not added this machine there yet, or has removed it there, if changes were received before.
        case waiting
        /// The two collections are being merged into one.
        case joining
        /// Changes are being exchanged.
        case exchanging
        /// Both machines have all changes of each other.
        case inSync
        /// The clocks differ by more than 12 hours, or a change there is dated more than 100 years ahead, so nothing is exchanged.
        case clock
        /// The collections differ although all changes were exchanged.
        case differs
        /// My Hexlist has the maximum of rows, so nothing is received.
        case full
        /// The disk has too little free space, so nothing is received.
        case disk
        /// The last exchange failed. It is repeated.
        case failed
        /// The Hexlist of the machine is too old.
        case unsupported
        /// The exchange was ended on this machine. Only the reply to the removal has this state.
        case removed
    }

    public var uuid: PeerID
    @InlinedMembers public var tag: PeerSummary?
    public var state: ForwardCompatibleEnum<State>
    /// The reason for the state, as a sentence; `nil` for states without a problem. May contain text of a peer: clean it before display.
    public var message: String?
    public var addedAt: Timestamp
    /// The time of the last changes that were received from the machine; `nil` if there were none.
    public var receivedAt: Timestamp?
    /// The time at which the machine was last online.
    public var lastSeen: Timestamp?
    /// Number of changed hexes and links that the machine has not received yet.
    @OmittedIfEmpty public var behind: Int

    public init(
        uuid: PeerID, tag: PeerSummary?, state: State, message: String? = nil, addedAt: Timestamp, receivedAt: Timestamp? = nil,
        lastSeen: Timestamp? = nil, behind: Int = 0
    ) {
        self.uuid = uuid
        self.tag = tag
        self.state = ForwardCompatibleEnum(state)
        self.message = message
        self.addedAt = addedAt
        self.receivedAt = receivedAt
        self.lastSeen = lastSeen
        self.behind = behind
    }

    public var label: PeerDisplayName { PeerDisplayName(uuid, tag) }
}

/// The data for the question before a peer becomes an own machine. Reading it changes nothing.
public struct OwnMachinePreview: JSONShape, Sendable, Equatable {
    public var uuid: PeerID
    @InlinedMembers public var tag: PeerSummary?
    /// Whether the peer is an own machine already.
    public var own: Bool
    /// Whether the peer answered.
    public var online: Bool
    /// Whether the peer trusts this machine; `nil` if there is no session with it.
    public var trustedThere: Bool?
    /// Whether this machine was added on the peer; `nil` if the peer did not answer.
    public var confirmed: Bool?
    /// Whether both machines have the same collection already, because it was exchanged before; `nil` if unknown.
    public var same: Bool?
    /// My Hexlist of this machine.
    public var here: CollectionSize
    /// My Hexlist of the peer. Known once this machine was added there.
    public var there: CollectionSize?
    /// The reason why nothing would be exchanged at the moment, as a sentence; `nil` if there is none. May contain text of the peer: clean
    /// it before display.
    public var problem: String?

    public init(
        uuid: PeerID, tag: PeerSummary?, own: Bool, online: Bool, trustedThere: Bool? = nil, confirmed: Bool? = nil, same: Bool? = nil,
        here: CollectionSize, there: CollectionSize? = nil, problem: String? = nil
    ) {
        self.uuid = uuid
        self.tag = tag
        self.own = own
        self.online = online
        self.trustedThere = trustedThere
        self.confirmed = confirmed
        self.same = same
        self.here = here
        self.there = there
        self.problem = problem
    }

    public var label: PeerDisplayName { PeerDisplayName(uuid, tag) }
}
