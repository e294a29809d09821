import HexlistEnvelope
import HexlistModel

/// Detects identity conflicts of peers from the boot nonces in their letters: two machines post with the identity of one peer.
struct RouteConflicts: Sendable {
    /// Milliseconds during which nothing is posted to a peer after the last letter that revealed its conflict.
    static let pause: Int64 = 24 * 3_600_000

    /// The boot nonces in the letters of one peer, and its last conflict.
    struct Entry: Sendable, Equatable {
        var boots: BootHistory
        /// The last conflict; `nil` if there was none.
        var conflict: Conflict?
    }

    struct Conflict: Sendable, Equatable {
        /// The end of the conflict, in milliseconds since 1970.
        var until: Int64
        /// The name of the route on which the conflict was seen.
        var route: String
    }

    private var entries: [PeerID: Entry] = [:]

    init(_ entries: [PeerID: Entry] = [:]) { self.entries = entries }

    enum Change: Equatable {
        case none
        /// The entry of the peer changed and is to be stored.
        case history
        /// A conflict began.
        case conflict
    }

    /// Records a letter of a peer.
    /// - Parameter now: milliseconds since 1970.
    mutating func record(_ boot: BootNonce, of peer: PeerID, signedAt: UInt64, on route: String, now: Int64) -> Change {
        var entry = entries[peer] ?? Entry(boots: BootHistory(present: boot, since: signedAt))
        let isConflict = entry.boots.record(boot, signedAt: signedAt)
        let isNew = isConflict && (entry.conflict?.until ?? now) <= now
        if isConflict { entry.conflict = Conflict(until: now + Self.pause, route: route) }
        guard entries[peer] != entry else { return .none }
        entries[peer] = entry
        return isNew ? .conflict : .history
    }

    mutating func forget(_ peer: PeerID) { entries[peer] = nil }

    /// The route on which a current conflict of the peer was seen; `nil` without a conflict.
    func route(of peer: PeerID, now: Int64) -> String? {
        // A conflict cannot end later than `pause` from now; if it seems to, the clock was set back.
        entries[peer]?.conflict.flatMap { now < $0.until && $0.until <= now + Self.pause ? $0.route : nil }
    }

    /// The peers with a current conflict that was seen on a route, sorted.
    func peers(on route: String, now: Int64) -> [PeerID] {
        entries.keys.filter { self.route(of: $0, now: now) == route }.sorted()
    }

    // MARK: In the store

    /// The stored form of a peer's entry, one line: `PRESENT SINCE CONFLICT-AT PREVIOUS`, followed by ` UNTIL ROUTE` after a conflict.
    /// PRESENT and PREVIOUS are boot nonces; PREVIOUS is `-` if there is none.
    func text(of peer: PeerID) -> String? {
        entries[peer].map { entry in
            let (boots, previous) = (entry.boots, entry.boots.previous.map(\.description) ?? "-")
            let conflict = entry.conflict.map { " \($0.until) \($0.route)" } ?? ""
            return "\(boots.present) \(boots.since) \(boots.conflictAt) \(previous)\(conflict)"
        }
    }
}

extension RouteConflicts.Entry {
    /// Reads `RouteConflicts.text`; `nil` if it has another form.
    init?(text: String) {
        let words = text.split(separator: " ")
        guard words.count == 4 || words.count == 6, let present = BootNonce(words[0]), let since = UInt64(words[1]),
            let conflictAt = UInt64(words[2])
        else { return nil }
        let previous = BootNonce(words[3])
        guard previous != nil || words[3] == "-" else { return nil }
        self.init(boots: BootHistory(present: present, since: since, conflictAt: conflictAt, previous: previous))
        guard words.count == 6 else { return }
        guard let until = Int64(words[4]) else { return nil }
        conflict = RouteConflicts.Conflict(until: until, route: String(words[5]))
    }
}
