public import HexlistAPI
public import HexlistModel
public import HexlistStore
public import HexlistTransport

/// The peers of a node, its sessions and its event log, as file transfers use them. Methods that do not say otherwise are called on the
/// node's event loop.
public protocol TransfersHost: AnyObject, Sendable {
    /// Whether the node is shutting down, so that nothing new begins.
    var isStopping: Bool { get }

    /// Whether a peer is trusted, by its UUID alone.
    func isTrusted(_ peer: PeerID) -> Bool
    /// Whether the peer that proves this key is trusted.
    func isTrusted(_ key: Fingerprint) -> Bool
    /// Whether a session with the peer of this key is open.
    func hasSession(with key: Fingerprint) -> Bool
    func presence(of peer: PeerID) -> PeerPresence
    /// The name of a peer in messages; `nil` for this machine itself.
    func label(of peer: PeerID) -> PeerDisplayName?
    /// The targets at which a peer can be dialled, the best first.
    func dialTargets(of peer: PeerID) -> [DialTarget]

    /// Dials a peer that is verified, unless there is a session or a dial is under way. A session is reported by `peerCame`, a dial that
    /// failed by `notReached`, which is called at most once.
    func openSession(with peer: PeerID, notReached: @escaping @Sendable () -> Void)
    /// Asks a peer, on a session, to dial this machine and serve files there (`FileDial`).
    /// - Returns: `false` if there is no session with a peer that serves files.
    func askToDial(_ peer: PeerID, token: BootNonce) -> Bool

    /// Records an event that a peer caused by fetching files, within its allowance.
    func record(_ type: EventType, peer: PeerID, data: [String: String])
    /// Converts an instant for display to milliseconds since 1970.
    func milliseconds(of instant: ContinuousClock.Instant) -> Int64
    /// - Throws: `HexlistError` unless a hex can be sent to all of these peers.
    func checkRecipients(_ peers: [PeerID]) throws

    /// Makes the callers that wait for changes of the node look again. Any thread.
    func notifyWatchers()
    /// All peers, as `hexlist peers` lists them. Any thread.
    func peers() async throws -> [PeerView]
    /// Finds a peer by the name a person typed. Any thread.
    /// - Throws: `HexlistError` `notFound`, `ambiguous`.
    func peer(named name: String) async throws -> PeerView
    /// Finds several peers, without reading the store again. Their `why` does not say whether one may be a reinstalled peer. Any thread.
    func peers(named names: [String]) async throws -> [PeerView]
}

/// Whether files can be requested of a peer.
public enum PeerPresence: Sendable {
    /// Neither is there a session with it, nor was it seen.
    case absent
    /// It has a session, and runs a version that serves no files.
    case withoutFiles
    case present
}
