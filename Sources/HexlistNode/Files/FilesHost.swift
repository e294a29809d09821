import HexlistModel
import HexlistSession
import HexlistTransport

/// The parts of the node that the owners of files use.
protocol FilesHost: LinkHost, EventHost {
    nonisolated var transport: PeerTransport { get }
    var known: KnownPeers { get }
    var sessions: SessionTable { get }
    var serving: FileServing { get }
    var fetching: FileFetching { get }
    /// The port that peers dial.
    var port: Int { get }
    nonisolated var id: PeerID { get }
    nonisolated var pool: FilePool { get }
    nonisolated var remotes: (any ContentServices)? { get }
    /// Puts files where they belong by what is to be kept.
    func settlePool()
}

extension Node: FilesHost {}
