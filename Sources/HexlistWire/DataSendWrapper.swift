public import HexlistModel

/// What a wrapper asks for (Docs/Protocol.md, "Operations"), in its canonical spelling.
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

    /// The `jmObjectType` it takes; `nil` for an operation that takes no object.
    public var objectType: String? {
        switch self {
        case .hello: "Peer"
        case .store: "Hex"
        case .ack: "Receipt"
        case .pair: "Pairing"
        case .alert, .ping, .pong, .bye, .dialBack, .dialedBack: nil
        }
    }

    /// Whether its `message` is a token for the other side to repeat, and no text for a person.
    public var hasToken: Bool {
        switch self {
        case .ping, .pong, .dialBack, .dialedBack: true
        case .hello, .store, .ack, .alert, .bye, .pair: false
        }
    }

    /// Whether a `sequence` found on it counts; on the others it is ignored.
    public var isNumbered: Bool {
        switch self {
        // To a peer that does not know them the last two are unknown operations, and those may.
        case .store, .ping, .alert, .pair, .dialBack, .dialedBack: true
        case .hello, .ack, .pong, .bye: false
        }
    }
}

/// The object of a `Hello`: who speaks and what it can take.
public struct Hello: Sendable, Equatable {
    /// `nil` where the member was no UUID: the session ends with `identityMismatch`.
    public var uuid: PeerID?
    public var name: String
    public var boot: BootNonce?
    public var protocols: [Int]
    public var features: [String]
    /// Bytes of one frame it takes, at most.
    public var maxFrameBytes: Int
    /// Unacknowledged frames it takes, 1 … 65 536.
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
    /// Seconds; only a temporary refusal has one.
    public var retryAfter: Int?

    public init(sequence: Int64, code: RefusalCode, message: String = "", retryAfter: Int? = nil) {
        self.sequence = sequence
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }
}

/// The object of an `Ack`: what became of the numbers after the previous receipt's `through` up to its own.
public struct Receipt: Sendable, Equatable {
    public var through: Int64
    /// Of every covered number not in `rejected`; `nil` where there are none.
    public var status: ReceiptStatus?
    /// For `duplicate`: where the first one went.
    public var of: ReceiptStatus?
    public var rejected: [Rejection]

    public init(through: Int64, status: ReceiptStatus?, of: ReceiptStatus? = nil, rejected: [Rejection] = []) {
        self.through = through
        self.status = status
        self.of = of
        self.rejected = rejected
    }
}

/// The object of a `Pair` (Docs/Protocol.md, "Pairing").
public struct Pairing: Sendable, Equatable {
    /// As received: `commit`, `nonce`, `reveal`, `confirm`, `cancel` or something newer.
    public var step: String
    /// Base64 as received.
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

/// What a decoded wrapper carries.
public enum WrapperObject: Sendable {
    case none
    case hex(HexContent)
    case hello(Hello)
    case receipt(Receipt)
    case pairing(Pairing)
}

/// One generosity the decoder showed: where, and by which rule (`T2`).
public struct Repair: Sendable, Equatable {
    /// As `links[0].service`, `jmObject`, `versionID`.
    public var path: String
    public var rule: String

    public init(path: String, rule: String) {
        self.path = path
        self.rule = rule
    }
}

/// A wrapper that was understood.
public struct DecodedWrapper: Sendable {
    public var operation: Operation
    public var object: WrapperObject = .none
    /// The sender's app version, cut; `""` where it named none.
    public var versionID: String = ""
    /// `nil` where there was none (T2) or it was no text (T4). Cut, but for a token.
    public var message: String?
    public var messageID: MessageID?
    /// 1 … 2^63 - 1; `nil` where there was none, or one that does not count (T21, `Operation.isNumbered`).
    public var sequence: Int64?
    /// Unknown members of the wrapper as one JSON object; empty where there are none. Hop by hop: shown, never sent on.
    public var extra: [UInt8] = []
    /// Filled only by a decoder made with `reportsRepairs`.
    public var repairs: [Repair] = []

    /// The defaults, to be filled in place: a value made of all its parts at once costs the decoder a copy of each.
    init(_ operation: Operation) { self.operation = operation }

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

/// A frame that is refused.
public struct Refusal: Error, Sendable, Equatable {
    public var code: RefusalCode
    /// For a person: what was wrong and where.
    public var message: String
    /// A frame whose JSON parsed keeps its number, also when it is `malformed` by T5; one that could not be decoded (T22) has none.
    public var sequence: Int64?
    public var messageID: MessageID?
    /// T22: the bytes could not be decoded at all. Only such a frame explains missing numbers.
    public var isUndecodable: Bool
    /// `nil` where the operation was not known.
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

/// What the tolerant decoder makes of one frame. There is no third outcome: no input makes it trap or throw.
public enum DecodedFrame: Sendable {
    case wrapper(DecodedWrapper)
    case refused(Refusal)
}
