import HexlistEnvelope
import HexlistModel

/// Identity conflicts of peers that show in their letters: two machines post with the identity of one peer.
struct RouteConflicts: Sendable {
    /// Milliseconds after the last letter of the second machine during which nothing is posted to the peer.
    static let time: Int64 = 24 * 3_600_000

    /// The history of one peer.
    struct Entry: Sendable, Equatable {
        var boots: BootHistory
        /// The end of the conflict, in milliseconds since 1970; 0 if there was none.
        var until: Int64 = 0
        /// The name of the route on which the conflict was seen; empty if there was none.
        var route = ""
    }

    private var entries: [PeerID: Entry] = [:]

    init(_ entries: [PeerID: Entry] = [:]) { self.entries = entries }

    enum Change: Equatable {
        case none
        /// The history changed and is to be stored.
        case history
        /// A conflict began.
        case conflict
    }

    /// Records a letter of a peer.
    /// - Parameter now: milliseconds since 1970.
    mutating func record(_ boot: BootNonce, of peer: PeerID, signedAt: UInt64, on route: String, now: Int64) -> Change {
        var entry = entries[peer] ?? Entry(boots: BootHistory(present: boot, since: signedAt))
        let isSecond = entry.boots.record(boot, signedAt: signedAt)
        let isNew = isSecond && entry.until <= now
        if isSecond { (entry.until, entry.route) = (now + Self.time, route) }
        guard entries[peer] != entry else { return .none }
        entries[peer] = entry
        return isNew ? .conflict : .history
    }

    /// The route on which a present conflict of the peer was seen; `nil` without a conflict.
    func route(of peer: PeerID, now: Int64) -> String? {
        // A conflict cannot end later than `time` from now; if it seems to, the clock was set back.
        entries[peer].flatMap { now < $0.until && $0.until <= now + Self.time ? $0.route : nil }
    }

    /// The peers with a present conflict that was seen on a route, sorted.
    func peers(on route: String, now: Int64) -> [PeerID] {
        entries.keys.filter { self.route(of: $0, now: now) == route }.sorted()
    }

    // MARK: In the store

    /// One line: `PRESENT SINCE PREVIOUS UNTIL ROUTE`, with `-` for no previous nonce and for no route.
    func text(of peer: PeerID) -> String? {
        entries[peer].map { entry in
            let previous = entry.boots.previous.map(\.description) ?? "-"
            return "\(entry.boots.present) \(entry.boots.since) \(previous) \(entry.until) \(entry.route.isEmpty ? "-" : entry.route)"
        }
    }
}

extension RouteConflicts.Entry {
    /// Reads `RouteConflicts.text`; `nil` if it has another form.
    init?(text: String) {
        let words = text.split(separator: " ")
        guard words.count == 5, let present = BootNonce(words[0]), let since = UInt64(words[1]), let until = Int64(words[3]) else {
            return nil
        }
        let previous = BootNonce(words[2])
        guard previous != nil || words[2] == "-" else { return nil }
        self.init(
            boots: BootHistory(present: present, since: since, previous: previous), until: until,
            route: words[4] == "-" ? "" : String(words[4]))
    }
}
