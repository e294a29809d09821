/// A change of one node, for the change log and for undo.
public struct ListChange: Equatable, Sendable {
    /// The node before the change; `nil` if this replica did not have it.
    public var before: ListNode?
    public var after: ListNode
    /// The parts of a change that was reduced to its written values; `nil` if both nodes are complete.
    private var writtenParts: Set<Part>?
    /// Whether its state was `present` before. A node whose mark names a hex is deleted only if that hex is, which the node does not tell.
    private let wasShown: Bool

    public init(before: ListNode?, after: ListNode, wasShown: Bool = false) {
        self.before = before
        self.after = after
        self.wasShown = wasShown
    }

    /// Creates a change of which only the written values are known. It suffices for `ListTransaction.undo`.
    /// - Parameters:
    ///   - before: the values before, of the given parts.
    ///   - after: the values after, of the given parts, with their versions. Of an addition or restoring, at least the latest value.
    public init(before: ListNode?, after: ListNode, parts: Set<Part>) {
        self.init(before: before, after: after, wasShown: false)
        writtenParts = parts
    }

    /// A part of a node that a change wrote.
    public enum Part: Hashable, Sendable {
        case addition, deletion, restoring, place, title
        case register(UTF8Text)
    }

    /// The parts whose values differ. A part that was written again with the same value is not included.
    public var parts: Set<Part> {
        if let writtenParts { return writtenParts }
        guard let before else { return [.addition] }
        var parts: Set<Part> = []
        let wasDeleted = before.isDeletedAlone || before.isMarkedDeleted && !wasShown
        if !wasDeleted, after.isMarkedDeleted, !before.isMarkedDeleted || before.deletion != after.deletion { parts.insert(.deletion) }
        if wasDeleted, !after.isMarkedDeleted { parts.insert(.restoring) }
        if before.title?.value != after.title?.value { parts.insert(.title) }
        if before.place?.parent != after.place?.parent || before.place?.key != after.place?.key { parts.insert(.place) }
        // A merge may drop an empty register. That changes no value.
        for name in Set(before.registers.keys).union(after.registers.keys)
        where before.registers[name]?.value ?? .empty != after.registers[name]?.value ?? .empty {
            parts.insert(.register(name))
        }
        return parts
    }
}
