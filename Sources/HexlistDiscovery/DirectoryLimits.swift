import HexlistModel

/// Limits on the memory and work that a network can cause in a peer directory.
public struct DirectoryLimits: Sendable {
    /// Maximum number of peers without stored data. Also limits the announced records (`records`) to twice this number, because an instance
    /// has one record for each interface and IP version. Beyond a limit, entries of unproven peers are evicted first.
    public var instances = 8_192
    public var records: Int { 2 * instances }
    /// Maximum number of resolvers open at once. avahi-daemon allows 1 024 objects per client.
    public var resolvers = 256
    /// Average rate of probes per second.
    public var probesPerSecond = 2.0
    /// Maximum number of urgent probes (new peers, lost sessions) that may be sent at once after a time without probes.
    public var probeBurst = 8
    /// Maximum number of probes in flight.
    public var concurrentProbes = 24

    public init() {}

    /// Maximum number of saved endpoints of a peer, and of endpoints that one probe dials.
    static let endpointsPerProbe = 8
    /// Number of endpoints in a probe that are reserved for the best saved ones, so that forged goodbye packets and announcements cannot
    /// displace them.
    static let rememberedPerProbe = 2
    /// Maximum number of announcements with the same UUID. Anyone can announce any UUID; the newest announcements are kept.
    static let claimsPerPeer = 64
    /// Maximum number of remembered dial results per peer.
    static let dialResultsPerPeer = 128
    /// Maximum bytes of a name, a version, and an error text.
    static let nameBytes = ProtocolLimits.nameBytes
    static let versionBytes = ProtocolLimits.wordBytes
    static let textBytes = 200
    /// Maximum number of earlier boot nonces remembered per peer. A boot nonce is a random number that identifies one run of a peer's
    /// daemon.
    static let formerBoots = 8
    /// Maximum number of configured addresses.
    static let addresses = 1_024
}

/// Intervals and timeouts of a peer directory.
enum DirectoryIntervals {
    /// Interval between periodic probes of a verified peer without a session. With many such peers it grows to `reverifyPerPeer` times
    /// their number.
    static let reverify: Duration = .seconds(60)
    static let reverifyPerPeer: Duration = .milliseconds(500)
    /// Delay between the first failed probe of a verified peer and its repetition.
    static let recheck: Duration = .seconds(5)
    /// Back-off after consecutive failures: 5, 10, 20 … 300 s.
    static let backoff = Backoff(from: .seconds(5), to: .seconds(300))
    /// Random interval between two extra probes of missing peers (trusted peers that stopped answering). All missing peers share this
    /// interval. In addition, the interval for one peer is at least 1/`missingProbeShare` of the time since it was last seen.
    static let missingProbe: ClosedRange<Duration> = .seconds(5) ... .seconds(15)
    static let missingProbeShare = 60
    /// Time after which an unverified peer that is no longer announced is dropped.
    static let forget: Duration = .seconds(90)
    /// Time after its last proof for which a process counts as a participant of an identity conflict. The conflict ends when only one
    /// participant is left.
    static let conflict: Duration = .seconds(100)
    /// Interval between probes of all announced processes of an identity that is in conflict.
    static let conflictCheck: Duration = .seconds(30)
    /// Timeout of a probe. The dial of an address takes up to 3 s, and the Hello up to 5 s.
    static let probe: Duration = .seconds(30)
    /// Rate limit of the probes that a peer's announcements cause: `announcedProbes` at once, then one per `announcedProbe`.
    static let announcedProbe: Duration = .seconds(5)
    static let announcedProbes = 3.0

    /// Number of consecutive failed probes (about 10 minutes) after which a stranger that is no longer announced is not probed any more.
    static let strangerPatience = 7
}
