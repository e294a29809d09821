public import HexlistAPI
public import HexlistModel
public import HexlistStore
public import HexlistTransport

/// The parts of a node that file transfers use: peers, sessions and the event log. Methods are called on the node's event loop, except
/// those marked "Any thread".
public protocol TransfersHost: AnyObject, Sendable {
    /// Whether the node is stopping. No new work is started then.
    var isStopping: Bool { get }

    /// Whether the peer with this UUID is trusted. Its key is not considered.
    func isTrusted(_ peer: PeerID) -> Bool
    /// Whether the peer with this key is trusted.
    func isTrusted(_ key: Fingerprint) -> Bool
    /// Whether a session with the peer of this key is open.
    func hasSession(with key: Fingerprint) -> Bool
    /// Whether files can be requested from a peer.
    func presence(of peer: PeerID) -> PeerPresence
    /// The name of a peer for messages; `nil` for this machine.
    func label(of peer: PeerID) -> PeerDisplayName?
    /// The addresses at which a peer can be dialled, best first.
    func dialTargets(of peer: PeerID) -> [DialTarget]

    /// Dials a peer that is online, unless a session is open or a dial is in progress. If a session opens, the node calls
    /// `FileTransfers.peerCame`. If the dial fails, it calls `notReached`, at most once.
    func openSession(with peer: PeerID, notReached: @escaping @Sendable () -> Void)
    /// Requests a peer, over its session, to dial this machine and to serve files on the new connection (`FileDial`).
    /// - Returns: `false` if there is no session, or the peer does not serve files.
    func askToDial(_ peer: PeerID, token: BootNonce) -> Bool

    /// Records an event in the event log that a peer caused by fetching files. Events beyond the peer's rate limit are omitted.
    func record(_ type: EventType, peer: PeerID, data: [String: String])
    /// Converts an instant to milliseconds since 1970, to be displayed.
    func milliseconds(of instant: ContinuousClock.Instant) -> Int64
    /// Checks that hexes can be sent to all of these peers.
    /// - Throws: `HexlistError` if not.
    func checkRecipients(_ peers: [PeerID]) throws

    /// Wakes the watchers that wait for changes. Any thread.
    func notifyWatchers()
    /// Returns all peers, as `hexlist peers` lists them. Any thread.
    func peers() async throws -> [PeerView]
    /// Finds a peer by the name that the user typed. Any thread.
    /// - Throws: `HexlistError` `notFound`, `ambiguous`.
    func peer(named name: String) async throws -> PeerView
    /// Finds several peers with one read of the store. Their `why` does not tell whether a peer may be a reinstalled one. Any thread.
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
