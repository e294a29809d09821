/// Who may use the page: the secrets that were given out, the pages that have a token, and their event streams. Time and random values
/// come in.
struct PageKeys {
    typealias Instant = ContinuousClock.Instant

    /// How long a secret of `hexlist web` is good: a browser has opened its page by then.
    static let secretTime: Duration = .seconds(30)
    /// How long after a page was last heard of its reload secret is good.
    static let reloadTime: Duration = .seconds(60)
    /// How long after the last page was heard of the listener ends.
    static let idleTime: Duration = .seconds(15 * 60)
    /// The most secrets, of which the oldest ends when there is another; and the most pages, likewise: the one
    /// that was not heard of for longest, and has no event stream.
    static let secretsAtMost = 8
    static let pagesAtMost = 16
    /// The most event streams. A browser opens six connections to one address, and a page needs one for its requests.
    static let streamsAtMost = 4

    private struct Page {
        let token: String
        /// `nil` once it was used.
        var reload: String?
        var heardAt: Instant
    }

    private struct Stream {
        let number: Int
        let token: String
    }

    private var secrets: [(secret: String, until: Instant)] = []
    private var pages: [Page] = []
    private var streams: [Stream] = []
    private var lastStream = 0
    /// When somebody last asked for a secret, or a page was heard of.
    private var usedAt: Instant

    init(now: Instant) { usedAt = now }

    /// Adds a secret that is good once.
    /// - Returns: when it ends.
    mutating func add(secret: String, now: Instant) -> Instant {
        usedAt = now
        secrets.removeAll { $0.until <= now }
        if secrets.count >= Self.secretsAtMost { secrets.removeFirst() }
        secrets.append((secret, now + Self.secretTime))
        return now + Self.secretTime
    }

    /// Makes a page of a secret, which is used up by that: one of `hexlist web`, or the reload secret of a page that was here lately.
    /// - Returns: whether it was one.
    mutating func exchange(_ secret: String, token: String, reload: String, now: Instant) -> Bool {
        guard take(secret, now) else { return false }
        usedAt = now
        if pages.count >= Self.pagesAtMost {
            let silent = pages.indices.filter { index in !streams.contains { $0.token == pages[index].token } }
            if let oldest = silent.min(by: { pages[$0].heardAt < pages[$1].heardAt }) { pages.remove(at: oldest) }
        }
        pages.append(Page(token: token, reload: reload, heardAt: now))
        return true
    }

    private mutating func take(_ secret: String, _ now: Instant) -> Bool {
        secrets.removeAll { $0.until <= now }
        if let index = secrets.firstIndex(where: { Self.isSame($0.secret, secret) }) {
            secrets.remove(at: index)
            return true
        }
        guard let index = pages.firstIndex(where: { $0.reload.map { Self.isSame($0, secret) } ?? false }) else { return false }
        let isHere = streams.contains { Self.isSame($0.token, pages[index].token) }
        guard isHere || now - pages[index].heardAt <= Self.reloadTime else { return false }
        pages[index].reload = nil
        return true
    }

    /// Whether a request comes from a page. Notes that the page is there.
    mutating func admit(_ token: String, now: Instant) -> Bool {
        guard let index = pages.firstIndex(where: { Self.isSame($0.token, token) }) else { return false }
        pages[index].heardAt = now
        usedAt = now
        return true
    }

    /// Notes an event stream of a page. One too many ends the oldest; its page begins another when it is looked at.
    /// - Returns: the number of the stream.
    mutating func streamBegan(_ token: String) -> Int {
        if streams.count >= Self.streamsAtMost { streams.removeFirst() }
        lastStream += 1
        streams.append(Stream(number: lastStream, token: token))
        return lastStream
    }

    func isOpen(stream: Int) -> Bool { streams.contains { $0.number == stream } }

    mutating func streamEnded(_ number: Int, now: Instant) {
        guard let index = streams.firstIndex(where: { $0.number == number }) else { return }
        let token = streams.remove(at: index).token
        usedAt = now
        if let page = pages.firstIndex(where: { Self.isSame($0.token, token) }) { pages[page].heardAt = now }
    }

    /// When the listener ends; `nil` while a page listens to events.
    var end: Instant? { streams.isEmpty ? usedAt + Self.idleTime : nil }

    /// Takes as long for any text of one length: nobody finds a secret by trying beginnings of it.
    private static func isSame(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
