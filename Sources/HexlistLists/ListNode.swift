/// A row of a list: a hex, a link, or the entry of a shared list. It consists of registers, each with a version, and a deletion mark.
///
/// Nodes with one id form a join-semilattice, and `merge` is its join: replicas that have received the same nodes are equal, in any order
/// and with any repetitions. The exception is a purged node, which has forgotten values (`purge`).
public struct ListNode: Identifiable, Equatable, Sendable {
    public let id: ID
    /// The URL and service of a link, which never change: another URL is another link. Empty for other nodes.
    public var url = UTF8Text.empty
    public var service = UTF8Text.empty
    public var place: Place?
    public var title: Register?
    /// All other registers by name, such as `color`, `done` and `tag/NAME`. Those that this version does not know are kept and passed on.
    public var registers: [UTF8Text: Register] = [:]
    public var deletion: DeletionMark?

    public init(id: ID) { self.id = id }

    /// A value that is written as a whole.
    public struct Register: Hashable, Comparable, Sendable {
        public var version: ListVersion
        public var value: UTF8Text

        public init(version: ListVersion, value: UTF8Text) {
            self.version = version
            self.value = value
        }

        public static func < (left: Register, right: Register) -> Bool {
            left.version == right.version ? left.value < right.value : left.version < right.version
        }
    }

    /// The position of a node in the tree.
    public struct Place: Hashable, Comparable, Sendable {
        public var version: ListVersion
        /// The hex that contains the node, or the list's id.
        public var parent: ID
        public var key: OrderKey
        /// The parent before the last change of parent. The hex returns there if its move would close a cycle.
        public var previousParent: ID

        public init(version: ListVersion, parent: ID, key: OrderKey, previousParent: ID? = nil) {
            self.version = version
            self.parent = parent
            self.key = key
            self.previousParent = previousParent ?? parent
        }

        public static func < (left: Place, right: Place) -> Bool {
            if left.version != right.version { return left.version < right.version }
            if left.parent != right.parent { return left.parent < right.parent }
            if left.key != right.key { return left.key < right.key }
            return left.previousParent < right.previousParent
        }
    }

    /// Registers that only machines of the same user exchange. They count neither for the version of a node nor for the digest, because
    /// members of a shared list do not have them and have to derive the same tree.
    public static let privateRegisters: Set<UTF8Text> = ["read", "seen"]

    /// The register with the members of a hex or link that have no register of their own, as JSON.
    public static let unknownMembers: UTF8Text = "extra"
    /// The beginning of the name of a tag's register.
    public static let tagPrefix = Array("tag/".utf8)

    /// The greatest version among place, title and registers, without private registers; `nil` if there is none.
    public var version: ListVersion? {
        var version = place?.version
        func include(_ other: ListVersion) { version = version.map { max($0, other) } ?? other }
        if let title { include(title.version) }
        for (name, register) in registers where !Self.privateRegisters.contains(name) { include(register.version) }
        return version
    }

    /// The versions of all values and of the deletion mark.
    public var versions: [ListVersion] {
        [place?.version, title?.version, deletion?.version].compactMap(\.self) + registers.values.map(\.version)
    }

    /// The greatest time in the node, for `HybridClock.observe`.
    public var latestTime: Int64 { versions.reduce(0) { max($0, $1.clock) } }

    /// Whether the node has a deletion mark, and none of its values is newer than the mark. If the mark names a hex, the node is deleted
    /// only if that hex is.
    public var isMarkedDeleted: Bool {
        guard let deletion else { return false }
        return version.map { $0 <= deletion.version } ?? true
    }

    /// Whether the node was deleted on its own, so that no other node can revive it.
    public var isDeletedAlone: Bool { isMarkedDeleted && deletion?.with == nil }

    /// Whether the node has lost its values (`purge`).
    public var isPurged: Bool { deletion != nil && place == nil && title == nil && registers.isEmpty }

    /// Adds the private registers of another state of the node that are missing in this one.
    public mutating func addPrivateRegisters(of other: ListNode) {
        for name in Self.privateRegisters where registers[name] == nil { registers[name] = other.registers[name] }
    }

    /// Whether the version of the node is smaller than that of another one; `false` if one of them has no version.
    public func isOlder(than other: ListNode) -> Bool {
        guard let version, let newest = other.version else { return false }
        return version < newest
    }

    // MARK: - Merge

    /// Takes the URL and service of another state of the link, also lesser ones. A purged link has none.
    /// - Returns: whether they differed.
    mutating func takeContent(of other: ListNode) -> Bool {
        guard !isPurged, !other.isPurged, (url, service) != (other.url, other.service) else { return false }
        (url, service) = (other.url, other.service)
        return true
    }

    /// The parts of a node that a merge changed.
    public struct Changes: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let place = Changes(rawValue: 1)
        public static let title = Changes(rawValue: 2)
        public static let registers = Changes(rawValue: 4)
        public static let deletion = Changes(rawValue: 8)
        /// URL or service.
        public static let content = Changes(rawValue: 16)
    }

    /// Merges another node with the same id: of each value, the one with the greater version is kept. If the versions are equal, the
    /// greater bytes are kept, so that replicas are equal even if a faulty program wrote two values with one version.
    ///
    /// A purged link ignores values that its deletion mark covers.
    /// - Parameter isBounded: whether registers are removed above `ListLimits.nodeBytes`, too. Otherwise two writers could make a node that
    ///   no machine accepts.
    @discardableResult
    public mutating func merge(_ other: ListNode, isBounded: Bool = false) -> Changes {
        let wasPurged = id.kind == .link && isPurged
        var changes: Changes = []
        if url < other.url || service < other.service {
            (url, service) = (max(url, other.url), max(service, other.service))
            changes.insert(.content)
        }
        if Self.merge(&place, other.place) { changes.insert(.place) }
        if Self.merge(&title, other.title) { changes.insert(.title) }
        let before = registers
        for (name, register) in other.registers where Self.merge(&registers[name], register) { changes.insert(.registers) }
        if removeOldestRegisters(aboveBytes: isBounded ? ListLimits.nodeBytes : .max), registers == before { changes.remove(.registers) }
        if Self.merge(&deletion, other.deletion) { changes.insert(.deletion) }
        if wasPurged, isDeletedAlone {
            removeValues()
            changes.formIntersection(.deletion)
        }
        return changes
    }

    /// Removes the oldest registers until `Kind.maximumRegisters` are left, and the node has at most `limit` bytes of texts; of registers with
    /// equal versions, the one with the smallest name first. The version of a register never decreases, so the result for the number does not
    /// depend on the order of merges. Private registers are neither counted nor removed.
    /// - Returns: whether a register was removed.
    private mutating func removeOldestRegisters(aboveBytes limit: Int) -> Bool {
        guard registers.count > id.kind.maximumRegisters || limit < .max && textBytes > limit else { return false }
        let shared = sharedRegisters
        var (count, bytes) = (shared.count, textBytes)
        for (name, register) in shared where count > id.kind.maximumRegisters || bytes > limit {
            registers[name] = nil
            (count, bytes) = (count - 1, bytes - name.bytes.count - register.value.bytes.count)
        }
        return count < shared.count
    }

    /// All registers except private ones, oldest first.
    private var sharedRegisters: [(name: UTF8Text, register: Register)] {
        registers.lazy.filter { !Self.privateRegisters.contains($0.key) }.map { ($0.key, $0.value) }
            .sorted { ($0.register.version, $0.name) < ($1.register.version, $1.name) }
    }

    /// Returns the registers with a value that have to be written again, so that a merge that adds a register drops an empty one instead.
    /// - Returns: none if the merge drops no register, or there is no empty one.
    func registersToRewrite(beforeAdding name: UTF8Text) -> [(name: UTF8Text, register: Register)] {
        guard registers.count >= id.kind.maximumRegisters, registers[name] == nil, !Self.privateRegisters.contains(name) else { return [] }
        let shared = sharedRegisters
        guard shared.count >= id.kind.maximumRegisters, let empty = shared.firstIndex(where: \.register.value.isEmpty) else { return [] }
        return Array(shared[..<empty])
    }

    private static func merge<Value: Comparable>(_ value: inout Value?, _ other: Value?) -> Bool {
        guard let other, value.map({ $0 < other }) ?? true else { return false }
        value = other
        return true
    }

    /// Removes the values of a link that was deleted on its own; id and deletion mark remain. Hexes keep their values, because a link
    /// inside can revive them.
    public mutating func purge() {
        guard id.kind == .link, isDeletedAlone else { return }
        removeValues()
    }

    private mutating func removeValues() {
        self = ListNode(id: id, deletion: deletion)
    }

    /// The node for other persons: without the values of a link that was deleted on its own, because a member that joined later has not seen
    /// them.
    var withoutDeletedValues: ListNode {
        var node = self
        node.purge()
        return node
    }

    private init(id: ID, deletion: DeletionMark?) {
        self.id = id
        self.deletion = deletion
    }
}
