import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The socket options of all connections of peers.
///
/// TCP_USER_TIMEOUT is not set. With it, the kernel would close connections to peers that are alive but do not read for some time (zero
/// window). The timeouts of sessions detect dead connections earlier.
enum SocketOptions {
    /// Maximum bytes of one read of a socket. TLS has a buffer of this size for each connection.
    static let readBytes = 16 << 10
    /// Maximum bytes of one read of a socket for which `permitLongReads` was called, if the previous read did not empty the socket. Bulk
    /// sends are 5 % faster than with `readBytes`.
    static let longReadBytes = 64 << 10

    /// Permits reads of up to 64 KiB. Called for trusted peers, guests, and programs with a drop token.
    static func permitLongReads(on channel: any Channel) {
        try? channel.syncOptions?.setOption(.recvAllocator, value: ReadBufferAllocator(maximumBytes: longReadBytes))
    }

    static func apply(to channel: any Channel) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
        try options.setOption(.socketOption(.so_keepalive), value: 1)
        // Keep-alive detects a silent host after 15 s + 3 × 5 s, also before a session begins.
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

/// Allocates another buffer for each read, so that idle connections have none.
///
/// NIO retains the first buffer of a channel until the channel is closed, and uses it again only if the size does not grow. The first
/// buffer is therefore small. Later ones are larger, and are not retained.
struct ReadBufferAllocator: RecvByteBufferAllocator {
    private static let firstBytes = 1 << 10
    private let maximumBytes: Int
    private var next: Int

    init() {
        maximumBytes = SocketOptions.readBytes
        next = Self.firstBytes
    }

    /// Creates an allocator for a channel that has already read, so that its first buffer exists.
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
