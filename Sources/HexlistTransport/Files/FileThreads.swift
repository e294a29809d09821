public import NIOCore
import NIOPosix
import Synchronization

/// A pool of at most four threads for blocking file IO. They are started when they are first used. Further work waits in a queue.
public final class FileThreads: Sendable {
    private static let threads = 4

    private enum State {
        case unused
        case running(NIOThreadPool)
        case stopped
    }

    private let state = Mutex(State.unused)

    init() {}

    /// Runs `work` on one of the threads.
    /// - Returns: a future on `eventLoop` with the result. It fails after `stop()`.
    public func run<Value: Sendable>(on eventLoop: any EventLoop, _ work: @escaping @Sendable () throws -> Value) -> EventLoopFuture<Value>
    {
        let pool: NIOThreadPool? = state.withLock { state in
            switch state {
            case .unused:
                let pool = NIOThreadPool(numberOfThreads: Self.threads)
                pool.start()
                state = .running(pool)
                return pool
            case .running(let pool): return pool
            case .stopped: return nil
            }
        }
        guard let pool else { return eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel) }
        return pool.runIfActive(eventLoop: eventLoop, work)
    }

    /// Stops the threads after their current work. Queued work fails.
    func stop() async {
        let pool: NIOThreadPool? = state.withLock { state in
            defer { state = .stopped }
            guard case .running(let pool) = state else { return nil }
            return pool
        }
        try? await pool?.shutdownGracefully()
    }
}
