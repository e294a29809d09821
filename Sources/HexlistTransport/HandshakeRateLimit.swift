import HexlistWire
import NIOCore

/// Rate limiter of TLS handshakes on accepted connections. Each handshake costs a signature, a verification and a key exchange before the
/// peer has proved anything. Further connections wait in order, unread, until their handshake timeout. Confined to its event loop.
///
/// `Admission` bounds the number of waiting connections.
final class HandshakeRateLimit {
    /// A connection that waits for its handshake.
    final class Waiter {
        fileprivate var begin: (() -> Void)?

        fileprivate init(_ begin: @escaping () -> Void) { self.begin = begin }

        /// Cancels the wait because the connection was closed.
        func cancel() { begin = nil }
    }

    private let eventLoop: any EventLoop
    private let now: () -> ContinuousClock.Instant
    private var bucket: TokenBucket
    private var waiting: CircularBuffer<Waiter> = []
    private var timer: Scheduled<Void>?

    init(perSecond: Int, eventLoop: any EventLoop, now: @escaping () -> ContinuousClock.Instant = { .now }) {
        self.eventLoop = eventLoop
        self.now = now
        bucket = TokenBucket(perSecond: Double(perSecond), now: now())
    }

    /// The number of waiting connections, including cancelled ones.
    var count: Int { waiting.count }

    func setRate(_ perSecond: Int) { bucket.setRate(Double(perSecond), now: now()) }

    /// - Parameter begin: called when the handshake may start, never before this method returns; not called if the wait is cancelled.
    /// - Returns: the waiter; `nil` if the handshake may start now, and then `begin` is not called.
    func enter(_ begin: @escaping () -> Void) -> Waiter? {
        if waiting.isEmpty, bucket.hasToken(now: now()) {
            bucket.take(now: now())
            return nil
        }
        let waiter = Waiter(begin)
        waiting.append(waiter)
        wait()
        return waiter
    }

    private func wait() {
        guard timer == nil else { return }
        let delay = max(.zero, bucket.nextToken - now())
        timer = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(delay)) {
            self.timer = nil
            self.next()
        }
    }

    private func next() {
        while let waiter = waiting.first {
            guard let begin = waiter.begin else {
                waiting.removeFirst()
                continue
            }
            guard bucket.hasToken(now: now()) else { return wait() }
            bucket.take(now: now())
            waiting.removeFirst()
            waiter.begin = nil
            begin()
        }
    }
}
