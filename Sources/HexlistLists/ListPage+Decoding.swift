public import HexlistJSON
import HexlistModel

extension ListPage {
    /// Decodes a page. Unknown members are ignored. Nodes that are malformed or exceed a bound are left out and counted in `skipped`;
    /// unknown registers and kinds are kept.
    /// - Parameters:
    ///   - bytes: the page's JSON, at most `ListLimits.receivedPageBytes`.
    ///   - sender: entries of shared lists and private registers are accepted from own machines only.
    ///   - isShared: whether it is a page of a shared list. Nodes with a version that is more than `ListLimits.clockAhead` ahead are left out
    ///     then; their machine sends them with other versions when its clock is right.
    ///   - now: milliseconds since 1970.
    /// - Throws: `JSONFault` if the page itself is malformed or has too many nodes; `VersionAhead` if it is a page of a collection, and a
    ///   version is more than `ListLimits.ownClockAhead` ahead.
    public init(decoding bytes: [UInt8], from sender: Peer, isShared: Bool, now: Int64) throws {
        guard bytes.count <= ListLimits.receivedPageBytes else { throw JSONFault("the page is too long") }
        let page = try JSONObject(JSONValue(parsing: bytes))
        guard let list = page["list"]?.string.flatMap({ UUIDBytes($0) }).flatMap({ ListNode.ID($0) }) else {
            throw JSONFault("`list`: the id of a list is expected")
        }
        guard let replica = page["replica"]?.string.flatMap({ ReplicaNumber($0) }) else {
            throw JSONFault("`replica`: 16 hexadecimal digits are expected")
        }
        let (after, through): (Int64, Int64) = (try page.value("after"), try page.value("through"))
        guard 0 <= after, after <= through else { throw JSONFault("`through`: a number from `after` on is expected") }
        guard let writers = page["by"]?.elements(atMost: Self.maximumWriters) else { throw JSONFault("`by`: an array is expected") }
        guard let rows = page["rows"]?.elements(atMost: ListLimits.pageNodes) else {
            throw JSONFault("`rows`: an array of at most \(ListLimits.pageNodes) elements is expected")
        }
        self.init(list: list, replica: replica, after: after, through: through, isLast: try page.value("last"))
        let decoder = NodeDecoder(
            list: list, writers: writers.map { $0.string.flatMap { ReplicaNumber($0) } }, isFromOwnMachine: sender == .ownMachine,
            isShared: isShared,
            latest: HybridClock.latest(milliseconds: now.addingClamped(isShared ? ListLimits.clockAhead : ListLimits.ownClockAhead)))
        nodes.reserveCapacity(rows.count)
        for row in rows { if let node = try decoder.node(row) { nodes.append(node) } else { skipped += 1 } }
    }

    /// A version in a collection is too far ahead. Its node is not left out, because it would never be requested again.
    public struct VersionAhead: Error, Equatable {}

    /// Maximum replica numbers that fit into a page.
    private static let maximumWriters = ListLimits.receivedPageBytes / 19
}

/// Decodes the nodes of one page.
private struct NodeDecoder {
    let list: ListNode.ID
    /// The replica numbers of the page, to which the versions refer by index; `nil` for a malformed number. Nodes with a version that
    /// refers to `nil` are left out.
    let writers: [ReplicaNumber?]
    let isFromOwnMachine: Bool
    let isShared: Bool
    /// The greatest time of a version.
    let latest: Int64

    /// The reason to leave out a node.
    private struct Malformed: Error {}

    /// Returns `nil` if the node is malformed or exceeds a bound.
    func node(_ json: JSONValue) throws(ListPage.VersionAhead) -> ListNode? {
        do {
            return try decode(json)
        } catch let error as ListPage.VersionAhead {
            throw error
        } catch {
            return nil
        }
    }

    private func decode(_ json: JSONValue) throws -> ListNode {
        let members = try JSONObject(json)
        guard let id = try id(members["n"]), isFromOwnMachine || id.kind != .sharedList else { throw Malformed() }
        var node = ListNode(id: id)
        node.url = try text(members["url"]) ?? .empty
        node.service = try text(members["service"]) ?? .empty
        let version = try version(members["v"])
        if let title = try text(members["title"]), let version = try self.version(members["titleAt"]) ?? version {
            node.title = ListNode.Register(version: version, value: title)
        }
        node.place = try place(members, version: version)
        node.registers = try registers(members["r"], atMost: id.kind.maximumRegisters)
        if let version = try self.version(members["gone"]) {
            node.deletion = DeletionMark(version: version, with: try self.id(members["with"]))
        }
        guard node.deletion != nil || node.version != nil, node.textBytes <= ListLimits.nodeBytes else { throw Malformed() }
        return node
    }

    private func place(_ members: JSONObject, version: ListVersion?) throws -> ListNode.Place? {
        guard let parent = try parent(members["in"]) else { return nil }
        guard let key = try string(members["key"]).flatMap({ Base64URL.decode($0.utf8) }), 1...OrderKey.maximumBytes ~= key.count else {
            throw Malformed()
        }
        let previous = try self.parent(members["was"])
        guard let version = try self.version(members["inAt"]) ?? version else { return nil }
        return ListNode.Place(version: version, parent: parent, key: OrderKey(bytes: key), previousParent: previous)
    }

    /// - Parameter maximum: maximum registers besides private ones.
    private func registers(_ json: JSONValue?, atMost maximum: Int) throws -> [UTF8Text: ListNode.Register] {
        guard let json = present(json) else { return [:] }
        guard let members = json.members, members.count <= maximum + ListNode.privateRegisters.count else { throw Malformed() }
        var registers: [UTF8Text: ListNode.Register] = [:]
        for member in members {
            let name = UTF8Text(member.name)
            guard 1...ListLimits.registerNameBytes ~= name.count, let parts = member.value.elements(atMost: 8), parts.count >= 2,
                let value = try text(parts[1])
            else { throw Malformed() }
            guard let version = try version(parts[0]), isFromOwnMachine || !ListNode.privateRegisters.contains(name) else { continue }
            registers[name] = ListNode.Register(version: version, value: value)
        }
        guard registers.keys.count(where: { !ListNode.privateRegisters.contains($0) }) <= maximum else { throw Malformed() }
        return registers
    }

    // MARK: - Values. A missing value and `null` are `nil`, and a value of another type is malformed.

    private func present(_ json: JSONValue?) -> JSONValue? { json.flatMap { $0.isNull ? nil : $0 } }

    private func string(_ json: JSONValue?) throws -> String? {
        guard let json = present(json) else { return nil }
        guard let string = json.string else { throw Malformed() }
        return string
    }

    private func text(_ json: JSONValue?) throws -> UTF8Text? {
        guard let string = try string(json) else { return nil }
        guard string.utf8.count <= ListLimits.textBytes else { throw Malformed() }
        return UTF8Text(string)
    }

    private func id(_ json: JSONValue?) throws -> ListNode.ID? {
        guard let string = try string(json) else { return nil }
        guard string.utf8.count == 22, let id = ListNode.ID(base64url: string.utf8) else { throw Malformed() }
        return id
    }

    /// An id, or an empty string for the root.
    private func parent(_ json: JSONValue?) throws -> ListNode.ID? {
        guard let string = try string(json) else { return nil }
        return string.utf8.isEmpty ? list : try id(json)
    }

    private func version(_ json: JSONValue?) throws -> ListVersion? {
        guard let json = present(json) else { return nil }
        guard let parts = json.elements(atMost: 8), parts.count >= 3, let milliseconds = parts[0].integer,
            let counter = parts[1].integer, let index = parts[2].integer, 0...0xFFFF ~= counter,
            0...HybridClock.milliseconds(of: HybridClock.maximumTime) ~= milliseconds, let position = Int(exactly: index),
            writers.indices.contains(position), let replica = writers[position]
        else { throw Malformed() }
        let clock = milliseconds << 16 | counter
        guard clock > 0 else { throw Malformed() }
        guard clock <= latest else {
            if !isShared { throw ListPage.VersionAhead() }
            throw Malformed()
        }
        return ListVersion(clock: clock, replica: replica)
    }
}

extension ListNode {
    /// The UTF-8 bytes of all texts.
    public var textBytes: Int {
        registers.reduce(url.count + service.count + (title?.value.count ?? 0)) { $0 + $1.key.count + $1.value.value.count }
    }
}
