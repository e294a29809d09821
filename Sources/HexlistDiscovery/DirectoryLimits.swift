import HexlistModel

/// The bounds of a peer directory: what a network can make it store and do.
public struct DirectoryLimits: Sendable {
    /// The most peers tracked, and half the most announced records (each interface and IP version of an instance has one). Beyond it the
    /// oldest announcement of an unproven peer is dropped.
    public var instances = 8_192
    public var records: Int { 2 * instances }
    /// The most resolvers open at once; avahi-daemon refuses a client more than 1 024 objects.
    public var resolvers = 256
    /// Probes begun per second, on average.
    public var probesPerSecond = 2.0
    /// The most probes saved up in quiet seconds, for those that should not wait: newcomers, lost sessions.
    public var probeBurst = 8
    /// The most probes under way at once.
    public var concurrentProbes = 24

    public init() {}

    /// The most saved endpoints of one peer, and endpoints of one probe.
    static let endpointsPerProbe = 8
    /// The endpoints of a probe that are reserved for places where the peer answered last. Goodbyes and announcements, which can be forged,
    /// cannot take them.
    static let rememberedPerProbe = 2
    /// The most announcements that claim one UUID. Anybody can announce any UUID, so the newest are kept.
    static let claimsPerPeer = 64
    /// The most places per peer with a remembered mark.
    static let marksPerPeer = 128
    /// The most bytes of a name, of a version, and of a text about a failure.
    static let nameBytes = ProtocolLimits.nameBytes
    static let versionBytes = ProtocolLimits.wordBytes
    static let textBytes = 200
    /// The most earlier starts remembered per peer.
    static let formerBoots = 8
    /// The most static addresses.
    static let addresses = 1_024
}

/// The times and patience of a peer directory.
enum DirectoryTimes {
    /// The time after which a verified peer without a session is probed again; `reverifyPerPeer` times their number if that is longer.
    static let reverify: Duration = .seconds(60)
    static let reverifyPerPeer: Duration = .milliseconds(500)
    /// The time after which the first failed probe of a verified peer is repeated.
    static let recheck: Duration = .seconds(5)
    /// The pauses after failures in a row: 5, 10, 20 … 300 s.
    static let backoff = Backoff(from: .seconds(5), to: .seconds(300))
    /// The time between two probes out of turn of trusted peers that fell silent, over all such peers: random within these bounds. A peer
    /// that has been silent for long is asked after one `lookoutShare`-th of that time at the soonest.
    static let lookout: ClosedRange<Duration> = .seconds(5) ... .seconds(15)
    static let lookoutShare = 60
    /// The time after which a peer that is no longer announced and was never verified is forgotten.
    static let forget: Duration = .seconds(90)
    /// The time within which two starts of one identity must both have proved themselves to be a conflict.
    static let conflict: Duration = .seconds(100)
    /// The time between two checks of all who may have an identity while it is in conflict.
    static let conflictCheck: Duration = .seconds(30)
    /// The time after which a probe counts as ended. A dial takes 3 s per address and a Hello 5 s.
    static let probe: Duration = .seconds(30)
    /// The probes that announcements may cause for one peer beyond the schedule: `announcedProbes` at once, then one per `announcedProbe`.
    static let announcedProbe: Duration = .seconds(5)
    static let announcedProbes = 3.0

    /// The failures in a row (about 10 minutes) after which a stranger that is no longer announced is not asked again.
    static let strangerPatience = 7
}
