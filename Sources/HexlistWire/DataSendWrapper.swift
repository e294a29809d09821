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

    /// The `jmObjectType` of the operation's object; `nil` if the operation has none.
    public var objectType: String? {
        switch self {
        case .hello: "Peer"
        case .store: "Hex"
        case .ack: "Receipt"
        case .pair: "Pairing"
        case .alert, .ping, .pong, .bye, .dialBack, .dialedBack, .fileDial: nil
        }
    }

    /// Whether the `message` is a token that the peer returns, not a text for the user.
    public var hasToken: Bool {
        switch self {
        case .ping, .pong, .dialBack, .dialedBack, .fileDial: true
        case .hello, .store, .ack, .alert, .bye, .pair: false
        }
    }

    /// Whether frames of this operation are numbered by `sequence`; in frames of other operations, `sequence` is ignored.
    public var isNumbered: Bool {
        switch self {
        // Peers that do not know the last three treat them as unknown operations, which are numbered.
        case .store, .ping, .alert, .pair, .dialBack, .dialedBack, .fileDial: true
        case .hello, .ack, .pong, .bye: false
        }
    }
}

/// The object of a `Hello`: identity and limits of the sender.
public struct Hello: Sendable, Equatable {
    /// The sender's UUID; `nil` if it was not a UUID, which ends the session with `identityMismatch`.
    public var uuid: PeerID?
    public var name: String
    public var boot: BootNonce?
    public var protocols: [Int]
    public var features: [String]
    /// Maximum bytes of a frame that the sender accepts.
    public var maxFrameBytes: Int
    /// Maximum unacknowledged frames that the sender accepts, 1 … 65 536.
    public var window: Int
    /// The sender's card in base64, as received; `nil` if there is none. Sent to trusted peers only.
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

/// A refused sequence number in a receipt.
public struct HexRejection: Sendable, Equatable {
    public var sequence: Int64
    public var code: RefusalCode
    public var message: String
    /// Seconds to wait before a retry; only for temporary refusals.
    public var retryAfter: Int?

    public init(sequence: Int64, code: RefusalCode, message: String = "", retryAfter: Int? = nil) {
        self.sequence = sequence
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }
}

/// The object of an `Ack`: the results of the sequence numbers after `through` of the previous receipt, up to and including this `through`.
public struct Receipt: Sendable, Equatable {
    public var through: Int64
    /// The status of all covered numbers that are not in `rejected`; `nil` if there are none.
    public var status: ReceiptStatus?
    /// The status that the hex got when it was first received; only if `status` is `duplicate`.
    public var of: ReceiptStatus?
    public var rejected: [HexRejection]
    /// The id of the envelope whose frames the receipt is for; `nil` on a session.
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

    /// The step as received: `commit`, `nonce`, `reveal`, `confirm`, `cancel` or a newer one.
    public var step: String
    /// The step; `nil` if unknown to this version.
    var knownStep: Step? { Step(utf8: step.utf8) }
    /// The commitment in base64.
    public var commitment: String
    public var nonce: String
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

/// A repair made by the tolerant decoder: the affected member, and the applied rule of Docs/Protocol.md ("Tolerant decoding"), such as
/// `T2`.
public struct Repair: Sendable, Equatable {
    /// The path of the member, such as `links[0].service`, `jmObject`, `versionID`.
    public var path: String
    public var rule: String

    public init(path: String, rule: String) {
        self.path = path
        self.rule = rule
    }
}

public struct DecodedWrapper: Sendable {
    public var operation: Operation
    public var object: WrapperObject
    /// The sender's app version, truncated; empty if there is none.
    public var versionID: String = ""
    /// The message, truncated unless it is a token; `nil` if there was none (T2) or it was not a text (T4).
    public var message: String?
    public var messageID: MessageID?
    /// The sequence number, 1 … 2^63 - 1; `nil` if there was none or it is ignored (T21, `Operation.isNumbered`).
    public var sequence: Int64?
    /// Unknown members as a JSON object; empty if there are none. They are displayed but not forwarded.
    public var extra: [UInt8] = []
    /// The repairs; empty unless the decoder has `reportsRepairs`.
    public var repairs: [Repair] = []

    /// A wrapper with default values, to be filled in place, because passing all values as arguments would copy each.
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
    /// A text for the user with the problem and its position in the frame.
    public var message: String
    /// The sequence number if the frame is valid JSON, even if it is `malformed` by T5; `nil` for an undecodable frame (T22).
    public var sequence: Int64?
    public var messageID: MessageID?
    /// Whether the bytes could not be decoded at all (T22). Only such frames may explain gaps in the sequence.
    public var isUndecodable: Bool
    /// The operation of the frame; `nil` if unknown.
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

/// The result of decoding a frame. For any input the decoder returns one of these; it never traps or throws.
public enum DecodedFrame: Sendable {
    case wrapper(DecodedWrapper)
    case refused(Refusal)
}
