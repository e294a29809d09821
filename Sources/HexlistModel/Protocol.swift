/// What a receiver did with a numbered frame (Docs/Protocol.md, "Delivery").
public enum ReceiptStatus: String, Sendable, CaseIterable {
    /// In the inbox, committed with fsync.
    case stored
    /// Stored out of the inbox until its sender is trusted, committed with fsync.
    case held
    /// It was there already; `of` says where.
    case duplicate
}

/// Why a numbered frame was refused.
public enum RefusalCode: String, Sendable, CaseIterable {
    case malformed, missingObject, unsupportedObject, unsupportedOperation, tooLarge, tooManyLinks, blocked
    case notAccepting, quotaExceeded, storageFull, `internal`

    /// A temporary refusal is tried again after `retryAfter` seconds.
    public var isTemporary: Bool {
        switch self {
        case .malformed, .missingObject, .unsupportedObject, .unsupportedOperation, .tooLarge, .tooManyLinks, .blocked: false
        case .notAccepting, .quotaExceeded, .storageFull, .internal: true
        }
    }
}

/// The code of a `Bye`: why a session ends.
public enum ByeCode: String, Sendable, CaseIterable {
    case frameLength, helloTimeout, `self`, conflict, identityMismatch, protocolMismatch, duplicateSession, idle, silent
    case tooManyErrors, sequenceFault, receiptFault, receiptTimeout, limit, blocked, shutdown
}

public enum Trust: String, Sendable, CaseIterable {
    case stranger, trusted, blocked
}

/// What is done with a stranger's hexes.
public enum ReceivePolicy: String, Sendable, CaseIterable {
    /// Stored out of the inbox, within a quota, until the sender is trusted.
    case held
    /// Taken into the inbox, within the same quota a day.
    case everyone
    /// Refused `notAccepting`.
    case trusted
}

/// The bounds and constants the protocol itself fixes (Docs/Protocol.md); what a user may set is configuration.
public enum ProtocolLimits {
    public static let version = 1
    public static let appVersion = "1.0.0"
    public static let serviceType = "_hexlist._tcp"
    public static let defaultPort = 24391
    public static let alpn = "hexlist/1"
    /// Links in one hex.
    public static let links = 5_000
    /// Bytes of UTF-8 in one string of a wrapper or hex.
    public static let stringBytes = 64 << 10
    /// Bytes of UTF-8 that are kept of what a peer says besides hexes: the rest is cut off when it is decoded. Of a text for a person
    /// (`message`), of its name, and of any other word: a version, a feature, a step of a pairing.
    public static let messageBytes = 512
    public static let nameBytes = 256
    public static let wordBytes = 64
    /// Elements read of a list in a Hello.
    public static let helloElements = 64
    /// Levels of `{` and `[`.
    public static let nesting = 64
    /// Bytes of the first frame on TLS.
    public static let firstFrameBytes = 8 << 10
    public static let trustedFrameBytes = 1 << 20
    public static let strangerFrameBytes = 64 << 10
    /// So that the first byte of a frame is always 0.
    public static let largestFrameBytes = (16 << 20) - 1
    public static let windowFrames = 1_024
    public static let windowFramesRange = 1...65_536
    public static let windowBytes = 8 << 20
    /// Weight of what may wait for the store (`InboundHex.weight`): of one session, of all strangers together, of all sessions together.
    public static let sessionWeight = 16 << 20
    public static let strangersWeight = 16 << 20
    public static let allSessionsWeight = 64 << 20
    /// Of a trusted peer so much may wait whatever the others have waiting: some hexes a transaction, so that it is never shut out.
    public static let peerWeight = 256 << 10
    /// Rows, hexes and links together, that one batch writes, at most; more only where a single hex has more. A transaction takes
    /// four such batches (`WriteQueue`), so that nobody waits for those of all sessions together.
    public static let batchRows = 4_096
    /// The 16th `malformed` frame ends a session.
    public static let strikes = 16
    public static let strangerFramesPerSecond = 20
    /// Of a stranger's new session, at once.
    public static let strangerFirstFrames = 5
    public static let retryAfterRange = 5...3_600
}
