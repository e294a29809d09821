import HexlistModel

/// The bounds of a peer directory: what a network may make it hold, and do.
public struct DirectoryLimits: Sendable {
    /// Peers tracked, and half the announced records (there is one for each interface and IP version of an instance). Beyond it the
    /// oldest announcement that nothing proved makes room.
    public var instances = 8_192
    public var records: Int { 2 * instances }
    /// Resolvers open at once; avahi-daemon refuses one client beyond 1 024 objects.
    public var resolvers = 256
    /// Probes begun a second, lastingly.
    public var probesPerSecond = 2.0
    /// Probes saved up from quiet seconds for what should not wait: a newcomer, a lost session.
    public var probeBurst = 8
    /// Probes under way at once.
    public var concurrentProbes = 24

    public init() {}

    /// Saved endpoints of one peer, and endpoints of one probe.
    static let endpointsPerProbe = 8
    /// Of those, the places for where a peer answered last: goodbyes and announcements, which can be forged, take them from nobody.
    static let rememberedPerProbe = 2
    /// Announcements that claim one UUID. Anybody can announce any UUID, so the newest are kept.
    static let claimsPerPeer = 64
    /// Places of one peer something is remembered about.
    static let marksPerPeer = 128
    /// Bytes of a name, a version, and a text about a failure.
    static let nameBytes = ProtocolLimits.nameBytes
    static let versionBytes = ProtocolLimits.wordBytes
    static let textBytes = 200
    /// Earlier starts remembered of one peer.
    static let formerBoots = 8
    /// Static addresses.
    static let addresses = 1_024
}

/// The clock of SURFACE's "Peers and ghosts".
enum DirectoryTimes {
    /// A verified peer without a session is probed again after this, or `reverifyPerPeer` for each of them if that is longer.
    static let reverify: Duration = .seconds(60)
    static let reverifyPerPeer: Duration = .milliseconds(500)
    /// A verified peer's first failure is repeated after this.
    static let recheck: Duration = .seconds(5)
    /// Between an endpoint's failures in a row: 5, 10, 20 … 300 s.
    static let backoff = Backoff(from: .seconds(5), to: .seconds(300))
    /// Between two probes of trusted peers that fell silent, out of their turn, whoever they are: a random time. One that was silent for
    /// long is asked after a part of that time at the soonest.
    static let lookout: ClosedRange<Duration> = .seconds(5) ... .seconds(15)
    static let lookoutShare = 60
    /// An announcement that is gone and was never verified.
    static let forget: Duration = .seconds(90)
    /// Two starts of one identity are a conflict while each of them proved itself within this time.
    static let conflict: Duration = .seconds(100)
    /// While there is one, whoever has the identity is asked so often.
    static let conflictCheck: Duration = .seconds(30)
    /// A probe nobody ended. A dial takes 3 s an address and a Hello 5 s.
    static let probe: Duration = .seconds(30)
    /// What announcements may cost one peer in probes beyond the schedule: 3 at once, then one in this time.
    static let announcedProbe: Duration = .seconds(5)
    static let announcedProbes = 3.0

    /// After this many failures in a row (about 10 minutes) a stranger that is no longer announced is left alone.
    static let strangerPatience = 7
}
