import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The options of every peer's socket.
///
/// TCP_USER_TIMEOUT is not set: with it the kernel ends the connection of a receiver that does not read for longer than the timeout (a
/// zero window), and such a receiver may well be alive. The session's own rules of silence end a dead connection sooner.
enum SocketOptions {
    /// The most bytes of one read of a socket. TLS keeps a buffer of their size as long as it lives.
    static let readBytes = 16 << 10
    /// The most bytes of a read of a trusted peer's, after one that left some behind: with fewer a bulk takes a twentieth longer.
    static let longReadBytes = 64 << 10

    static func apply(to channel: any Channel) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
        try options.setOption(.socketOption(.so_keepalive), value: 1)
        // A silent host is detected after 15 s + 3 × 5 s, even before a session speaks.
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

/// Makes a buffer for each read, so that an idle connection keeps none.
///
/// The channel keeps the first buffer for its whole life and reads into it again only if reads do not grow. So the first one is small, and
/// all others are new ones that are not kept.
struct ReadBufferAllocator: RecvByteBufferAllocator {
    private static let firstBytes = 1 << 10
    private let most: Int
    private var next: Int

    init() {
        most = SocketOptions.readBytes
        next = Self.firstBytes
    }

    /// For a channel that has read.
    init(most: Int) {
        self.most = most
        next = SocketOptions.readBytes
    }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { ByteBufferAllocator().buffer(capacity: next) }

    mutating func record(actualReadBytes: Int) -> Bool {
        next = actualReadBytes < SocketOptions.readBytes ? SocketOptions.readBytes : most
        return true
    }

    func nextBufferSize() -> Int? { nil }
}
