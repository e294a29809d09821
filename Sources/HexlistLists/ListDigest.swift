import Crypto
import HexlistJSON
import HexlistModel

/// The digest of a list, by which two replicas detect that they differ although each has received all changes of the other. It is the XOR
/// of the nodes' hashes, so that a change of one node updates it.
///
/// It detects faults, such as a disk image that was rolled back. It does not detect a malicious peer, which can choose nodes with any XOR.
public struct ListDigest: Hashable, Sendable, CustomStringConvertible {
    public private(set) var value: UInt64

    public init(_ value: UInt64 = 0) { self.value = value }

    /// Creates the digest of the ids of nodes, which differs if their order differs.
    public init(ofOrder ids: [ListNode.ID]) {
        value = SHA256.hash(data: ids.flatMap(\.uuid.bytes)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Adds a node, or removes one that was added.
    public mutating func toggle(_ node: ListNode, in list: ListNode.ID) { value ^= Self.hash(of: node, in: list) }

    /// 16 hexadecimal digits in lower case.
    public var description: String { ReplicaNumber(value).description }

    /// The first 8 bytes of the SHA-256 of the canonical form, as a big-endian number.
    static func hash(of node: ListNode, in list: ListNode.ID) -> UInt64 {
        SHA256.hash(data: canonicalForm(of: node, in: list)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The node's wire form with complete replica numbers in its versions and without private registers (Docs/Lists.md, "Digest"). For a
    /// link that was deleted on its own, it has only the id and the deletion mark, because some replicas have purged the other values.
    static func canonicalForm(of node: ListNode, in list: ListNode.ID) -> [UInt8] {
        let isReduced = node.id.kind == .link && node.isDeletedAlone
        let place = isReduced ? nil : node.place
        let registers = isReduced ? [] : node.registers.filter { !ListNode.privateRegisters.contains($0.key) }.sorted { $0.key < $1.key }
        var json = JSONWriter(wireCapacity: 512)
        json.object { json in
            if let deletion = node.deletion { json.named("gone") { $0.version(deletion.version) } }
            if let place {
                json.member("in", place.parent.wireText(in: list))
                json.named("inAt") { $0.version(place.version) }
                json.member("key", Base64URL.encode(place.key.bytes))
            }
            json.member("n", node.id.description)
            if !registers.isEmpty {
                json.named("r") { json in
                    json.object { json in
                        for (name, register) in registers {
                            json.named(name.description) { json in
                                json.raw("[")
                                json.version(register.version)
                                json.raw(",")
                                json.string(register.value)
                                json.raw("]")
                            }
                        }
                    }
                }
            }
            if !isReduced, !node.service.isEmpty { json.named("service") { $0.string(node.service) } }
            if !isReduced, let title = node.title {
                json.named("title") { $0.string(title.value) }
                json.named("titleAt") { $0.version(title.version) }
            }
            if !isReduced, !node.url.isEmpty { json.named("url") { $0.string(node.url) } }
            if let place { json.member("was", place.previousParent.wireText(in: list)) }
            if let with = node.deletion?.with { json.member("with", with.description) }
        }
        return json.bytes
    }
}

extension JSONWriter {
    /// Writes `[milliseconds, counter, "replica number"]`.
    fileprivate mutating func version(_ version: ListVersion) {
        raw("[")
        raw(HybridClock.milliseconds(of: version.clock))
        raw(",")
        raw(HybridClock.counter(of: version.clock))
        raw(",")
        string(version.replica.description)
        raw("]")
    }
}
