import HexlistModel

/// Limits on the memory and work that a network can cause in a peer directory.
public struct DirectoryLimits: Sendable {
    /// Maximum peers, and half the maximum of announced records (an instance has one for each interface and IP version). If it is reached,
    /// the oldest announcement of an unproven peer is dropped.
    public var instances = 8_192
    public var records: Int { 2 * instances }
    /// Maximum resolvers open at once. avahi-daemon allows 1 024 objects per client.
    public var resolvers = 256
    /// Average rate of probes per second.
    public var probesPerSecond = 2.0
    /// Maximum burst of urgent probes (newcomers, lost sessions) after a quiet time.
    public var probeBurst = 8
    /// Maximum probes in flight.
    public var concurrentProbes = 24

    public init() {}

    /// Maximum saved endpoints of a peer, and maximum endpoints of a probe.
    static let endpointsPerProbe = 8
    /// Endpoints of a probe reserved for those that answered last, so that forged goodbyes and announcements cannot displace
    /// them.
    static let rememberedPerProbe = 2
    /// Maximum announcements that claim the same UUID. Anyone can announce any UUID; the newest announcements are kept.
    static let claimsPerPeer = 64
    /// Maximum remembered dial results per peer.
    static let dialResultsPerPeer = 128
    /// Maximum bytes of a name, a version, and an error text.
    static let nameBytes = ProtocolLimits.nameBytes
    static let versionBytes = ProtocolLimits.wordBytes
    static let textBytes = 200
    /// Maximum earlier starts remembered per peer.
    static let formerBoots = 8
    /// Maximum configured addresses.
    static let addresses = 1_024
}

/// Intervals and timeouts of a peer directory.
enum DirectoryTimes {
    /// Interval of probes of a verified peer without a session; at least `reverifyPerPeer` times the number of such peers.
    static let reverify: Duration = .seconds(60)
    static let reverifyPerPeer: Duration = .milliseconds(500)
    /// Delay before the first failed probe of a verified peer is repeated.
    static let recheck: Duration = .seconds(5)
    /// Back-off after consecutive failures: 5, 10, 20 … 300 s.
    static let backoff = Backoff(from: .seconds(5), to: .seconds(300))
    /// Random interval between extra probes of trusted peers that stopped answering, for all such peers together. For each peer the
    /// interval is at least 1/`missingProbeShare` of the time since it was last seen.
    static let missingProbe: ClosedRange<Duration> = .seconds(5) ... .seconds(15)
    static let missingProbeShare = 60
    /// Time after which an unverified peer that is no longer announced is dropped.
    static let forget: Duration = .seconds(90)
    /// Two starts of one identity are in conflict if both prove themselves within this time.
    static let conflict: Duration = .seconds(100)
    /// Interval of checks of all candidates while an identity is in conflict.
    static let conflictCheck: Duration = .seconds(30)
    /// Timeout of a probe. A dial takes 3 s per address and a Hello 5 s.
    static let probe: Duration = .seconds(30)
    /// Rate limit of extra probes caused by announcements, per peer: a burst of `announcedProbes`, then one per `announcedProbe`.
    static let announcedProbe: Duration = .seconds(5)
    static let announcedProbes = 3.0

    /// Consecutive failures (about 10 minutes) after which a stranger that is no longer announced is not probed any more.
    static let strangerPatience = 7
}
