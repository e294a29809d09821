/// The destination of automatically fetched files of a peer.
public enum AutomaticFetchDestination: String, CaseIterable, Sendable {
    /// The cache, from which files are deleted if space is needed.
    case cache
    /// The download folder.
    case downloads
}
