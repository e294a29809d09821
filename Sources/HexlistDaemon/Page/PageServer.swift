import HexlistAPI
import HexlistModel
import NIOCore
import Synchronization

/// One listener of the page while it is there: its port, its keys, and the timer that ends it.
final class PageServer: Sendable {
    private struct State {
        var keys: PageKeys
        var port = 0
        var isTimed = false
        var isOver = false
    }

    private let state: Mutex<State>
    private let now: @Sendable () -> PageKeys.Instant
    private let loop: any EventLoop
    /// Known to pages with a token, and to nobody who takes the port when the listener ended.
    let proof = PageServer.random()
    /// Finishes when no page was there for a while.
    let ended: AsyncStream<Void>
    private let end: AsyncStream<Void>.Continuation

    /// - Parameter now: the time; the loop's own only says when to look.
    init(loop: any EventLoop, now: @escaping @Sendable () -> PageKeys.Instant = { .now }) {
        self.loop = loop
        self.now = now
        state = Mutex(State(keys: PageKeys(now: now())))
        (ended, end) = AsyncStream.makeStream(of: Void.self)
    }

    func opened(port: Int) {
        state.withLock { $0.port = port }
        watch()
    }

    var port: Int { state.withLock { $0.port } }
    /// The address that `Host` names, and with `http://` before it `Origin`.
    var host: String { "127.0.0.1:\(port)" }

    /// A new secret of 256 bits; `nil` once the listener is ending.
    func invite() -> PageInvitation? {
        let secret = Self.random()
        return state.withLock { state in
            guard !state.isOver else { return nil }
            _ = state.keys.add(secret: secret, now: now())
            let until = Timestamp(milliseconds: Timestamp.now.milliseconds + PageKeys.secretTime.components.seconds * 1_000)
            return PageInvitation(url: "http://127.0.0.1:\(state.port)/#\(secret)", port: state.port, until: until)
        }
    }

    /// - Returns: `nil` for a text that is no secret, or no longer.
    func exchange(_ secret: String) -> PageSession? {
        let session = PageSession(token: Self.random(), reload: Self.random(), proof: proof)
        let isGood = state.withLock { $0.keys.exchange(secret, token: session.token, reload: session.reload, now: now()) }
        return isGood ? session : nil
    }

    func admits(_ token: String) -> Bool { state.withLock { $0.keys.admit(token, now: now()) } }

    func streamBegan(_ token: String) -> Int { state.withLock { $0.keys.streamBegan(token) } }

    func isOpen(stream: Int) -> Bool { state.withLock { $0.keys.isOpen(stream: stream) } }

    func streamEnded(_ number: Int) {
        state.withLock { $0.keys.streamEnded(number, now: now()) }
        watch()
    }

    /// Looks when the listener ends, and comes back then, at most once at a time.
    private func watch() {
        let delay: Duration? = state.withLock { state in
            guard !state.isTimed, !state.isOver, let end = state.keys.end else { return nil }
            state.isTimed = true
            return end - now()
        }
        guard let delay else { return }
        loop.scheduleTask(in: TimeAmount(max(delay, .zero))) { [weak self] in self?.timeIsUp() }
    }

    private func timeIsUp() {
        let isOver = state.withLock { state in
            state.isTimed = false
            if let end = state.keys.end, end <= now() { state.isOver = true }
            return state.isOver
        }
        if isOver { end.finish() } else { watch() }
    }

    /// - Parameter digits: a multiple of 16, each of 4 random bits.
    static func random(digits: Int = 64) -> String {
        var random = SystemRandomNumberGenerator()
        return (0..<digits / 16).map { _ in
            let digits = String(random.next(), radix: 16)
            return String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }.joined()
    }
}
