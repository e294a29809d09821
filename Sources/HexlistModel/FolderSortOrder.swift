/// The sort order of a folder's entries.
public enum FolderSortOrder: String, Sendable, CaseIterable {
    /// Names in byte order.
    case name
    /// Largest first; folders have no size and come last.
    case size
    /// Newest first.
    case time
}
