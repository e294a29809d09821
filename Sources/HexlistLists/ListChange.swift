/// A change of one node, for the change log and for undo.
public struct ListChange: Equatable, Sendable {
    /// The node before the change; `nil` if this replica did not have it.
    public var before: ListNode?
    public var after: ListNode

    public init(before: ListNode?, after: ListNode) {
        self.before = before
        self.after = after
    }

    /// A part of a node that a change wrote.
    public enum Part: Hashable, Sendable {
        case addition, deletion, restoring, place, title
        case register(UTF8Text)
    }

    /// The parts whose values differ. A part that was written again with the same value is not included.
    public var parts: Set<Part> {
        guard let before else { return [.addition] }
        var parts: Set<Part> = []
        if !before.isMarkedDeleted, after.isMarkedDeleted { parts.insert(.deletion) }
        if before.isMarkedDeleted, !after.isMarkedDeleted { parts.insert(.restoring) }
        if before.title?.value != after.title?.value { parts.insert(.title) }
        if before.place?.parent != after.place?.parent || before.place?.key != after.place?.key { parts.insert(.place) }
        for name in Set(before.registers.keys).union(after.registers.keys)
        where before.registers[name]?.value != after.registers[name]?.value {
            parts.insert(.register(name))
        }
        return parts
    }
}
