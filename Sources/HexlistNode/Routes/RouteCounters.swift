import HexlistEnvelope
import HexlistModel

/// The traffic of one route since the start. An envelope is counted once, when it is removed.
struct RouteCounters: Sendable {
    var dropped: [EnvelopeFault.Reason: Int] = [:]
    /// The trusted peer of the last envelope that was dropped because it was signed more than a day ahead of this machine's clock, and the
    /// lead in milliseconds.
    var early: (peer: PeerID, lead: UInt64)?
    /// The times of the last received and the last posted envelope, in milliseconds since 1970; `nil` if there was none.
    private(set) var lastIn: Int64?
    private(set) var lastOut: Int64?

    mutating func arrived(at now: Int64) { lastIn = now }

    mutating func posted(at now: Int64) { lastOut = now }
}
