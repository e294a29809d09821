public import HexlistModel
public import NIOCore
import NIOHTTP1

/// The callbacks that decide about connections for files, and receive them. Called on the transport's event loop.
public struct FileConnectionHost: Sendable {
    /// Whether the peer that proved this key may have another connection. If not, the connection is closed after its handshake.
    let mayServe: @Sendable (Fingerprint) -> Bool
    /// Receives a connection on which files are served. It has to call `serve(with:)`.
    let onServerConnection: @Sendable (FileServerConnection) -> Void
    /// Whether this machine has requested the peer with this key to dial and to serve files. If not, the connection is closed after its
    /// handshake.
    let expectsFiles: @Sendable (Fingerprint) -> Bool
    /// Receives a connection that a peer has dialled at this machine's request. Files can be fetched on it.
    let onClientConnection: @Sendable (FileClientConnection) -> Void
    /// Maximum time from the handshake to the end of the first request's header.
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

/// The content of a response. It is read in chunks, on one of the `FileThreads`.
public protocol FileSource: AnyObject, Sendable {
    /// Reads exactly `count` bytes of a file. Blocks.
    /// - Parameter isLast: whether these bytes are the last ones of the response. The file must then be checked for changes.
    /// - Throws: an error if the file is shorter or has changed. The connection is then closed.
    func read(_ count: Int, at offset: Int64, isLast: Bool) throws -> ByteBuffer
}

/// The response to a `FileRequest`.
public struct FileAnswer: Sendable {
    public enum Body: Sendable {
        /// A short text.
        case text(String)
        /// The content of a small file.
        case bytes(ByteBuffer)
        /// A range of the bytes of a file.
        case file(any FileSource, Range<Int64>)
    }

    public var status: Int
    /// Headers except `Content-Length`, as name and value.
    public var fields: [(String, String)]
    public var body: Body
    /// Called on the event loop when the kernel has accepted the whole body of a response to `GET`.
    public var sent: (@Sendable () -> Void)?

    public init(status: Int, fields: [(String, String)] = [], body: Body = .text(""), sent: (@Sendable () -> Void)? = nil) {
        self.status = status
        self.fields = fields
        self.body = body
        self.sent = sent
    }

    /// Length of the body, in bytes.
    public var length: Int64 {
        switch body {
        case .text(let text): Int64(text.utf8.count)
        case .bytes(let bytes): Int64(bytes.readableBytes)
        case .file(_, let range): Int64(range.count)
        }
    }
}

/// The header of a response that this machine has received.
public struct FileAnswerHead: Sendable, Equatable {
    public var status: Int
    /// Length in bytes of the body that follows.
    public var length: Int64
    public var entityTag: String?
    public var contentRange: String?
    /// Whether the body is content of the file. Otherwise it is an error message for the user.
    public var isFile: Bool { status == 200 || status == 206 }
}

/// The limits of connections for files.
public enum FileLimits {
    /// Maximum bytes of the header of a request or response, and of one field of it.
    static let headBytes = 16 << 10
    static let headFields = 64
    /// The default of `FileConnectionHost.firstHead`.
    public static let firstHead = TimeAmount.seconds(10)
    /// Maximum time without a request, or without progress of a response.
    static let idleTimeout = TimeAmount.seconds(60)
    /// Maximum time from a request to the header of its response.
    static let responseTimeout = TimeAmount.seconds(30)
    /// Minimum bytes of a file that have to arrive within `idleTimeout`. A slower peer is disconnected, because its transfer occupies a
    /// slot.
    static let minimumProgressBytes = 4_096
    /// Maximum number of requests that are passed to the delegate at once.
    static let requestsAtOnce = 16
    /// Maximum size in bytes of a file that is fetched on a shared connection. If its transfer is cancelled, the rest is read and
    /// discarded, because that is cheaper than opening another connection.
    public static let sharedBytes: Int64 = 256 << 10
    /// Maximum bytes of responses that are written together, not counting the last one.
    public static let togetherBytes: Int64 = 128 << 10
    /// Maximum size in bytes of a file that is read into memory as a whole, so that its response is written together with others.
    public static let heldBytes: Int64 = 64 << 10
    /// Maximum bytes of a file that are read and sent as one chunk.
    static let pieceBytes = 128 << 10
    /// Maximum number of chunks of a response in memory.
    static let pieces = 4
    /// Maximum received bytes of a file that are not taken to be written to the disk. One read of the socket may exceed it by `readBytes`.
    static let waitingBytes = (1 << 20) - readBytes
    /// Number of received bytes that is worth a switch to a file thread. The receiver is notified of fewer bytes after the delay
    /// `worthwhile`.
    static let worthwhileBytes = 256 << 10
    static let worthwhile = TimeAmount.milliseconds(200)
    /// Maximum bytes of one read of a socket. With the smaller `SocketOptions.readBytes`, a fast transfer would spend most of its time in
    /// system calls.
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
    /// The response is invalid. The text says why.
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
