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
/// No TCP_USER_TIMEOUT: the kernel counts a receiver that reads nothing as dead by it (a zero window older than the timeout
/// ends the connection), and here who does not read for a while is alive. A session's own silence ends it sooner.
enum SocketOptions {
    /// Bytes of one read of a socket. Larger reads gain little, and TLS keeps its buffer for them for as long as it lives.
    static let readBytes = 16 << 10

    static func apply(to channel: any Channel) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
        try options.setOption(.socketOption(.so_keepalive), value: 1)
        // A silent host is found after 15 s + 3 × 5 s, also where no session speaks yet.
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

/// A buffer for each read, given back at once: an idle connection keeps none.
///
/// The channel keeps the first one for as long as it lives, and reads into it again only where it is told that reads do not grow: so the
/// first one is small, and every other is a new one that nobody keeps.
struct ReadBufferAllocator: RecvByteBufferAllocator {
    private static let firstBytes = 1 << 10
    private var hasRead = false

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        ByteBufferAllocator().buffer(capacity: hasRead ? SocketOptions.readBytes : Self.firstBytes)
    }

    mutating func record(actualReadBytes: Int) -> Bool {
        hasRead = true
        return true
    }

    func nextBufferSize() -> Int? { nil }
}
