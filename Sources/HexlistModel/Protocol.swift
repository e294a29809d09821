/// The result of a numbered frame at its receiver (Docs/Protocol.md, "Delivery").
public enum ReceiptStatus: String, Sendable, CaseIterable {
    /// In the inbox, committed with fsync.
    case stored
    /// Stored outside the inbox until the sender is trusted, committed with fsync.
    case held
    /// Already there; the receipt's `of` says where.
    case duplicate
}

/// The reason why a numbered frame was refused.
public enum RefusalCode: String, Sendable, CaseIterable {
    case malformed, missingObject, unsupportedObject, unsupportedOperation, tooLarge, tooManyLinks, blocked
    case notAccepting, quotaExceeded, storageFull, `internal`

    /// Whether the sender tries again, after `retryAfter` seconds.
    public var isTemporary: Bool {
        switch self {
        case .malformed, .missingObject, .unsupportedObject, .unsupportedOperation, .tooLarge, .tooManyLinks, .blocked: false
        case .notAccepting, .quotaExceeded, .storageFull, .internal: true
        }
    }
}

/// The code of a `Bye`: the reason why a session ends.
public enum ByeCode: String, Sendable, CaseIterable {
    case frameLength, helloTimeout, `self`, conflict, identityMismatch, protocolMismatch, duplicateSession, idle, silent
    case tooManyErrors, sequenceFault, receiptFault, receiptTimeout, limit, blocked, shutdown
}

public enum Trust: String, Sendable, CaseIterable {
    case stranger, trusted, blocked
}

/// The policy for hexes of strangers.
public enum ReceivePolicy: String, Sendable, CaseIterable {
    /// Stored outside the inbox, within a quota, until the sender is trusted.
    case held
    /// Taken into the inbox, within the same quota per day.
    case everyone
    /// Refused with `notAccepting`.
    case trusted
}

/// Bounds and constants that the protocol itself fixes (Docs/Protocol.md). What a user may set is in the configuration.
public enum ProtocolLimits {
    public static let version = 1
    public static let appVersion = "1.0.0"
    public static let serviceType = "_hexlist._tcp"
    public static let defaultPort = 24391
    public static let alpn = "hexlist/1"
    /// The ALPN name of a connection on which files are fetched, on the same port.
    public static let filesALPN = "hexlist-files/1"
    /// The ALPN name of a connection that its dialer serves: files are fetched by who accepted it, which asked for it on a session.
    public static let filesServeALPN = "hexlist-files-serve/1"
    /// The name in a Hello's `features` of a peer that hands out files. Only such a peer is dialled with `filesALPN`.
    public static let filesFeature = "files"
    /// The most links in one hex, with those of the hexes inside it.
    public static let links = 5_000
    /// The most hexes inside one, at all levels: as many as links, for an empty one costs a row too.
    public static let children = 5_000
    /// The most levels of hexes: a hex, those inside it, those inside these.
    public static let levels = 8
    /// The name in a Hello's `features` of a peer that reads `children` of a hex. A peer without it gets the same bytes.
    public static let treeFeature = "tree"
    /// The most bytes of UTF-8 in one string of a wrapper or hex.
    public static let stringBytes = 64 << 10
    /// The most bytes of UTF-8 kept of a peer's texts besides hexes; the decoder cuts off the rest. `messageBytes` is for a text for people
    /// (`message`), `nameBytes` for its name, `wordBytes` for any other word: a version, a feature, a step of a pairing.
    public static let messageBytes = 512
    public static let nameBytes = 256
    public static let wordBytes = 64
    /// The most elements read of a list in a `Hello`.
    public static let helloElements = 64
    /// The most nested `{` and `[`.
    public static let nesting = 64
    /// The most bytes of the first frame on TLS.
    public static let firstFrameBytes = 8 << 10
    public static let trustedFrameBytes = 1 << 20
    public static let strangerFrameBytes = 64 << 10
    /// The most bytes of any frame, so that the first byte of a frame's length is always 0.
    public static let largestFrameBytes = (16 << 20) - 1
    /// The most bytes that a wrapper adds to the hex in it.
    public static let wrapperBytes = 256
    public static let windowFrames = 1_024
    public static let windowFramesRange = 1...65_536
    public static let windowBytes = 8 << 20
    /// The most weight that may wait for the store (`IncomingHex.weight`): of one session, of all strangers, of all sessions.
    public static let sessionWeight = 16 << 20
    public static let strangersWeight = 16 << 20
    public static let allSessionsWeight = 64 << 20
    /// The weight that may wait for a trusted peer whatever waits for others: a few hexes per transaction, so it is never shut out.
    public static let peerWeight = 256 << 10
    /// The most rows, hexes and links together, that one batch writes; more only if a single hex has more. A transaction takes four such
    /// batches (`WriteQueue`), so that no session waits for the rows of all the others.
    public static let batchRows = 4_096
    /// The number of `malformed` frames after which a session ends.
    public static let strikes = 16
    public static let strangerFramesPerSecond = 20
    /// Frames a new session of a stranger may send at once.
    public static let strangerFirstFrames = 5
    public static let retryAfterRange = 5...3_600
}
