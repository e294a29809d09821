public import HexlistJSON
public import HexlistModel

/// The state of a transfer.
public enum TransferStage: String, JSONWord, Sendable {
    case waiting, running
    /// Waiting after repeated failures of its source.
    case paused
    case done, failed, cancelled
}

/// A transfer of a file to this machine.
public struct TransferView: JSONShape, Sendable, Equatable {
    public var id: Int64
    /// The hex with the link, which may be deleted.
    public var hex: Int64?
    public var url: String
    public var peer: PeerID
    @Inlined public var tag: PeerSummary?
    /// The rclone remote it is fetched from; `peer` is this machine then.
    public var service: String?
    /// The name of the file. Derived from text of a peer.
    public var file: String
    public var folder: String
    public var state: ForwardCompatibleEnum<TransferStage>
    /// `turn`, `peer`, `link`, `disk` or `source`; `nil` if it does not wait.
    public var waitingFor: String?
    /// When it is retried.
    public var until: Timestamp?
    /// Why it failed last: a code, and a message for people.
    public var reason: String?
    public var message: String?
    public var bytes: Int64
    /// Bytes; `nil` if not known yet.
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

/// The body of `POST /v1/transfers`: fetches the files of a hex, or a file or folder of a service.
public struct TransferRequest: JSONShape, Sendable, Equatable {
    public var hex: Int64?
    /// Numbers of its links, from 1; `nil` for all, and those of the hexes inside, each into a folder of its name.
    public var links: [Int]?
    /// Instead of a hex: the name of a service, and the path of a file or folder in it.
    public var service: String?
    public var path: String?
    /// The absolute path of the destination folder; required unless `cache` or `keep` is set.
    public var to: String?
    /// Whether to fetch into the cache, or to keep the files until the hex is deleted.
    public var cache: Bool?
    public var keep: Bool?
    /// The umask of the caller; defaults to 18 (022).
    public var umask: Int?
    /// Whether to retry at once despite back-off.
    public var force: Bool?
    /// With `service`: seconds to wait for a peer that is away before its folder is listed.
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
    /// The first and last id of the new transfers, which are consecutive; if none is new, of the existing ones.
    public var first: Int64?
    public var last: Int64?
    /// Number of files already being transferred into that folder.
    @EmptyIfMissing public var known: Int
    /// Number of links that do not point to a file of a peer.
    @EmptyIfMissing public var passedOver: Int
    /// Number of files already in the destination, with the same name, size and time; and of entries that cannot be fetched.
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

/// Totals of several transfers.
public struct TransferSummary: JSONShape, Sendable, Equatable {
    public var done = 0
    public var failed = 0
    public var cancelled = 0
    public var running = 0
    /// Number of transfers that wait for a slot, or will continue in a moment.
    public var soon = 0
    /// Number of transfers that wait for a peer, the connection to it, disk space, or a retry.
    public var waiting = 0
    public var bytes: Int64 = 0
    public var size: Int64 = 0

    public init() {}

    /// Whether no transfer is running or about to run.
    public var isQuiet: Bool { running + soon == 0 }
}
