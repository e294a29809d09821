import Crypto
import HexlistModel
import HexlistStore

/// Admits or refuses requests with drop tokens, and applies their rate limits. Performs no IO.
///
/// A token has 128 random bits, so it cannot be guessed. Wrong tokens from an address therefore never cause a valid token to be refused.
struct DropTokenAdmission {
    typealias Instant = ContinuousClock.Instant

    /// Maximum number of requests with one token in an hour.
    static let requestsInHour = 60
    /// Maximum number of concurrent requests with one token. Slow requests thus leave connection slots for guests and other tokens.
    static let requestsAtOnce = 8
    /// Maximum bytes of all bodies with one token in a day, including those of refused and repeated requests.
    static let bytesInDay: Int64 = 2 << 30
    /// Number of wrong tokens from one IP address in an hour after which further wrong tokens get the status 429 instead of 403.
    static let wrongTokensInHour = 20
    private static let hour = Duration.seconds(3_600)
    private static let day = hour * 24
    /// Maximum number of IP addresses whose wrong tokens are counted. A further address replaces the oldest one.
    private static let addressLimit = 256

    enum Admission: Equatable {
        case admitted(DropToken)
        case refused(GuestRefusal)
        /// Refused, and to be logged: this wrong token was the last one below the limit of its IP address. Returned at most once an hour
        /// for all addresses together.
        case limitReached(GuestRefusal)
    }

    private struct Entry {
        var token: DropToken
        /// The times of the requests of the last hour.
        var requests: [Instant] = []
        /// Number of admitted requests that have not ended.
        var running = 0
        /// Number of body bytes since `dayBegan`. A period of 24 h begins with the first byte after the end of the previous period.
        var bytes: Int64 = 0
        var dayBegan: Instant?
    }

    private struct WrongTokens {
        var address: IPAddress
        var count: Int
        var since: Instant
    }

    private var entries: [Entry]
    /// The counts of wrong tokens by IP address, oldest first.
    private var wrongTokens: [WrongTokens] = []
    private var limitReachedAt: Instant?

    init(_ tokens: [DropToken]) { entries = tokens.map { Entry(token: $0) } }

    var count: Int { entries.count }

    mutating func add(_ token: DropToken) { entries.append(Entry(token: token)) }

    mutating func remove(_ peer: PeerID) { entries.removeAll { $0.token.peer == peer } }

    /// Admits or refuses a request with a token. The caller has to call `finish` at the end of each admitted request.
    mutating func admit(_ token: String, from address: IPAddress, now: Instant) -> Admission {
        let hash = SHA256.hash(data: Array(token.utf8))
        // The hash is compared with those of all tokens, each time in constant time, so the time of a reply reveals nothing about a token.
        let found = entries.indices.filter { hash == entries[$0].token.sha256 }
        guard let index = found.first else { return refuse(address, now) }
        entries[index].requests.removeAll { now - $0 >= Self.hour }
        guard entries[index].requests.count < Self.requestsInHour else {
            let wait = Self.hour - (now - (entries[index].requests.first ?? now))
            let minutes = max(1, (wait.components.seconds + 59) / 60)
            return .refused(
                GuestRefusal(
                    status: 429,
                    message: "\(Self.requestsInHour) requests in an hour are the maximum. Try again in \(minutes) minutes."))
        }
        guard entries[index].running < Self.requestsAtOnce else {
            return .refused(
                GuestRefusal(status: 429, message: "\(Self.requestsAtOnce) requests at a time are the maximum. Try again later."))
        }
        if let refusal = count(0, at: index, now: now) { return .refused(refusal) }
        entries[index].requests.append(now)
        entries[index].running += 1
        return .admitted(entries[index].token)
    }

    /// Ends an admitted request.
    mutating func finish(_ peer: PeerID) {
        if let index = entries.firstIndex(where: { $0.token.peer == peer }) { entries[index].running -= 1 }
    }

    /// Counts received bytes of a body.
    /// - Returns: a refusal if the token was removed meanwhile, or if its bytes for the day are used up. The caller then has to end the
    ///   upload.
    mutating func receive(_ bytes: Int, of peer: PeerID, now: Instant) -> GuestRefusal? {
        guard let index = entries.firstIndex(where: { $0.token.peer == peer }) else { return .noToken }
        return count(bytes, at: index, now: now)
    }

    private mutating func count(_ bytes: Int, at index: Int, now: Instant) -> GuestRefusal? {
        if let began = entries[index].dayBegan, now - began >= Self.day { (entries[index].bytes, entries[index].dayBegan) = (0, nil) }
        if entries[index].dayBegan == nil, bytes > 0 { entries[index].dayBegan = now }
        entries[index].bytes += Int64(bytes)
        guard entries[index].bytes >= Self.bytesInDay else { return nil }
        return GuestRefusal(
            status: 429, message: "\(Self.bytesInDay >> 30) GiB a day can be sent with this token. Try again tomorrow.")
    }

    /// Counts a wrong token from an IP address.
    private mutating func refuse(_ address: IPAddress, _ now: Instant) -> Admission {
        wrongTokens.removeAll { now - $0.since >= Self.hour }
        let address = address.subscriber
        let index =
            wrongTokens.firstIndex { $0.address == address }
            ?? {
                if wrongTokens.count >= Self.addressLimit { wrongTokens.removeFirst() }
                wrongTokens.append(WrongTokens(address: address, count: 0, since: now))
                return wrongTokens.count - 1
            }()
        guard wrongTokens[index].count < Self.wrongTokensInHour else {
            return .refused(GuestRefusal(status: 429, message: "Too many wrong addresses were tried from this device."))
        }
        wrongTokens[index].count += 1
        guard wrongTokens[index].count == Self.wrongTokensInHour, limitReachedAt.map({ now - $0 >= Self.hour }) ?? true else {
            return .refused(.noToken)
        }
        limitReachedAt = now
        return .limitReached(.noToken)
    }
}

extension GuestRefusal {
    static let noToken = GuestRefusal(status: 403, message: "This address is not valid, or was removed. Add a new one: hexlist drop add.")
}
