/// The result for a numbered frame that the receiver did not refuse (Docs/Protocol.md, "Delivery").
public enum ReceiptStatus: String, Sendable, CaseIterable {
    /// The hex is stored durably in the inbox.
    case stored
    /// The hex is stored durably outside the inbox, until the receiver's user accepts it.
    case held
    /// The hex was received before. The receipt's `of` states the earlier status.
    case duplicate
}

/// The reason why a numbered frame was refused.
public enum RefusalCode: String, Sendable, CaseIterable {
    case malformed, missingObject, unsupportedObject, unsupportedOperation, tooLarge, tooManyLinks, blocked
    case notAccepting, quotaExceeded, storageFull, `internal`

    /// Whether the sender should send the frame again after `retryAfter` seconds.
    public var isTemporary: Bool {
        switch self {
        case .malformed, .missingObject, .unsupportedObject, .unsupportedOperation, .tooLarge, .tooManyLinks, .blocked: false
        case .notAccepting, .quotaExceeded, .storageFull, .internal: true
        }
    }
}

/// The reason why a session ends, sent as the code of a `Bye`.
public enum ByeCode: String, Sendable, CaseIterable {
    case frameLength, helloTimeout, `self`, conflict, identityMismatch, protocolMismatch, duplicateSession, idle, silent
    case tooManyErrors, sequenceFault, receiptFault, receiptTimeout, limit, blocked, shutdown
}

public enum Trust: String, Sendable, CaseIterable {
    case stranger, trusted, blocked
}

/// The policy for hexes of strangers.
public enum StrangerHexPolicy: String, Sendable, CaseIterable {
    /// Hexes of strangers are stored outside the inbox, limited by a quota, until the user trusts the sender or accepts the hex.
    case held
    /// Hexes of strangers are stored in the inbox. The quotas of `held` limit them per day.
    case everyone
    /// Hexes of strangers are refused with `notAccepting`.
    case trusted
}

/// Constants and limits of the protocol (Docs/Protocol.md). They are not configurable.
public enum ProtocolLimits {
    public static let version = 1
    public static let appVersion = "1.0.0"
    public static let serviceType = "_hexlist._tcp"
    public static let defaultPort = 24391
    public static let alpn = "hexlist/1"
    /// ALPN protocol for connections on which the dialling side fetches files. The port is the same as for `alpn`.
    public static let filesALPN = "hexlist-files/1"
    /// ALPN protocol for connections on which the dialling side serves files, after the accepting side asked for it.
    public static let filesServeALPN = "hexlist-files-serve/1"
    /// Name of the `Hello` feature of peers that serve files. Only these peers are dialled with `filesALPN`.
    public static let filesFeature = "files"
    /// Name of the `Hello` feature of peers that exchange lists. Only these peers are sent `ListNews` and requests for lists.
    public static let listsFeature = "lists"
    /// Maximum links of a hex, including those of its inner hexes.
    public static let links = 5_000
    /// Maximum inner hexes of a hex, at all levels. Equal to the maximum of links, because an empty hex takes a database row like a link.
    public static let children = 5_000
    /// Maximum levels of a hex. The top hex is level 1.
    public static let levels = 8
    /// Name of the `Hello` feature of peers that support inner hexes (`children`). Other peers receive the same JSON, and keep `children`
    /// as an unknown member.
    public static let treeFeature = "tree"
    /// Maximum UTF-8 bytes of one string in a wrapper or hex.
    public static let stringBytes = 64 << 10
    /// Maximum UTF-8 bytes of a peer's texts outside hexes: texts for the user (`message`), names, and other words such as versions and
    /// features. The decoder truncates longer texts.
    public static let messageBytes = 512
    public static let nameBytes = 256
    public static let wordBytes = 64
    /// Length in bytes of a peer's card in base64.
    public static let cardTextBytes = 1_840
    /// Maximum elements of a list in a `Hello`. The decoder ignores further ones.
    public static let helloElements = 64
    /// Maximum nesting depth of JSON objects and arrays in a frame.
    public static let nesting = 64
    /// Maximum bytes of the first frame on a TLS connection.
    public static let firstFrameBytes = 8 << 10
    public static let trustedFrameBytes = 1 << 20
    public static let strangerFrameBytes = 64 << 10
    /// Maximum bytes of any frame. The first byte of the length prefix is therefore always 0.
    public static let largestFrameBytes = (16 << 20) - 1
    /// Maximum bytes that a wrapper adds to its hex.
    public static let wrapperBytes = 256
    public static let windowFrames = 1_024
    public static let windowFramesRange = 1...65_536
    public static let windowBytes = 8 << 20
    /// Maximum total weight (`IncomingHex.weight`) of the hexes that wait to be stored: of one session, of all strangers, of all sessions.
    public static let sessionWeight = 16 << 20
    public static let strangersWeight = 16 << 20
    public static let allSessionsWeight = 64 << 20
    /// Weight of waiting hexes that each trusted peer may have even if `allSessionsWeight` is reached, so that other peers cannot block it.
    /// Enough for a few hexes per transaction.
    public static let peerWeight = 256 << 10
    /// Maximum database rows (hexes and links) of one batch, unless a single hex has more. A transaction combines up to four batches
    /// (`WriteQueue`), so that no session waits for the rows of all others.
    public static let batchRows = 4_096
    /// Maximum number of `malformed` frames before a session is closed.
    public static let strikes = 16
    public static let strangerFramesPerSecond = 20
    /// Maximum number of frames that a stranger may send in a burst at the beginning of a session.
    public static let strangerFirstFrames = 5
    public static let retryAfterRange = 5...3_600
}
