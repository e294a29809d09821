import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Socket options of all peer connections.
///
/// TCP_USER_TIMEOUT is not set: the kernel would close connections to peers that are alive but do not read for longer than the timeout
/// (zero window). Dead connections are detected earlier by the session's own timeouts.
enum SocketOptions {
    /// Maximum bytes of a socket read. TLS keeps a buffer of this size for the life of the connection.
    static let readBytes = 16 << 10
    /// Maximum bytes of a socket read from a trusted peer, if the previous read did not empty the socket. Bulk transfers are 5 % faster
    /// than with `readBytes`.
    static let longReadBytes = 64 << 10

    static func apply(to channel: any Channel) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
        try options.setOption(.socketOption(.so_keepalive), value: 1)
        // Keep-alive detects a silent host after 15 s + 3 × 5 s, even before there is a session.
        #if os(Linux)
            let keepAlive = [(TCP_KEEPIDLE, 15), (TCP_KEEPINTVL, 5), (TCP_KEEPCNT, 3)]
        #else
            let keepAlive = [(TCP_KEEPALIVE, 15), (TCP_KEEPINTVL, 5), (TCP_KEEPCNT, 3)]
        #endif
        for (name, value) in keepAlive {
            try options.setOption(.tcpOption(.init(rawValue: name)), value: .init(value))
        }
        try options.setOption(.recvAllocator, value: ReadBufferAllocator())
        try options.setOption(.maxMessagesPerRead, value: 1)
        try options.setOption(
            .writeBufferWaterMark, value: .init(low: PeerConnection.waterMark.low, high: PeerConnection.waterMark.high))
    }
}

/// Allocates a new buffer for each read, so that idle connections hold none.
///
/// NIO keeps a channel's first buffer for the life of the channel and reuses it only if the size does not grow. So the first buffer is
/// small, and the later ones are larger and not kept.
struct ReadBufferAllocator: RecvByteBufferAllocator {
    private static let firstBytes = 1 << 10
    private let maximumBytes: Int
    private var next: Int

    init() {
        maximumBytes = SocketOptions.readBytes
        next = Self.firstBytes
    }

    /// Creates the allocator of a channel that has read before, whose first buffer exists already.
    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
        next = SocketOptions.readBytes
    }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { ByteBufferAllocator().buffer(capacity: next) }

    mutating func record(actualReadBytes: Int) -> Bool {
        next = actualReadBytes < SocketOptions.readBytes ? SocketOptions.readBytes : maximumBytes
        return true
    }

    func nextBufferSize() -> Int? { nil }
}
