public import HexlistModel

/// The operation of a wrapper (Docs/Protocol.md, "Operations") in its canonical spelling.
public enum Operation: String, Sendable, CaseIterable {
    case hello = "Hello"
    case store = "Store"
    case ack = "Ack"
    case alert = "Alert"
    case ping = "Ping"
    case pong = "Pong"
    case bye = "Bye"
    case pair = "Pair"
    case dialBack = "DialBack"
    case dialedBack = "DialedBack"
    case fileDial = "FileDial"
    case listNews = "ListNews"

    /// The `jmObjectType` of the operation's object; `nil` if the operation has none.
    public var objectType: String? {
        switch self {
        case .hello: "Peer"
        case .store: "Hex"
        case .ack: "Receipt"
        case .pair: "Pairing"
        case .alert, .ping, .pong, .bye, .dialBack, .dialedBack, .fileDial, .listNews: nil
        }
    }

    /// Whether the wrapper's `message` is a token that the peer sends back, and not a text for the user.
    public var hasToken: Bool {
        switch self {
        case .ping, .pong, .dialBack, .dialedBack, .fileDial: true
        case .hello, .store, .ack, .alert, .bye, .pair, .listNews: false
        }
    }

    /// Whether frames of this operation have a sequence number. In frames of other operations, `sequence` is ignored.
    public var isNumbered: Bool {
        switch self {
        // A peer with an older version does not know the last three. It treats them as unknown operations, whose frames have numbers.
        case .store, .ping, .alert, .pair, .dialBack, .dialedBack, .fileDial: true
        case .hello, .ack, .pong, .bye, .listNews: false
        }
    }
}

/// The object of a `Hello`: identity and limits of the sender.
public struct Hello: Sendable, Equatable {
    /// The sender's UUID; `nil` if the value was not a UUID, which ends the session with `identityMismatch`.
    public var uuid: PeerID?
    public var name: String
    /// The boot nonce of the sender's process; `nil` if it was missing or invalid, which ends the session with `identityMismatch`.
    public var boot: BootNonce?
    /// The protocol versions that the sender supports.
    public var protocols: [Int]
    /// The optional features that the sender supports, such as `dialBack`.
    public var features: [String]
    /// Maximum bytes of a frame that the sender accepts.
    public var maxFrameBytes: Int
    /// Maximum number of unacknowledged frames that the sender accepts, 1 … 65 536.
    public var window: Int
    /// The sender's card in base64, as received; `nil` if there is none. It is sent to trusted peers only.
    public var card: String?

    public init(
        uuid: PeerID?, name: String, boot: BootNonce?, protocols: [Int] = [1], features: [String] = [],
        maxFrameBytes: Int = ProtocolLimits.trustedFrameBytes, window: Int = ProtocolLimits.windowFrames, card: String? = nil
    ) {
        self.uuid = uuid
        self.name = name
        self.boot = boot
        self.protocols = protocols
        self.features = features
        self.maxFrameBytes = maxFrameBytes
        self.window = window
        self.card = card
    }
}

/// The refusal of one frame in a receipt.
public struct HexRejection: Sendable, Equatable {
    /// The sequence number of the refused frame.
    public var sequence: Int64
    public var code: RefusalCode
    public var message: String
    /// Seconds after which the sender may retry. Only with temporary refusals.
    public var retryAfter: Int?

    public init(sequence: Int64, code: RefusalCode, message: String = "", retryAfter: Int? = nil) {
        self.sequence = sequence
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }
}

/// The object of an `Ack`: the results of all frames after the last receipt, up to and including the sequence number `through`.
public struct Receipt: Sendable, Equatable {
    public var through: Int64
    /// The result of those frames that are not in `rejected`; `nil` if there are none.
    public var status: ReceiptStatus?
    /// If `status` is `duplicate`, the result that the hex had when it was first received.
    public var of: ReceiptStatus?
    public var rejected: [HexRejection]
    /// The id of the envelope whose frames the receipt acknowledges; `nil` on a session.
    public var envelope: String?

    public init(
        through: Int64, status: ReceiptStatus?, of: ReceiptStatus? = nil, rejected: [HexRejection] = [], envelope: String? = nil
    ) {
        self.through = through
        self.status = status
        self.of = of
        self.rejected = rejected
        self.envelope = envelope
    }
}

/// The object of a `Pair` (Docs/Protocol.md, "Pairing").
public struct Pairing: Sendable, Equatable {
    enum Step: String, CaseIterable { case commit, nonce, reveal, confirm, cancel }

    /// The step as received: `commit`, `nonce`, `reveal`, `confirm`, `cancel`, or a step of a newer version.
    public var step: String
    /// The step; `nil` if this version does not know it.
    var knownStep: Step? { Step(utf8: step.utf8) }
    /// The commitment in base64; empty in other steps.
    public var commitment: String
    /// The sender's nonce in base64; empty in other steps.
    public var nonce: String
    /// The reason of a `cancel`.
    public var message: String

    public init(step: String, commitment: String = "", nonce: String = "", message: String = "") {
        self.step = step
        self.commitment = commitment
        self.nonce = nonce
        self.message = message
    }
}

/// The object of a decoded wrapper.
public enum WrapperObject: Sendable {
    case none
    case hex(HexContent)
    case hello(Hello)
    case receipt(Receipt)
    case pairing(Pairing)
}

/// A repair that the tolerant decoder made: the member that was repaired, and the rule that was applied (Docs/Protocol.md, "Tolerant
/// decoding"), such as `T2`.
public struct Repair: Sendable, Equatable {
    /// The path of the member, such as `links[0].service` or `versionID`.
    public var path: String
    public var rule: String

    public init(path: String, rule: String) {
        self.path = path
        self.rule = rule
    }
}

/// A frame that was accepted by the tolerant decoder.
public struct DecodedWrapper: Sendable {
    public var operation: Operation
    public var object: WrapperObject
    /// The version of the sender's app, truncated; empty if there is none.
    public var versionID: String = ""
    /// The message, truncated if it is a text for the user; `nil` if it was missing (rule T2) or not a text (rule T4).
    public var message: String?
    public var messageID: MessageID?
    /// The sequence number, 1 … 2^63 - 1; `nil` if it is missing, invalid (rule T21), or ignored (`Operation.isNumbered`).
    public var sequence: Int64?
    /// The unknown members as a JSON object; empty if there are none. They are displayed, but not sent on.
    public var extra: [UInt8] = []
    /// The repairs that were made. Only filled if the decoder has `reportsRepairs`.
    public var repairs: [Repair] = []

    /// Creates a wrapper with default values. The members are then filled in place, because passing them as arguments would copy each of
    /// them.
    @inline(__always)
    init(_ operation: Operation, _ object: WrapperObject) {
        self.operation = operation
        self.object = object
    }

    public init(
        operation: Operation, object: WrapperObject, versionID: String = "", message: String? = nil,
        messageID: MessageID? = nil, sequence: Int64? = nil, extra: [UInt8] = [], repairs: [Repair] = []
    ) {
        self.operation = operation
        self.object = object
        self.versionID = versionID
        self.message = message
        self.messageID = messageID
        self.sequence = sequence
        self.extra = extra
        self.repairs = repairs
    }
}

/// The reason why a frame was refused.
public struct Refusal: Error, Sendable, Equatable {
    public var code: RefusalCode
    /// A text for the user: the problem, and its position in the frame.
    public var message: String
    /// The sequence number of the frame, if the frame is valid JSON; `nil` for an undecodable frame (rule T22).
    public var sequence: Int64?
    public var messageID: MessageID?
    /// Whether the frame could not be decoded at all (rule T22). Its sequence number is then unknown, so the next one may be missing.
    public var isUndecodable: Bool
    /// The operation of the frame; `nil` if it could not be determined.
    public var operation: Operation?

    public init(
        code: RefusalCode, message: String, sequence: Int64? = nil, messageID: MessageID? = nil,
        isUndecodable: Bool = false, operation: Operation? = nil
    ) {
        self.code = code
        self.message = message
        self.sequence = sequence
        self.messageID = messageID
        self.isUndecodable = isUndecodable
        self.operation = operation
    }
}

/// The result of decoding a frame. The decoder returns one of these for any input, and never traps or throws.
public enum DecodedFrame: Sendable {
    case wrapper(DecodedWrapper)
    case refused(Refusal)
}
