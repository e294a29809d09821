import HexlistWire
import NIOCore

/// Handshakes of accepted connections, begun no faster than so many a second: each costs this side a signature, a check of
/// one and a key exchange, and whoever asks for it has shown nothing yet. Those over it wait in order, unread, within the time
/// there is for a handshake. Confined to its event loop.
///
/// How many wait is bounded by the places there are (`Admission`).
final class HandshakeTurns {
    /// One connection's.
    final class Turn {
        fileprivate var begin: (() -> Void)?

        fileprivate init(_ begin: @escaping () -> Void) { self.begin = begin }

        /// The connection has gone: the turn is the next one's.
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

    /// That wait, or gave up while they did.
    var count: Int { waiting.count }

    func setRate(_ perSecond: Int) { bucket.setRate(Double(perSecond), now: now()) }

    /// - Parameter begin: called when it is its turn, never before this returns; not called when the turn was given up.
    /// - Returns: `nil` where it is its turn at once, and `begin` is not called.
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
