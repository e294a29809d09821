/// The receiver's result for a numbered frame (Docs/Protocol.md, "Delivery").
public enum ReceiptStatus: String, Sendable, CaseIterable {
    /// Durable in the inbox.
    case stored
    /// Durable outside the inbox, until the sender is trusted.
    case held
    /// Received before; the receipt's `of` has the earlier status.
    case duplicate
}

/// The reason why a numbered frame was refused.
public enum RefusalCode: String, Sendable, CaseIterable {
    case malformed, missingObject, unsupportedObject, unsupportedOperation, tooLarge, tooManyLinks, blocked
    case notAccepting, quotaExceeded, storageFull, `internal`

    /// Whether the sender should retry, after `retryAfter` seconds.
    public var isTemporary: Bool {
        switch self {
        case .malformed, .missingObject, .unsupportedObject, .unsupportedOperation, .tooLarge, .tooManyLinks, .blocked: false
        case .notAccepting, .quotaExceeded, .storageFull, .internal: true
        }
    }
}

/// The reason for the end of a session, the code of a `Bye`.
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
    /// Stored in the inbox, within the same quota per day.
    case everyone
    /// Refused with `notAccepting`.
    case trusted
}

/// Constants and limits of the protocol (Docs/Protocol.md). They are not configurable.
public enum ProtocolLimits {
    public static let version = 1
    public static let appVersion = "1.0.0"
    public static let serviceType = "_hexlist._tcp"
    public static let defaultPort = 24391
    public static let alpn = "hexlist/1"
    /// ALPN protocol of a connection on which the dialer fetches files, on the same port.
    public static let filesALPN = "hexlist-files/1"
    /// ALPN protocol of a connection on which the dialer serves files, at the request of the acceptor.
    public static let filesServeALPN = "hexlist-files-serve/1"
    /// Feature of a `Hello`: the peer serves files. Only such peers are dialled with `filesALPN`.
    public static let filesFeature = "files"
    /// Maximum links of a hex, including its inner hexes.
    public static let links = 5_000
    /// Maximum inner hexes at all levels. The same number as links, because an empty hex also takes a row.
    public static let children = 5_000
    /// Maximum levels of inner hexes; the top hex is level 1.
    public static let levels = 8
    /// Feature of a `Hello`: the peer supports `children` of a hex. Peers without it get the same bytes.
    public static let treeFeature = "tree"
    /// Maximum UTF-8 bytes of one string of a wrapper or hex.
    public static let stringBytes = 64 << 10
    /// Maximum UTF-8 bytes of a peer's texts outside hexes; the decoder truncates longer ones. `messageBytes` is for texts to the user
    /// (`message`), `nameBytes` for names, `wordBytes` for other words such as versions and features.
    public static let messageBytes = 512
    public static let nameBytes = 256
    public static let wordBytes = 64
    /// Maximum elements read of a list in a `Hello`.
    public static let helloElements = 64
    /// Maximum nesting depth of `{` and `[`.
    public static let nesting = 64
    /// Maximum bytes of the first frame on TLS.
    public static let firstFrameBytes = 8 << 10
    public static let trustedFrameBytes = 1 << 20
    public static let strangerFrameBytes = 64 << 10
    /// Maximum bytes of any frame. The first byte of the length prefix is therefore always 0.
    public static let largestFrameBytes = (16 << 20) - 1
    /// Maximum overhead in bytes of a wrapper around its hex.
    public static let wrapperBytes = 256
    public static let windowFrames = 1_024
    public static let windowFramesRange = 1...65_536
    public static let windowBytes = 8 << 20
    /// Maximum weight of hexes waiting for the store (`IncomingHex.weight`): per session, of all strangers, of all sessions.
    public static let sessionWeight = 16 << 20
    public static let strangersWeight = 16 << 20
    public static let allSessionsWeight = 64 << 20
    /// Weight reserved for each trusted peer, about a few hexes per transaction, so that others cannot lock it out.
    public static let peerWeight = 256 << 10
    /// Maximum rows (hexes and links) of one batch, unless a single hex has more. A transaction combines four batches (`WriteQueue`), so
    /// that no session waits for the rows of all others.
    public static let batchRows = 4_096
    /// Maximum `malformed` frames before a session is closed.
    public static let strikes = 16
    public static let strangerFramesPerSecond = 20
    /// Maximum burst of frames in a new session of a stranger.
    public static let strangerFirstFrames = 5
    public static let retryAfterRange = 5...3_600
}
