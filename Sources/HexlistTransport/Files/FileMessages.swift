public import HexlistModel
public import NIOCore
import NIOHTTP1

/// The decisions about connections on which peers fetch files. Called on the transport's event loop.
public struct FileHost: Sendable {
    /// Whether a peer that proved this key may have one more connection. A peer that may not is closed after its handshake.
    let mayServe: @Sendable (Fingerprint) -> Bool
    /// A connection that may be served: its `delegate` is set here.
    let serves: @Sendable (FileServerConnection) -> Void
    /// Whether a peer that proved this key was asked to dial and serve files. One that was not is closed after its handshake.
    let wantsFiles: @Sendable (Fingerprint) -> Bool
    /// A connection that such a peer dialled, on which files can be fetched.
    let takesFiles: @Sendable (FileClientConnection) -> Void
    /// The time from the handshake to the end of the first request's head.
    let firstHead: TimeAmount

    public init(
        firstHead: TimeAmount = FileLimits.firstHead, mayServe: @escaping @Sendable (Fingerprint) -> Bool,
        serves: @escaping @Sendable (FileServerConnection) -> Void,
        wantsFiles: @escaping @Sendable (Fingerprint) -> Bool = { _ in false },
        takesFiles: @escaping @Sendable (FileClientConnection) -> Void = { $0.abort() }
    ) {
        self.firstHead = firstHead
        self.mayServe = mayServe
        self.serves = serves
        self.wantsFiles = wantsFiles
        self.takesFiles = takesFiles
    }
}

/// One request of a peer: `GET` or `HEAD`, without a body.
public struct FileRequest: Sendable, Equatable {
    public var isHead: Bool
    /// The target as it came, percent-encoded.
    public var target: String
    public var range: String?
    public var ifRange: String?
    public var ifNoneMatch: String?
    public var ifMatch: String?
}

/// The bytes of an answer, read in pieces on one of the `FileThreads`.
public protocol FileSource: AnyObject, Sendable {
    /// Reads exactly `count` bytes. Blocks.
    /// - Parameter isLast: whether the answer ends with them, so that the file is looked at once more.
    /// - Throws: if there are not as many, or the file is not what it was: the connection is cut.
    func read(_ count: Int, at offset: Int64, isLast: Bool) throws -> ByteBuffer
}

/// The answer to a `FileRequest`.
public struct FileAnswer: Sendable {
    public enum Body: Sendable {
        /// A short text.
        case text(String)
        /// Bytes of a file that is so small that they are here.
        case bytes(ByteBuffer)
        /// A part of a file.
        case file(any FileSource, Range<Int64>)
    }

    public var status: Int
    /// Fields besides `Content-Length`, as name and value.
    public var fields: [(String, String)]
    public var body: Body
    /// Called on the event loop when the kernel has taken the whole body of an answer to a `GET`.
    public var sent: (@Sendable () -> Void)?

    public init(status: Int, fields: [(String, String)] = [], body: Body = .text(""), sent: (@Sendable () -> Void)? = nil) {
        self.status = status
        self.fields = fields
        self.body = body
        self.sent = sent
    }

    /// The bytes of the body.
    public var length: Int64 {
        switch body {
        case .text(let text): Int64(text.utf8.count)
        case .bytes(let bytes): Int64(bytes.readableBytes)
        case .file(_, let range): Int64(range.count)
        }
    }
}

/// The head of the answer to a request of this side's.
public struct FileAnswerHead: Sendable, Equatable {
    public var status: Int
    /// The bytes of the body that follow.
    public var length: Int64
    public var entityTag: String?
    public var contentRange: String?
    /// Whether the body is bytes of the file. That of another answer says, for people, why not.
    public var isFile: Bool { status == 200 || status == 206 }
}

/// The bounds on connections for files.
public enum FileLimits {
    /// The bytes of the head of a message, and of one field of it.
    static let headBytes = 16 << 10
    static let headFields = 64
    public static let firstHead = TimeAmount.seconds(10)
    /// The time without a request, or without a byte that is taken, after which a connection is closed.
    static let idle = TimeAmount.seconds(60)
    /// The time to the head of an answer.
    static let answer = TimeAmount.seconds(30)
    /// The fewest bytes of a file in `idle`: a peer that sends fewer holds a place for nothing.
    static let slowestBytes = 4_096
    /// The most requests that are with who answers them.
    static let requestsAtOnce = 16
    /// The most bytes of a file that is fetched on a connection with others. They are worth less than another connection: where nobody wants
    /// them any more they are read and thrown away.
    public static let sharedBytes: Int64 = 256 << 10
    /// The bytes of answers that are made together, but for the last of them; and those of a file that may be among them, held in memory.
    public static let togetherBytes: Int64 = 128 << 10
    public static let heldBytes: Int64 = 64 << 10
    /// The bytes read of a file at once.
    static let pieceBytes = 128 << 10
    /// The pieces of one answer in memory.
    static let pieces = 4
    /// The bytes received of a file that wait to be written, but for one read.
    static let waitingBytes = (1 << 20) - readBytes
    /// The bytes received that are worth the way to another thread, and the time after which fewer are.
    static let worthwhileBytes = 256 << 10
    static let worthwhile = TimeAmount.milliseconds(200)
    /// The bytes of one read of the socket. With `SocketOptions.readBytes` a fast transfer spends its time on the way into the kernel.
    static let readBytes = 64 << 10
    /// The bytes of the body of an answer that is no file.
    static let textBytes: Int64 = 4_096

    static var decoder: NIOHTTPDecoderLimitConfiguration {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = headBytes
        limits.maxHeaderListSize = headBytes
        limits.maxHeaderFieldCount = headFields
        return limits
    }
}

/// The reason why a connection for files ended.
public enum FileConnectionFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The answer is none that is understood.
    case answer(String)
    case timeout
    /// The other side closed the connection, or the link was lost.
    case closed

    public var description: String {
        switch self {
        case .answer(let what): what
        case .timeout: "nothing came for too long"
        case .closed: "the connection was closed"
        }
    }
}
