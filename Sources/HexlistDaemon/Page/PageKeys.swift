import Crypto
import HexlistModel

/// The secrets, tokens and event streams of the page's listener. A value type without side effects: time and random values are passed in.
struct PageKeys {
    typealias Instant = ContinuousClock.Instant

    /// Lifetime of a secret made by `hexlist web`.
    static let secretTime: Duration = .seconds(30)
    /// Lifetime of a reload secret, counted from the last request of its page or the end of its event stream.
    static let reloadTime: Duration = .seconds(60)
    /// Time from the last request of a page to the end of the listener.
    static let idleTime: Duration = .seconds(15 * 60)
    /// Maximum number of secrets, and maximum number of pages. Above these limits, a new secret replaces the oldest one. A new page
    /// replaces the page without an event stream that has been idle longest.
    static let maximumSecrets = 8
    static let maximumPages = 16
    /// Maximum number of event streams. Browsers open at most six connections to the listener, and some of them are needed for requests.
    static let maximumStreams = 4

    private struct Page {
        /// The hashes of the token and of the reload secret. The hash of the reload secret is `nil` after it was used.
        var keys: SavedPages.Page
        var heardAt: Instant
    }

    private struct Stream {
        let number: Int
        /// The hash of the page's token.
        let token: String
    }

    private var secrets: [(secret: String, until: Instant)] = []
    private var pages: [Page] = []
    private var streams: [Stream] = []
    private var lastStream = 0
    /// The time at which the listener was last used: a secret was requested or exchanged, a page made a request, or an event stream ended.
    private var usedAt: Instant

    /// - Parameter saved: the pages from before a restart of the daemon. Their reload secrets are invalid from now on: while the daemon was
    ///   stopped, a program of another user may have served the port, and got the secret from a page that was reloaded.
    init(now: Instant, restoring saved: [SavedPages.Page] = []) {
        usedAt = now
        pages = saved.map { Page(keys: SavedPages.Page(token: $0.token, reload: nil), heardAt: now) }
    }

    /// The pages to restore after a restart.
    var saved: [SavedPages.Page] { pages.map(\.keys) }

    /// Adds a secret, valid once.
    /// - Returns: the time at which it expires.
    mutating func add(secret: String, now: Instant) -> Instant {
        usedAt = now
        secrets.removeAll { $0.until <= now }
        if secrets.count >= Self.maximumSecrets { secrets.removeFirst() }
        secrets.append((secret, now + Self.secretTime))
        return now + Self.secretTime
    }

    /// Exchanges a secret for a new page with the given token and reload secret. The secret is from `hexlist web`, or the reload secret of
    /// an earlier page. It is valid once.
    /// - Returns: whether the secret was valid.
    mutating func exchange(_ secret: String, token: String, reload: String, now: Instant) -> Bool {
        guard take(secret, now) else { return false }
        usedAt = now
        if pages.count >= Self.maximumPages {
            let silent = pages.indices.filter { index in !streams.contains { $0.token == pages[index].keys.token } }
            if let oldest = silent.min(by: { pages[$0].heardAt < pages[$1].heardAt }) { pages.remove(at: oldest) }
        }
        pages.append(Page(keys: SavedPages.Page(token: Self.hash(token), reload: Self.hash(reload)), heardAt: now))
        return true
    }

    mutating func renewReload(of token: String, to reload: String) {
        let hash = Self.hash(token)
        guard let index = pages.firstIndex(where: { $0.keys.token == hash }) else { return }
        pages[index].keys.reload = Self.hash(reload)
    }

    private mutating func take(_ secret: String, _ now: Instant) -> Bool {
        secrets.removeAll { $0.until <= now }
        if let index = secrets.firstIndex(where: { Self.isSame($0.secret, secret) }) {
            secrets.remove(at: index)
            return true
        }
        let hash = Self.hash(secret)
        guard let index = pages.firstIndex(where: { $0.keys.reload == hash }) else { return false }
        let hasStream = streams.contains { $0.token == pages[index].keys.token }
        guard hasStream || now - pages[index].heardAt <= Self.reloadTime else { return false }
        pages[index].keys.reload = nil
        return true
    }

    /// Returns whether a token is valid. Records the time of the request.
    mutating func admit(_ token: String, now: Instant) -> Bool {
        let hash = Self.hash(token)
        guard let index = pages.firstIndex(where: { $0.keys.token == hash }) else { return false }
        pages[index].heardAt = now
        usedAt = now
        return true
    }

    /// Records a new event stream of a page. If `maximumStreams` are open, it replaces the oldest one, whose page reconnects when it
    /// becomes visible.
    /// - Returns: the number of the stream.
    mutating func streamBegan(_ token: String) -> Int {
        if streams.count >= Self.maximumStreams { streams.removeFirst() }
        lastStream += 1
        streams.append(Stream(number: lastStream, token: Self.hash(token)))
        return lastStream
    }

    func isOpen(stream: Int) -> Bool { streams.contains { $0.number == stream } }

    mutating func streamEnded(_ number: Int, now: Instant) {
        guard let index = streams.firstIndex(where: { $0.number == number }) else { return }
        let token = streams.remove(at: index).token
        usedAt = now
        if let page = pages.firstIndex(where: { $0.keys.token == token }) { pages[page].heardAt = now }
    }

    /// The time at which the listener ends; `nil` while there is an event stream.
    var end: Instant? { streams.isEmpty ? usedAt + Self.idleTime : nil }

    private static func hash(_ key: String) -> String {
        Hexadecimal.encode(SHA256.hash(data: Array(key.utf8))).lowercased()
    }

    /// Compares in constant time for texts of equal length.
    private static func isSame(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
