import HexlistWire
import NIOCore

/// Limits how many handshakes of accepted connections begin per second: each costs this side a signature, a verification and a key
/// exchange, and the other side has proved nothing yet. Further connections wait in order, unread, within the time for a handshake.
/// Confined to its event loop.
///
/// The number of waiting connections is bounded by `Admission`.
final class HandshakeRateLimit {
    /// The turn of one connection.
    final class Turn {
        fileprivate var begin: (() -> Void)?

        fileprivate init(_ begin: @escaping () -> Void) { self.begin = begin }

        /// Gives the turn up because the connection is gone.
        func giveUp() { begin = nil }
    }

    private let eventLoop: any EventLoop
    private let now: () -> ContinuousClock.Instant
    private var bucket: TokenBucket
    private var waiting: CircularBuffer<Turn> = []
    private var timer: Scheduled<Void>?

    init(perSecond: Int, eventLoop: any EventLoop, now: @escaping () -> ContinuousClock.Instant = { .now }) {
        self.eventLoop = eventLoop
        self.now = now
        bucket = TokenBucket(perSecond: Double(perSecond), now: now())
    }

    /// The number of waiting turns, including those given up while waiting.
    var count: Int { waiting.count }

    func setRate(_ perSecond: Int) { bucket.setRate(Double(perSecond), now: now()) }

    /// - Parameter begin: called when the turn comes, never before this returns; not called if the turn was given up.
    /// - Returns: the turn; `nil` if the handshake may begin at once, in which case `begin` is not called.
    func enter(_ begin: @escaping () -> Void) -> Turn? {
        if waiting.isEmpty, bucket.hasToken(now: now()) {
            bucket.take(now: now())
            return nil
        }
        let turn = Turn(begin)
        waiting.append(turn)
        wait()
        return turn
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
        while let turn = waiting.first {
            guard let begin = turn.begin else {
                waiting.removeFirst()
                continue
            }
            guard bucket.hasToken(now: now()) else { return wait() }
            bucket.take(now: now())
            waiting.removeFirst()
            turn.begin = nil
            begin()
        }
    }
}
