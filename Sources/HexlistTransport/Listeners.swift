import HexlistModel
import Logging
import NIOCore
import NIOPosix

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The listening sockets. Used on its event loop only.
final class Listeners {
    /// Time until the next attempt to accept connections or to bind a socket, after the process has run out of descriptors or a socket was
    /// closed unexpectedly.
    static let pause = TimeAmount.seconds(1)

    typealias Bind = @Sendable (SocketAddress) -> EventLoopFuture<any Channel>

    private let eventLoop: any EventLoop
    private let logger: Logger
    private(set) var sockets: [any Channel] = []
    private var isClosed = false

    init(eventLoop: any EventLoop, logger: Logger) {
        self.eventLoop = eventLoop
        self.logger = logger
    }

    /// Stores a listening socket until `close()`. If the socket is closed unexpectedly, it is bound again.
    func keep(_ channel: any Channel, bind: @escaping Bind) {
        guard !isClosed else { return channel.close(promise: nil) }
        sockets.append(channel)
        let address = channel.localAddress
        channel.closeFuture.assumeIsolated().whenComplete { _ in
            // A socket that is no longer in the list was closed by `close(port:)`.
            guard let index = self.sockets.firstIndex(where: { $0 === channel }) else { return }
            self.sockets.remove(at: index)
            guard !self.isClosed, let address else { return }
            self.logger.error("listening socket closed", metadata: ["local.address": "\(address)"])
            self.bindAgain(address, bind: bind)
        }
    }

    private func bindAgain(_ address: SocketAddress, bind: @escaping Bind) {
        eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            guard !self.isClosed else { return }
            bind(address).assumeIsolated().whenComplete { result in
                switch result {
                case .success(let channel): self.keep(channel, bind: bind)
                case .failure: self.bindAgain(address, bind: bind)
                }
            }
        }
    }

    /// Closes the listening sockets on a port. Connections that were accepted stay open.
    func close(port: Int) {
        let closing = sockets.filter { $0.localAddress?.port == port }
        sockets.removeAll { $0.localAddress?.port == port }
        for channel in closing { channel.close(promise: nil) }
    }

    /// Closes all listening sockets.
    /// - Returns: a future for each socket, which completes when the socket is closed.
    func close() -> [EventLoopFuture<Void>] {
        isClosed = true
        let closing = sockets.map(\.closeFuture)
        for channel in sockets { channel.close(promise: nil) }
        return closing
    }
}

/// Stops accepting connections for `pause` if the process has run out of descriptors or memory. NIO alone would retry in a busy loop. Its
/// place in the pipeline is before the handler that prepares accepted connections.
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = any Channel

    private let logger: Logger
    private let pause: TimeAmount
    private var isPaused = false
    /// The time of the last log message. At most one is written per minute, because the lack of resources may last.
    private var lastLogged: ContinuousClock.Instant?

    init(logger: Logger, pause: TimeAmount = Listeners.pause) {
        self.logger = logger
        self.pause = pause
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch (error as? IOError)?.errnoCode {
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: hold(context.channel, error)
        default: logger.debug("connection not accepted", metadata: ["error": "\(error)"])
        }
    }

    private func hold(_ channel: any Channel, _ error: any Error) {
        guard !isPaused, let options = channel.syncOptions else { return }
        isPaused = true
        if lastLogged.map({ ContinuousClock.now - $0 >= .seconds(60) }) ?? true {
            lastLogged = .now
            logger.warning("no connection can be accepted for now", metadata: ["error": "\(error)"])
        }
        try? options.setOption(.autoRead, value: false)
        channel.eventLoop.assumeIsolated().scheduleTask(in: pause) {
            self.isPaused = false
            try? options.setOption(.autoRead, value: true)
        }
    }
}
