public import HexlistJSON
public import HexlistModel

/// A group of peers.
public struct GroupView: JSONShape, Sendable, Equatable {
    /// The name, without `@`.
    public var name: String
    public var peers: [GroupMember]

    public init(name: String, peers: [GroupMember]) {
        self.name = name
        self.peers = peers
    }
}

public struct GroupMember: JSONShape, Sendable, Equatable {
    public var uuid: PeerID
    @InlinedMembers public var tag: PeerSummary?

    public init(uuid: PeerID, tag: PeerSummary?) {
        self.uuid = uuid
        self.tag = tag
    }

    public var label: PeerDisplayName { PeerDisplayName(uuid, tag) }
}

/// The body of `POST /v1/groups/{group}/add` and `POST /v1/groups/{group}/remove`.
public struct GroupPeersRequest: JSONShape, Sendable, Equatable {
    /// PEER arguments, at most `LocalAPI.pageLimit` of them.
    public var peers: [String]

    private enum CodingKeys: String, RequestKey {
        case peers
    }

    public init(peers: [String]) { self.peers = peers }
}
