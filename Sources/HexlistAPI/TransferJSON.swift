public import HexlistJSON
public import HexlistModel

/// The state of a transfer, for people and scripts.
public enum TransferStage: String, JSONWord, Sendable {
    case waiting, running
    /// It failed repeatedly by its source's own fault.
    case paused
    case done, failed, cancelled
}

/// A file that this machine fetches.
public struct TransferView: JSONShape, Sendable, Equatable {
    public var id: Int64
    /// The hex with the link; it may be deleted since.
    public var hex: Int64?
    public var url: String
    public var peer: PeerID
    @Among public var tag: PeerSummary?
    /// The remote it is fetched from; then `peer` is this machine.
    public var service: String?
    /// The name of the file: the one it has, or is to have. Made of text of a peer.
    public var file: String
    public var folder: String
    public var state: ForwardCompatibleEnum<TransferStage>
    /// `turn`, `peer`, `link`, `disk` or `source`; `nil` where nothing is waited for.
    public var waitingFor: String?
    /// The end of a pause.
    public var until: Timestamp?
    /// Why it failed, or failed last: a word, and for people.
    public var reason: String?
    public var message: String?
    public var bytes: Int64
    /// `nil` where it is not known yet.
    public var size: Int64?
    public var createdAt: Timestamp
    public var endedAt: Timestamp?

    public init(
        id: Int64, hex: Int64?, url: String, peer: PeerID, file: String, folder: String, state: TransferStage, waitingFor: String?,
        until: Timestamp?, reason: String?, message: String?, bytes: Int64, size: Int64?, createdAt: Timestamp, endedAt: Timestamp?
    ) {
        self.id = id
        self.hex = hex
        self.url = url
        self.peer = peer
        self.file = file
        self.folder = folder
        self.state = ForwardCompatibleEnum(state)
        self.waitingFor = waitingFor
        self.until = until
        self.reason = reason
        self.message = message
        self.bytes = bytes
        self.size = size
        self.createdAt = createdAt
        self.endedAt = endedAt
    }

    public var label: PeerDisplayName { PeerDisplayName(peer, tag) }
}

/// The body of `POST /v1/transfers`: fetches the files that the links of a hex point to, or a file or folder of a service.
public struct TransferRequest: JSONShape, Sendable, Equatable {
    public var hex: Int64?
    /// Numbers of its own links, from 1; `nil` for all of them, and those of the hexes inside it, each of these into a folder of its name.
    public var links: [Int]?
    /// Instead of a hex: a service by its name, and the path of a file or folder in it.
    public var service: String?
    public var path: String?
    /// The absolute path of the folder the files go to; where it is missing, `cache` or `keep` is there.
    public var to: String?
    /// Whether they go into the pool, or are kept until the hex is deleted.
    public var cache: Bool?
    public var keep: Bool?
    /// The umask of whoever asks; 18 (022) where it is missing.
    public var umask: Int?
    /// Starts again at once what failed repeatedly.
    public var force: Bool?
    /// Seconds to wait for a peer that is away before its folder can be read; with `service`.
    public var timeout: Double?

    private enum CodingKeys: String, RequestKey {
        case hex, links, service, path, to, cache, keep, umask, force, timeout
    }

    public init(
        hex: Int64, links: [Int]? = nil, to: String? = nil, cache: Bool? = nil, keep: Bool? = nil, umask: Int? = nil, force: Bool? = nil
    ) {
        self.hex = hex
        self.links = links
        self.to = to
        self.cache = cache
        self.keep = keep
        self.umask = umask
        self.force = force
    }

    public init(service: String, path: String, to: String?, umask: Int? = nil, force: Bool? = nil, timeout: Double? = nil) {
        self.service = service
        self.path = path
        self.to = to
        self.umask = umask
        self.force = force
        self.timeout = timeout
    }
}

/// The reply to `POST /v1/transfers`.
public struct TransferStart: JSONShape, Sendable, Equatable {
    /// The first and the last id of the new transfers, which are consecutive; where there is no new one, of those that were known.
    public var first: Int64?
    public var last: Int64?
    /// Files that were on their way into that folder already.
    @EmptyIfMissing public var known: Int
    /// Links that point to no file of a peer.
    @EmptyIfMissing public var passedOver: Int
    /// Files of a folder that are in the destination already, with the same name, size and time; and entries that cannot be fetched.
    @LeftOutEmpty public var present: Int
    @LeftOutEmpty public var leftOut: Int

    public init(first: Int64?, last: Int64?, known: Int, passedOver: Int, present: Int = 0, leftOut: Int = 0) {
        self.first = first
        self.last = last
        self.known = known
        self.passedOver = passedOver
        self.present = present
        self.leftOut = leftOut
    }
}

/// How several transfers stand together.
public struct TransferSummary: JSONShape, Sendable, Equatable {
    public var done = 0
    public var failed = 0
    public var cancelled = 0
    public var running = 0
    /// Those that wait for a turn, or go on by themselves within moments.
    public var soon = 0
    /// Those that wait for something else: a peer, the link to it, room, the end of a pause.
    public var waiting = 0
    public var bytes: Int64 = 0
    public var size: Int64 = 0

    public init() {}

    /// Whether nothing is under way, nor will be by itself within moments.
    public var isQuiet: Bool { running + soon == 0 }
}
