/// The order of a folder's entries.
public enum FileOrder: String, Sendable, CaseIterable {
    /// By the bytes of the names.
    case name
    /// The largest first; folders, which have no size, last.
    case size
    /// The newest first.
    case time
}
