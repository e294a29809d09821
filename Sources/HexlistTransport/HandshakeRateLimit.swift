import HexlistWire
import NIOCore

/// Limits the rate of TLS handshakes on accepted connections. A handshake costs a signature, a verification and a key exchange before the
/// peer has proved anything. Connections above the rate wait in a queue, and are not read, until their handshake timeout. Used on its event
/// loop only.
///
/// `Admission` bounds the length of the queue.
final class HandshakeRateLimit {
    /// A connection that waits until its handshake may start.
    final class Waiter {
        fileprivate var begin: (() -> Void)?

        fileprivate init(_ begin: @escaping () -> Void) { self.begin = begin }

        /// Removes the connection from the queue, because it was closed.
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

    /// The length of the queue, including connections that were closed meanwhile.
    var count: Int { waiting.count }

    func setRate(_ perSecond: Int) { bucket.setRate(Double(perSecond), now: now()) }

    /// Requests the start of a handshake.
    /// - Parameter begin: called later, when the handshake may start. Not called if the handshake may start now, or if the wait is
    ///   cancelled.
    /// - Returns: `nil` if the handshake may start now; otherwise the position in the queue.
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
