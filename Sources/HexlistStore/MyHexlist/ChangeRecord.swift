internal import HexlistLists
internal import HexlistModel

/// A part of a change of My Hexlist, as the column `mineChange.nodes` has it. It suffices to undo the change.
///
/// `mineChanges` finds the changes of a hex by searching the bytes for its id. Therefore records have the container, which an undo does not
/// need, and ids are stored as they are.
enum ChangeRecord {
    /// A hex that was added with everything inside.
    case tree(ListNode.ID, container: ListNode.ID, ListVersion)
    /// Links that were added at once.
    case links(hex: ListNode.ID, ListVersion)
    /// A change of one node. Only the values that it wrote are known, and of a deletion only the hex together with which the node was
    /// deleted.
    /// - container: the hex (or list) that contained the node before the change, or contains a new node; `nil` if it has no place.
    case node(ListChange, container: ListNode.ID?)
    /// A hex or link that was added, and became one with one of another machine when collections were joined.
    case merged(ListNode.ID, container: ListNode.ID?)
}

/// Encodes records. Numbers are big-endian.
struct ChangeRecordEncoder {
    private(set) var bytes: [UInt8] = []
    /// The rows of the table `replica`, to which versions refer.
    var replicaRows: [ReplicaNumber: Int64]

    init(replicaRows: [ReplicaNumber: Int64]) { self.replicaRows = replicaRows }

    fileprivate enum Kind: UInt8 { case tree = 1, links, node, merged }
    /// 2 was a deletion with a version, before the first release with a change log.
    fileprivate enum PartKind: UInt8 {
        case addition = 1, restoring = 3, place, title, register, deletion
        /// The addition of a node of another machine whose values have several versions.
        case changedAddition
    }

    mutating func append(_ record: ChangeRecord) {
        switch record {
        case .tree(let id, let container, let version):
            bytes.append(Kind.tree.rawValue)
            append(id)
            append(container)
            append(version)
        case .links(let hex, let version):
            bytes.append(Kind.links.rawValue)
            append(hex)
            append(version)
        case .node(let change, let container):
            bytes.append(Kind.node.rawValue)
            append(change.after.id)
            append(container)
            let parts = change.parts
            append(parts.count, 1)
            for part in parts { append(part, of: change) }
        case .merged(let id, let container):
            bytes.append(Kind.merged.rawValue)
            append(id)
            append(container)
        }
    }

    private mutating func append(_ part: ListChange.Part, of change: ListChange) {
        let (before, after) = (change.before, change.after)
        switch part {
        case .addition:
            let version = after.version
            let others = after.publicVersions.subtracting([version].compactMap(\.self))
            bytes.append((others.isEmpty ? PartKind.addition : .changedAddition).rawValue)
            append(version)
            guard !others.isEmpty else { return }
            append(others.count, 2)
            for other in others { append(other) }
        case .deletion:
            bytes.append(PartKind.deletion.rawValue)
            append(after.deletion?.with)
        case .restoring:
            bytes.append(PartKind.restoring.rawValue)
            append(after.version)
        case .place:
            bytes.append(PartKind.place.rawValue)
            append(after.place?.version)
            append(after.place?.parent)
            append(after.place?.key.bytes ?? [], 1)
            append(before?.place?.version)
            append(before?.place?.parent)
            append(before?.place?.key.bytes ?? [], 1)
        case .title:
            bytes.append(PartKind.title.rawValue)
            append(after.title?.version)
            append(before?.title?.version)
            append(before?.title?.value.bytes ?? [], 4)
            append(after.title?.value.bytes ?? [], 4)
        case .register(let name):
            bytes.append(PartKind.register.rawValue)
            append(name.bytes, 1)
            append(after.registers[name]?.version)
            append(before?.registers[name]?.version)
            append(before?.registers[name]?.value.bytes ?? [], 4)
            append(after.registers[name]?.value.bytes ?? [], 4)
        }
    }

    private mutating func append(_ number: Int, _ count: Int) { BigEndian.append(UInt64(max(0, number)), count, to: &bytes) }

    private mutating func append(_ text: [UInt8], _ count: Int) {
        append(text.count, count)
        bytes += text
    }

    /// 16 bytes; zeros for none.
    private mutating func append(_ id: ListNode.ID?) {
        BigEndian.append(id?.uuid.high ?? 0, 8, to: &bytes)
        BigEndian.append(id?.uuid.low ?? 0, 8, to: &bytes)
    }

    /// 12 bytes: the time, and the row of the replica; zeros for none.
    private mutating func append(_ version: ListVersion?) {
        BigEndian.append(UInt64(bitPattern: version?.clock ?? 0), 8, to: &bytes)
        BigEndian.append(UInt64(bitPattern: version.flatMap { replicaRows[$0.replica] } ?? 0), 4, to: &bytes)
    }
}

/// Decodes records. Ends at the first one that is incomplete, in a damaged file or a part of the column.
struct ChangeRecordDecoder: Sequence, IteratorProtocol {
    private var rest: ArraySlice<UInt8>
    private let numbers: [Int64: ReplicaNumber]

    /// - Parameter numbers: the numbers of the replicas, by their rows.
    init(_ bytes: [UInt8], numbers: [Int64: ReplicaNumber]) {
        rest = bytes[...]
        self.numbers = numbers
    }

    mutating func next() -> ChangeRecord? {
        guard let kind = rest.popFirst().flatMap(ChangeRecordEncoder.Kind.init) else { return nil }
        switch kind {
        case .tree:
            guard let id = node(), let container = node(), let version = version() else { return nil }
            return .tree(id, container: container, version)
        case .links:
            guard let hex = node(), let version = version() else { return nil }
            return .links(hex: hex, version)
        case .merged:
            guard let id = node(), let container = optionalNode() else { return nil }
            return .merged(id, container: container.value)
        case .node:
            guard let id = node(), let container = optionalNode(), let count = number(1) else { return nil }
            var (before, after) = (ListNode(id: id), ListNode(id: id))
            var parts: Set<ListChange.Part> = []
            for _ in 0..<count {
                guard let part = part(&before, &after) else { return nil }
                parts.insert(part)
            }
            return .node(
                ListChange(before: parts.contains(.addition) ? nil : before, after: after, parts: parts), container: container.value)
        }
    }

    private mutating func part(_ before: inout ListNode, _ after: inout ListNode) -> ListChange.Part? {
        guard let kind = rest.popFirst().flatMap(ChangeRecordEncoder.PartKind.init) else { return nil }
        switch kind {
        case .addition:
            guard let version = version() else { return nil }
            after.title = ListNode.Register(version: version, value: .empty)
            return .addition
        case .changedAddition:
            guard let version = version(), let count = number(2) else { return nil }
            after.title = ListNode.Register(version: version, value: .empty)
            // Only the versions count.
            for index in 0..<count {
                guard let version = self.version() else { return nil }
                after.registers[UTF8Text("\(index)")] = ListNode.Register(version: version, value: .empty)
            }
            return .addition
        case .deletion:
            guard let with = optionalNode() else { return nil }
            after.deletion = DeletionMark(version: ListVersion(clock: 0, replica: ReplicaNumber(0)), with: with.value)
            return .deletion
        case .restoring:
            guard let version = version() else { return nil }
            if after.title == nil { after.title = ListNode.Register(version: version, value: .empty) }
            return .restoring
        case .place:
            guard let version = version(), let parent = node(), let newKey = text(1), let old = optionalVersion(),
                let oldParent = optionalNode(), let key = text(1)
            else { return nil }
            after.place = ListNode.Place(version: version, parent: parent, key: OrderKey(bytes: newKey.bytes))
            if let old = old.value, let oldParent = oldParent.value {
                before.place = ListNode.Place(version: old, parent: oldParent, key: OrderKey(bytes: key.bytes))
            }
            return .place
        case .title:
            guard let version = version(), let old = register(optionalVersion()), let new = text(4) else { return nil }
            before.title = old.value
            after.title = ListNode.Register(version: version, value: new)
            return .title
        case .register:
            guard let name = text(1), let version = optionalVersion(), let old = register(optionalVersion()), let new = text(4) else {
                return nil
            }
            before.registers[name] = old.value
            after.registers[name] = version.value.map { ListNode.Register(version: $0, value: new) }  // `nil` if a merge dropped it
            return .register(name)
        }
    }

    /// A value that may be absent. Methods that return a field return `nil` if the bytes end.
    private struct Field<Value> {
        var value: Value?
    }

    /// Reads the value of a register, which is absent if it has no version.
    private mutating func register(_ version: Field<ListVersion>?) -> Field<ListNode.Register>? {
        guard let version, let text = text(4) else { return nil }
        return Field(value: version.value.map { ListNode.Register(version: $0, value: text) })
    }

    private mutating func number(_ count: Int) -> Int? {
        guard rest.count >= count else { return nil }
        return Int(truncatingIfNeeded: BigEndian.number(count, of: &rest))
    }

    private mutating func text(_ count: Int) -> UTF8Text? {
        guard let length = number(count), length >= 0, rest.count >= length else { return nil }
        defer { rest = rest.dropFirst(length) }
        return UTF8Text(utf8: Array(rest.prefix(length)))
    }

    private mutating func optionalNode() -> Field<ListNode.ID>? {
        guard rest.count >= 16 else { return nil }
        defer { rest = rest.dropFirst(16) }
        return Field(value: UUIDBytes(bytes: rest.prefix(16)).flatMap(ListNode.ID.init))
    }

    private mutating func node() -> ListNode.ID? { optionalNode()?.value }

    private mutating func optionalVersion() -> Field<ListVersion>? {
        guard rest.count >= 12 else { return nil }
        let (clock, row) = (BigEndian.number(8, of: &rest), BigEndian.number(4, of: &rest))
        return Field(value: numbers[row].map { ListVersion(clock: clock, replica: $0) })
    }

    private mutating func version() -> ListVersion? { optionalVersion()?.value }
}

extension ListNode {
    /// The versions of all values that count for undo.
    fileprivate var publicVersions: Set<ListVersion> {
        Set([place?.version, title?.version].compactMap(\.self))
            .union(registers.lazy.filter { !ListNode.privateRegisters.contains($0.key) }.map(\.value.version))
    }
}

/// Big-endian numbers in byte arrays.
enum BigEndian {
    static func append(_ number: UInt64, _ count: Int, to bytes: inout [UInt8]) {
        for shift in stride(from: 8 * (count - 1), through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift))) }
    }

    /// Removes a number from the front. The caller has checked that there are enough bytes.
    static func number<Bytes: Collection<UInt8>>(_ count: Int, of bytes: inout Bytes) -> Int64 where Bytes.SubSequence == Bytes {
        let value = bytes.prefix(count).reduce(0) { $0 << 8 | UInt64($1) }
        bytes = bytes.dropFirst(count)
        return Int64(bitPattern: value)
    }
}
