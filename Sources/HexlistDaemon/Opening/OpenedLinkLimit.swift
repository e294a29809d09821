import HexlistModel

/// The rate limit for links of received hexes that are opened in the browser.
struct OpenedLinkLimit {
    /// Maximum number of links that are opened within `period`, for all peers together. A browser stays usable with that many new tabs.
    static let maximumLinks = PeerChange.mostOpenLinks
    static let period = Duration.seconds(60)

    /// The times of the links opened within the last period, oldest first; at most `maximumLinks`.
    private var opened: [ContinuousClock.Instant] = []

    /// Returns the links of a hex that are to be opened, and counts them.
    /// - Parameters:
    ///   - urls: the links of the hex, in order. Links that are not http or https, or that `LinkTarget` refuses, are skipped.
    ///   - limit: maximum number of links of one hex of this peer.
    mutating func take(_ urls: [String], limit: Int, now: ContinuousClock.Instant) -> [Link] {
        opened.removeAll { now - $0 >= Self.period }
        var taken: [Link] = []
        for url in urls {
            guard taken.count < limit, opened.count < Self.maximumLinks else { break }
            guard let host = try? LinkTarget(url, schemes: ["http", "https"]).host else { continue }
            taken.append(Link(url: url, host: host))
            opened.append(now)
        }
        return taken
    }

    /// A link to open, with the host that is shown to the user.
    struct Link: Equatable {
        var url: String
        var host: String
    }
}
