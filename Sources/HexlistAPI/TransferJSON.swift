public import HexlistJSON
public import HexlistModel

/// The state of a transfer.
public enum TransferStage: String, JSONWord, Sendable {
    case waiting, running
    /// The source has failed repeatedly, so the transfer pauses before its next attempt.
    case paused
    case done, failed, cancelled
}

/// A transfer of a file to this machine.
public struct TransferView: JSONShape, Sendable, Equatable {
    public var id: Int64
    /// The id of the hex that has the link to the file. The hex may be deleted.
    public var hex: Int64?
    public var url: String
    public var peer: PeerID
    @InlinedMembers public var tag: PeerSummary?
    /// The rclone remote from which the file is fetched; `peer` is then this machine.
    public var service: String?
    /// The name of the file. Derived from text of a peer: clean it before display.
    public var file: String
    public var folder: String
    public var state: ForwardCompatibleEnum<TransferStage>
    /// The condition that the transfer waits for: `turn` (a free slot), `peer` (it is away), `link` (the connection was lost), `disk` (it
    /// is full) or `source` (it failed, and is retried soon); `nil` if it does not wait.
    public var waitingFor: String?
    /// The time of the next attempt.
    public var until: Timestamp?
    /// The reason for the last failure: a code, and a message for the user.
    public var reason: String?
    public var message: String?
    public var bytes: Int64
    /// Size of the file in bytes; `nil` if not known yet.
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

/// The body of `POST /v1/transfers`: the files of a hex to fetch, or a file or folder of a service.
public struct TransferRequest: JSONShape, Sendable, Equatable {
    public var hex: Int64?
    /// The numbers of the hex's links to fetch, from 1; `nil` for all links, also those of inner hexes, whose files get into subfolders.
    public var links: [Int]?
    /// Whether to create a folder named after the hex for its files, if more than one of them is outside of its inner hexes.
    public var folder: Bool?
    /// The name of a service, and the path of a file or folder in it; used instead of a hex.
    public var service: String?
    public var path: String?
    /// The absolute path of the destination folder; required unless `cache` or `keep` is set.
    public var to: String?
    /// Whether to fetch into the cache (`cache`), and whether the files are to stay until the hex is deleted (`keep`).
    public var cache: Bool?
    public var keep: Bool?
    /// The umask for new files and folders, usually that of the caller, as a decimal number; defaults to 18 (octal 022).
    public var umask: Int?
    /// Whether to start immediately, despite a back-off after earlier failures.
    public var force: Bool?
    /// Maximum seconds to wait for a peer that is away, before its folder is listed; used with `service` only.
    public var timeout: Double?

    private enum CodingKeys: String, RequestKey {
        case hex, links, folder, service, path, to, cache, keep, umask, force, timeout
    }

    public init(
        hex: Int64, links: [Int]? = nil, folder: Bool? = nil, to: String? = nil, cache: Bool? = nil, keep: Bool? = nil,
        umask: Int? = nil, force: Bool? = nil
    ) {
        self.hex = hex
        self.links = links
        self.folder = folder
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

/// The reply to `POST /v1/transfers`: the new transfers, and the files for which there is none.
public struct TransferStartResult: JSONShape, Sendable, Equatable {
    /// The first and last id of the new transfers, which are consecutive. If no transfer is new, the ids of existing transfers; `nil` if
    /// there are none of them either.
    public var first: Int64?
    public var last: Int64?
    /// Number of files that an existing transfer is fetching into the same folder.
    @EmptyIfMissing public var known: Int
    /// Number of links that do not point to a file of a peer.
    @EmptyIfMissing public var passedOver: Int
    /// Number of files that are in the destination already, with the same name, size and modification time; and number of entries that
    /// cannot be fetched.
    @OmittedIfEmpty public var present: Int
    @OmittedIfEmpty public var leftOut: Int

    public init(first: Int64?, last: Int64?, known: Int, passedOver: Int, present: Int = 0, leftOut: Int = 0) {
        self.first = first
        self.last = last
        self.known = known
        self.passedOver = passedOver
        self.present = present
        self.leftOut = leftOut
    }
}

/// The numbers of several transfers by state, and their total bytes.
public struct TransferSummary: JSONShape, Sendable, Equatable {
    public var done = 0
    public var failed = 0
    public var cancelled = 0
    public var running = 0
    /// Number of transfers that will run soon, because they wait only for a free slot or for the end of a short pause.
    public var soon = 0
    /// Number of transfers that wait for a peer, the connection to it, disk space, or a retry.
    public var waiting = 0
    public var bytes: Int64 = 0
    public var size: Int64 = 0

    public init() {}

    /// Whether no transfer is running or about to run.
    public var isQuiet: Bool { running + soon == 0 }
}
