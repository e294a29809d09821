import Crypto
import HexlistAPI
import HexlistModel
import NIOCore
import Synchronization

/// The state of one listener of the page: its port, its keys, and the timer that ends it. Thread-safe.
final class PageListenerState: Sendable {
    private struct State {
        var keys: PageKeys
        var port = 0
        var isTimed = false
        var isOver = false
    }

    private let state: Mutex<State>
    private let now: @Sendable () -> PageKeys.Instant
    private let loop: any EventLoop
    private let save: @Sendable (SavedPages) -> Void
    /// A random value that proves to pages that they are still connected to the same listener: another program that takes the port does not
    /// know it.
    let proof: String
    /// A stream without elements. It finishes when the listener has been idle for `PageKeys.idleTime`.
    let ended: AsyncStream<Void>
    private let end: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - saved: the pages from before a restart of the daemon.
    ///   - save: called with the pages to restore after a restart, whenever they have changed.
    ///   - now: returns the current time. The timer of the event loop determines only when it is compared with the end of the listener.
    init(
        loop: any EventLoop, restoring saved: SavedPages? = nil, save: @escaping @Sendable (SavedPages) -> Void = { _ in },
        now: @escaping @Sendable () -> PageKeys.Instant = { .now }
    ) {
        self.loop = loop
        self.save = save
        self.now = now
        proof = saved?.proof ?? Self.random()
        state = Mutex(State(keys: PageKeys(now: now(), restoring: saved?.pages ?? [])))
        (ended, end) = AsyncStream.makeStream(of: Void.self)
    }

    func opened(port: Int) {
        state.withLock { $0.port = port }
        scheduleEnd()
    }

    var port: Int { state.withLock { $0.port } }
    /// The expected value of the header `Host`, `127.0.0.1:PORT`. The expected value of `Origin` is `http://` followed by it.
    var host: String { "127.0.0.1:\(port)" }

    /// Makes an address of the page with a new secret of 256 bits; `nil` once the listener is ending.
    func invite() -> PageAddress? {
        let secret = Self.random()
        return state.withLock { state in
            guard !state.isOver else { return nil }
            _ = state.keys.add(secret: secret, now: now())
            let until = Timestamp(milliseconds: Timestamp.now.milliseconds + PageKeys.secretTime.components.seconds * 1_000)
            return PageAddress(url: "http://127.0.0.1:\(state.port)/#\(secret)", port: state.port, until: until)
        }
    }

    /// Exchanges a secret for the session of a new page.
    /// - Returns: `nil` for an invalid or expired secret.
    func exchange(_ secret: String) -> PageSession? {
        let session = PageSession(token: Self.random(), reload: Self.random(), proof: proof)
        let changed = state.withLock { state -> SavedPages? in
            guard state.keys.exchange(secret, token: session.token, reload: session.reload, now: now()) else { return nil }
            return SavedPages(port: state.port, proof: proof, pages: state.keys.saved)
        }
        guard let changed else { return nil }
        save(changed)
        return session
    }

    /// Returns the answer to a challenge of a page: the HMAC-SHA-256 of the nonce, with `proof` as the key.
    func answer(to nonce: String) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: Array(nonce.utf8), using: SymmetricKey(data: Array(proof.utf8)))
        return Hexadecimal.encode(code).lowercased()
    }

    /// Makes a new reload secret for the page with a token, and saves its hash.
    func renewReload(of token: String) -> String {
        let reload = Self.random()
        save(
            state.withLock { state in
                state.keys.renewReload(of: token, to: reload)
                return SavedPages(port: state.port, proof: proof, pages: state.keys.saved)
            })
        return reload
    }

    func admits(_ token: String) -> Bool { state.withLock { $0.keys.admit(token, now: now()) } }

    func streamBegan(_ token: String) -> Int { state.withLock { $0.keys.streamBegan(token) } }

    func isOpen(stream: Int) -> Bool { state.withLock { $0.keys.isOpen(stream: stream) } }

    func streamEnded(_ number: Int) {
        state.withLock { $0.keys.streamEnded(number, now: now()) }
        scheduleEnd()
    }

    /// Schedules the timer that ends the listener. Does nothing if it is scheduled already, or if there is an event stream.
    private func scheduleEnd() {
        let delay: Duration? = state.withLock { state in
            guard !state.isTimed, !state.isOver, let end = state.keys.end else { return nil }
            state.isTimed = true
            return end - now()
        }
        guard let delay else { return }
        loop.scheduleTask(in: TimeAmount(max(delay, .zero))) { [weak self] in self?.checkEnd() }
    }

    private func checkEnd() {
        let isOver = state.withLock { state in
            state.isTimed = false
            if let end = state.keys.end, end <= now() { state.isOver = true }
            return state.isOver
        }
        if isOver { end.finish() } else { scheduleEnd() }
    }

    /// Returns random hexadecimal digits.
    /// - Parameter digits: the number of digits, a multiple of 16.
    static func random(digits: Int = 64) -> String {
        var random = SystemRandomNumberGenerator()
        return (0..<digits / 16).map { _ in
            let digits = String(random.next(), radix: 16)
            return String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }.joined()
    }
}
