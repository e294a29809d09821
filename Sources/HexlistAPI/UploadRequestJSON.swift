public import HexlistJSON
public import HexlistModel

/// A request of a device with LocalSend to send files, which waits for the user's answer.
public struct UploadRequestView: JSONShape, Sendable, Equatable {
    /// Maximum number of `names`.
    public static let nameLimit = 5

    public var id: Int64
    public var peer: PeerID
    @InlinedMembers public var tag: PeerSummary?
    /// Number of files.
    public var files: Int
    /// Total bytes of all files, as announced by the device.
    public var size: Int64
    /// The names of the first files, with their folders; at most `nameLimit`. Derived from text of a peer: clean them before display.
    public var names: [String]
    /// The time at which the request is refused if the user has not answered.
    public var until: Timestamp

    public init(id: Int, peer: PeerID, tag: PeerSummary, files: Int, size: Int64, names: [String], until: Timestamp) {
        self.id = Int64(id)
        self.peer = peer
        self.files = files
        self.size = size
        self.names = names
        self.until = until
        self.tag = tag
    }

    public var label: PeerDisplayName { PeerDisplayName(peer, tag) }
}
