public import HexlistModel

/// The operation of a wrapper (Docs/Protocol.md, "Operations"), in its canonical spelling.
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

    /// The `jmObjectType` of the operation's object; `nil` for an operation without an object.
    public var objectType: String? {
        switch self {
        case .hello: "Peer"
        case .store: "Hex"
        case .ack: "Receipt"
        case .pair: "Pairing"
        case .alert, .ping, .pong, .bye, .dialBack, .dialedBack, .fileDial: nil
        }
    }

    /// Whether the `message` is a token that the other side repeats, not a text for a person.
    public var hasToken: Bool {
        switch self {
        case .ping, .pong, .dialBack, .dialedBack, .fileDial: true
        case .hello, .store, .ack, .alert, .bye, .pair: false
        }
    }

    /// Whether a `sequence` counts on this operation; on others it is ignored.
    public var isNumbered: Bool {
        switch self {
        // A peer that does not know the last three takes them for unknown operations, whose `sequence` counts.
        case .store, .ping, .alert, .pair, .dialBack, .dialedBack, .fileDial: true
        case .hello, .ack, .pong, .bye: false
        }
    }
}

/// The object of a `Hello`: the sender's identity and limits.
public struct Hello: Sendable, Equatable {
    /// The sender's UUID; `nil` if the member was no UUID, which ends the session with `identityMismatch`.
    public var uuid: PeerID?
    public var name: String
    public var boot: BootNonce?
    public var protocols: [Int]
    public var features: [String]
    /// The most bytes of one frame that the sender takes.
    public var maxFrameBytes: Int
    /// The most unacknowledged frames that the sender takes, 1 … 65 536.
    public var window: Int

    public init(
        uuid: PeerID?, name: String, boot: BootNonce?, protocols: [Int] = [1], features: [String] = [],
        maxFrameBytes: Int = ProtocolLimits.trustedFrameBytes, window: Int = ProtocolLimits.windowFrames
    ) {
        self.uuid = uuid
        self.name = name
        self.boot = boot
        self.protocols = protocols
        self.features = features
        self.maxFrameBytes = maxFrameBytes
        self.window = window
    }
}

/// One refused number of a receipt.
public struct Rejection: Sendable, Equatable {
    public var sequence: Int64
    public var code: RefusalCode
    public var message: String
    /// The seconds to wait; only for a temporary refusal.
    public var retryAfter: Int?

    public init(sequence: Int64, code: RefusalCode, message: String = "", retryAfter: Int? = nil) {
        self.sequence = sequence
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }
}

/// The object of an `Ack`: the results of the numbers after the previous receipt's `through`, up to its own.
public struct Receipt: Sendable, Equatable {
    public var through: Int64
    /// The status of all covered numbers not in `rejected`; `nil` if there are none.
    public var status: ReceiptStatus?
    /// The status of the first copy; only for `duplicate`.
    public var of: ReceiptStatus?
    public var rejected: [Rejection]
    /// The id of the envelope whose frames the receipt is for; `nil` on a session.
    public var envelope: String?

    public init(
        through: Int64, status: ReceiptStatus?, of: ReceiptStatus? = nil, rejected: [Rejection] = [], envelope: String? = nil
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
    /// The step; `nil` for one that this version does not know.
    var knownStep: Step? { Step(utf8: step.utf8) }
    /// The commitment in base64, as received.
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

/// One repair by the tolerant decoder: its place, and the rule applied (`T2`).
public struct Repair: Sendable, Equatable {
    /// The repaired member, such as `links[0].service`, `jmObject`, `versionID`.
    public var path: String
    public var rule: String

    public init(path: String, rule: String) {
        self.path = path
        self.rule = rule
    }
}

/// A decoded wrapper.
public struct DecodedWrapper: Sendable {
    public var operation: Operation
    public var object: WrapperObject
    /// The sender's app version, cut; `""` if it has none.
    public var versionID: String = ""
    /// The message, cut unless it is a token; `nil` if there was none (T2) or it was no text (T4).
    public var message: String?
    public var messageID: MessageID?
    /// The frame's number, 1 … 2^63 - 1; `nil` if there was none, or one that does not count (T21, `Operation.isNumbered`).
    public var sequence: Int64?
    /// The unknown members of the wrapper as one JSON object; empty if there are none. They are shown, but never sent on.
    public var extra: [UInt8] = []
    /// The repairs; empty unless the decoder was made with `reportsRepairs`.
    public var repairs: [Repair] = []

    /// Makes a wrapper with defaults for all other parts, to be filled in place: with all as arguments the decoder would pay for a copy of
    /// each.
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

/// The refusal of a frame.
public struct Refusal: Error, Sendable, Equatable {
    public var code: RefusalCode
    /// A text for people that says what was wrong, and where.
    public var message: String
    /// The frame's number if its JSON parsed, even if it is `malformed` by T5; a frame that could not be decoded (T22) has none.
    public var sequence: Int64?
    public var messageID: MessageID?
    /// Whether the bytes could not be decoded at all (T22). Only such a frame explains missing numbers.
    public var isUndecodable: Bool
    /// The operation; `nil` if it is unknown.
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

/// The result of decoding one frame. There is no third case: no input makes the decoder trap or throw.
public enum DecodedFrame: Sendable {
    case wrapper(DecodedWrapper)
    case refused(Refusal)
}
