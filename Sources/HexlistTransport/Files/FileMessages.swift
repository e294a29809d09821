public import HexlistModel
public import NIOCore
import NIOHTTP1

/// Callbacks that decide about connections for files. Called on the transport's event loop.
public struct FileHost: Sendable {
    /// Whether a peer that proved this key may have another connection; otherwise it is closed after its handshake.
    let mayServe: @Sendable (Fingerprint) -> Bool
    /// Receives a connection on which files are served, and sets its `delegate`.
    let onServerConnection: @Sendable (FileServerConnection) -> Void
    /// Whether a peer that proved this key was requested to dial and serve files; otherwise its connection is closed after the handshake.
    let expectsFiles: @Sendable (Fingerprint) -> Bool
    /// Receives a connection dialled by such a peer, on which files can be fetched.
    let onClientConnection: @Sendable (FileClientConnection) -> Void
    /// Timeout from the handshake to the end of the first request's header.
    let firstHead: TimeAmount

    public init(
        firstHead: TimeAmount = FileLimits.firstHead, mayServe: @escaping @Sendable (Fingerprint) -> Bool,
        onServerConnection: @escaping @Sendable (FileServerConnection) -> Void,
        expectsFiles: @escaping @Sendable (Fingerprint) -> Bool = { _ in false },
        onClientConnection: @escaping @Sendable (FileClientConnection) -> Void = { $0.abort() }
    ) {
        self.firstHead = firstHead
        self.mayServe = mayServe
        self.onServerConnection = onServerConnection
        self.expectsFiles = expectsFiles
        self.onClientConnection = onClientConnection
    }
}

/// A request of a peer: `GET` or `HEAD`, without a body.
public struct FileRequest: Sendable, Equatable {
    public var isHead: Bool
    /// The percent-encoded request target.
    public var target: String
    public var range: String?
    public var ifRange: String?
    public var ifNoneMatch: String?
    public var ifMatch: String?
}

/// The content of a response, read in chunks on one of the `FileThreads`.
public protocol FileSource: AnyObject, Sendable {
    /// Reads exactly `count` bytes. Blocks.
    /// - Parameter isLast: whether these are the last bytes of the response, so that the file must be checked again.
    /// - Throws: if the file is shorter or was changed; the connection is then closed.
    func read(_ count: Int, at offset: Int64, isLast: Bool) throws -> ByteBuffer
}

/// The response to a `FileRequest`.
public struct FileAnswer: Sendable {
    public enum Body: Sendable {
        /// A short message.
        case text(String)
        /// The bytes of a small file.
        case bytes(ByteBuffer)
        case file(any FileSource, Range<Int64>)
    }

    public var status: Int
    /// Headers except `Content-Length`, as name and value.
    public var fields: [(String, String)]
    public var body: Body
    /// Called on the event loop when the kernel has taken the whole body of a response to `GET`.
    public var sent: (@Sendable () -> Void)?

    public init(status: Int, fields: [(String, String)] = [], body: Body = .text(""), sent: (@Sendable () -> Void)? = nil) {
        self.status = status
        self.fields = fields
        self.body = body
        self.sent = sent
    }

    /// Length of the body in bytes.
    public var length: Int64 {
        switch body {
        case .text(let text): Int64(text.utf8.count)
        case .bytes(let bytes): Int64(bytes.readableBytes)
        case .file(_, let range): Int64(range.count)
        }
    }
}

/// The header of a response to a request of this side.
public struct FileAnswerHead: Sendable, Equatable {
    public var status: Int
    /// Length of the body that follows, in bytes.
    public var length: Int64
    public var entityTag: String?
    public var contentRange: String?
    /// Whether the body is content of the file. Otherwise it is a message for the user.
    public var isFile: Bool { status == 200 || status == 206 }
}

/// Limits of connections for files.
public enum FileLimits {
    /// Maximum bytes of a message's header, and of one field.
    static let headBytes = 16 << 10
    static let headFields = 64
    public static let firstHead = TimeAmount.seconds(10)
    /// Idle timeout: without a request, or without progress of a response.
    static let idleTimeout = TimeAmount.seconds(60)
    /// Timeout until the header of a response.
    static let responseTimeout = TimeAmount.seconds(30)
    /// Minimum bytes of a file that have to arrive within `idleTimeout`. A slower peer is disconnected, because it occupies a slot.
    static let minimumProgressBytes = 4_096
    /// Maximum requests passed to the delegate at once.
    static let requestsAtOnce = 16
    /// Maximum size of a file that is fetched on a shared connection. If its transfer is cancelled, reading and discarding so few bytes is
    /// cheaper than opening another connection.
    public static let sharedBytes: Int64 = 256 << 10
    /// Maximum bytes of responses that are built together, not counting the last one.
    public static let togetherBytes: Int64 = 128 << 10
    /// Maximum size of a file that is read into memory whole, to build its response together with others.
    public static let heldBytes: Int64 = 64 << 10
    /// Maximum number of bytes of a file that are read and sent as one piece.
    static let pieceBytes = 128 << 10
    /// Maximum number of pieces of a response in memory.
    static let pieces = 4
    /// Maximum received bytes of a file that wait to be written to disk, less those of one socket read.
    static let waitingBytes = (1 << 20) - readBytes
    /// Received bytes that are worth a switch to a file thread. Fewer bytes are passed on after the delay `worthwhile`.
    static let worthwhileBytes = 256 << 10
    static let worthwhile = TimeAmount.milliseconds(200)
    /// Maximum bytes of a socket read. With the smaller `SocketOptions.readBytes`, a fast transfer would spend most of its time in system
    /// calls.
    static let readBytes = 64 << 10
    /// Maximum bytes of the body of an error response.
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
    /// An invalid response.
    case answer(String)
    case timeout
    /// The peer closed the connection, or it was lost.
    case closed

    public var description: String {
        switch self {
        case .answer(let what): what
        case .timeout: "nothing came for too long"
        case .closed: "the connection was closed"
        }
    }
}
