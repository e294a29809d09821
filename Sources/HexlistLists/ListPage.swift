import HexlistJSON
import HexlistModel

/// Changed nodes of a list, as one replica sends them to another (Docs/Lists.md, "Pages").
public struct ListPage: Equatable, Sendable {
    public var list: ListNode.ID
    /// The replica number of the sender. Its sequence numbers are `after` and `through`.
    public var replica: ReplicaNumber
    /// The page has the nodes with sequence numbers above `after`, up to and including `through`.
    public var after: Int64
    public var through: Int64
    /// Whether the sender has no further nodes.
    public var isLast: Bool
    public var nodes: [ListNode] = []
    /// The number of received nodes that are malformed or exceed a bound, and were left out.
    public var skipped = 0

    public init(list: ListNode.ID, replica: ReplicaNumber, after: Int64, through: Int64, isLast: Bool) {
        self.list = list
        self.replica = replica
        self.after = after
        self.through = through
        self.isLast = isLast
    }

    /// Whether the page answers a request: it begins after the requested cursor, or at 0 if the cursor does not fit the sender, and leads
    /// further unless it is the last one without nodes. Otherwise requests would never end.
    public func answers(_ request: ListPageRequest, of list: ListNode.ID) -> Bool {
        let start = request.cursor.map { $0.replica == replica ? $0.sequence : 0 } ?? 0
        return self.list == list && (after == start || after == 0) && (after < through || isLast && nodes.isEmpty)
    }

    /// The kind of machine with which pages are exchanged.
    public enum Peer: Sendable {
        /// A machine of the same user. It has the private registers and the entries of shared lists.
        case ownMachine
        case otherPerson
    }
}

/// Encodes a page node by node, within the bounds of a page.
public struct ListPageEncoder: Sendable {
    private let list: ListNode.ID
    private let receiver: ListPage.Peer
    private var rows: [UInt8] = []
    private var count = 0
    private var writers: [ReplicaNumber: Int] = [:]
    private var writersInOrder: [ReplicaNumber] = []

    /// Upper bound of the bytes of a page without its nodes and replica numbers.
    private static let overhead = 256
    /// Bytes of a replica number in the page: 16 digits, quotes and a comma.
    private static let writerBytes = 19

    public init(list: ListNode.ID, receiver: ListPage.Peer) {
        self.list = list
        self.receiver = receiver
    }

    /// Adds a node.
    /// - Returns: `false` if the page is full. The node is not added, and belongs to the next page.
    public mutating func append(_ node: ListNode) -> Bool {
        guard count < ListLimits.pageNodes else { return false }
        let (writers, writersInOrder) = (writers, writersInOrder)
        var json = JSONWriter(wireCapacity: 256)
        write(receiver == .otherPerson ? node.withoutDeletedValues : node, to: &json)
        let size = rows.count + 1 + json.bytes.count + self.writersInOrder.count * Self.writerBytes + Self.overhead
        guard size <= ListLimits.pageBytes || count == 0 else {
            (self.writers, self.writersInOrder) = (writers, writersInOrder)
            return false
        }
        if count > 0 { rows.append(UInt8(ascii: ",")) }
        rows += json.bytes
        count += 1
        return true
    }

    /// Returns the page's JSON.
    public func encoded(replica: ReplicaNumber, after: Int64, through: Int64, isLast: Bool) -> [UInt8] {
        var json = JSONWriter(wireCapacity: rows.count + writersInOrder.count * Self.writerBytes + Self.overhead)
        json.object { json in
            json.named("list") { $0.uuid(list.uuid) }
            json.member("replica", replica.description)
            json.member("after", after)
            json.member("through", through)
            json.member("last", isLast)
            json.member("by", writersInOrder.map(\.description))
            json.named("rows") { json in
                json.raw("[")
                json.raw(rows)
                json.raw("]")
            }
        }
        return json.bytes
    }

    private mutating func write(_ node: ListNode, to json: inout JSONWriter) {
        let version = node.version
        json.object { json in
            json.member("n", node.id.description)
            if let version { json.named("v") { write(version, to: &$0) } }
            if !node.url.isEmpty { json.named("url") { $0.string(node.url) } }
            if !node.service.isEmpty { json.named("service") { $0.string(node.service) } }
            if let title = node.title {
                json.named("title") { $0.string(title.value) }
                if title.version != version { json.named("titleAt") { write(title.version, to: &$0) } }
            }
            if let place = node.place {
                json.member("in", place.parent.wireText(in: list))
                json.member("key", Base64URL.encode(place.key.bytes))
                if place.previousParent != place.parent { json.member("was", place.previousParent.wireText(in: list)) }
                if place.version != version { json.named("inAt") { write(place.version, to: &$0) } }
            }
            writeRegisters(of: node, to: &json)
            if let deletion = node.deletion {
                json.named("gone") { write(deletion.version, to: &$0) }
                if let with = deletion.with { json.member("with", with.description) }
            }
        }
    }

    private mutating func writeRegisters(of node: ListNode, to json: inout JSONWriter) {
        let registers = node.registers.filter { receiver == .ownMachine || !ListNode.privateRegisters.contains($0.key) }
        guard !registers.isEmpty else { return }
        json.named("r") { json in
            json.object { json in
                for (name, register) in registers.sorted(by: { $0.key < $1.key }) {
                    json.named(name.description) { json in
                        json.raw("[")
                        write(register.version, to: &json)
                        json.raw(",")
                        json.string(register.value)
                        json.raw("]")
                    }
                }
            }
        }
    }

    /// Writes `[milliseconds, counter, index of the replica number]`.
    private mutating func write(_ version: ListVersion, to json: inout JSONWriter) {
        let index = writers[version.replica] ?? writersInOrder.count
        if index == writersInOrder.count {
            writers[version.replica] = index
            writersInOrder.append(version.replica)
        }
        json.array([HybridClock.milliseconds(of: version.clock), HybridClock.counter(of: version.clock), Int64(index)]) { $0.raw($1) }
    }
}

extension ListNode.ID {
    /// The id on the wire as a parent: empty for the root.
    func wireText(in list: ListNode.ID) -> String { self == list ? "" : description }
}

extension JSONWriter {
    mutating func string(_ text: UTF8Text) { text.bytes.withUnsafeBytes { string($0) } }
}
