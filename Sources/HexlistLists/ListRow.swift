/// A stored node with its place in the tree, as derived from all nodes of the list.
public struct ListRow: Equatable, Sendable {
    public var node: ListNode
    /// The hex in which the node is shown, or the list's id. `nil` if it is shown in the root because its parent is unknown, and for nodes
    /// of unknown kinds.
    public var container: ListNode.ID?
    public var state = State.deleted
    /// For a hex, the number of leaves in it that are shown.
    public var leaves = 0

    public init(node: ListNode) { self.node = node }

    public init(node: ListNode, container: ListNode.ID?, state: State, leaves: Int) {
        self.node = node
        self.container = container
        self.state = state
        self.leaves = leaves
    }

    public enum State: Int, Sendable {
        case present
        /// Deleted, or of an unknown kind.
        case deleted
        /// A hex that was deleted, but is shown because something in it is.
        case retained
    }
}
