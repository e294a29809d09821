public import HexlistAPI
public import HexlistModel
public import HexlistStore
public import HexlistTransport

/// The peers, sessions and event log of a node, as file transfers use them. Methods are called on the node's event loop unless they say
/// "Any thread".
public protocol TransfersHost: AnyObject, Sendable {
    /// Whether the node is shutting down, so no new work may start.
    var isStopping: Bool { get }

    /// Whether the peer with this UUID is trusted, regardless of its key.
    func isTrusted(_ peer: PeerID) -> Bool
    /// Whether the peer that proves this key is trusted.
    func isTrusted(_ key: Fingerprint) -> Bool
    /// Whether a session with the peer of this key is open.
    func hasSession(with key: Fingerprint) -> Bool
    func presence(of peer: PeerID) -> PeerPresence
    /// The name of a peer in messages; `nil` for this machine itself.
    func label(of peer: PeerID) -> PeerDisplayName?
    /// Addresses at which a peer can be dialled, the best first.
    func dialTargets(of peer: PeerID) -> [DialTarget]

    /// Dials a verified peer, unless a session is open or a dial is in progress. An opened session is reported by `peerCame`; a failed dial
    /// calls `notReached`, at most once.
    func openSession(with peer: PeerID, notReached: @escaping @Sendable () -> Void)
    /// Asks a peer, over its session, to dial this machine and to serve files on that connection (`FileDial`).
    /// - Returns: `false` if there is no session with a peer that serves files.
    func askToDial(_ peer: PeerID, token: BootNonce) -> Bool

    /// Records an event that a peer caused by fetching files, within the rate limit for events of that peer.
    func record(_ type: EventType, peer: PeerID, data: [String: String])
    /// Converts an instant of the monotonic clock to milliseconds since 1970, for display.
    func milliseconds(of instant: ContinuousClock.Instant) -> Int64
    /// - Throws: `HexlistError` unless a hex can be sent to all of these peers.
    func checkRecipients(_ peers: [PeerID]) throws

    /// Wakes the callers that wait for changes of the node. Any thread.
    func notifyWatchers()
    /// Returns all peers, as `hexlist peers` lists them. Any thread.
    func peers() async throws -> [PeerView]
    /// Finds a peer by the name that the user typed. Any thread.
    /// - Throws: `HexlistError` `notFound`, `ambiguous`.
    func peer(named name: String) async throws -> PeerView
    /// Finds several peers with a single read of the store. Their `why` does not say whether one may be a reinstalled peer. Any thread.
    func peers(named names: [String]) async throws -> [PeerView]
}

/// Whether files can be requested from a peer.
public enum PeerPresence: Sendable {
    /// The peer has no session and was not discovered.
    case absent
    /// The peer has a session, but runs a version that does not serve files.
    case withoutFiles
    case present
}
