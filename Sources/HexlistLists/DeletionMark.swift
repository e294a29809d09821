/// The deletion of a node, with the version that the node had then. If another replica changes the node before it receives the deletion,
/// the node's version becomes greater, and the node stays.
public struct DeletionMark: Hashable, Comparable, Sendable {
    /// The greatest version among the node's values, as the deleting replica saw them.
    public let version: ListVersion
    /// The hex with which the node was deleted: if that hex is not deleted after all, neither is the node. `nil` if the node was deleted
    /// on its own.
    public let with: ListNode.ID?

    public init(version: ListVersion, with: ListNode.ID? = nil) {
        self.version = version
        self.with = with
    }

    /// The order for merging: by version; a node's own deletion is greater than one together with a hex; then by the hex.
    public static func < (left: DeletionMark, right: DeletionMark) -> Bool {
        guard left.version == right.version else { return left.version < right.version }
        return switch (left.with, right.with) {
        case (let left?, let right?): left < right
        case (_?, nil): true
        case (nil, _): false
        }
    }
}
