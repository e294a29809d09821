internal import HexlistJSON
internal import HexlistLists
internal import HexlistModel

/// The registers of the nodes of My Hexlist: their names, and their form in the column `node.registers`.
enum NodeRegisters {
    static let color: UTF8Text = "color"
    /// UUID and name of the claimed sender of a hex.
    static let sender: UTF8Text = "sender"
    static let senderName: UTF8Text = "senderName"
    static let note: UTF8Text = "note"
    /// The unknown members of a hex or link, without tags and note, as a JSON object.
    static let extra = ListNode.unknownMembers
    private static let tagPrefix = ListNode.tagPrefix

    /// Whether a register is one of those into which `values(ofExtra:)` splits unknown members.
    static func isExtra(_ name: UTF8Text) -> Bool { name == extra || name == note || name.bytes.starts(with: tagPrefix) }

    /// The tag of a register; `nil` for other registers.
    static func tag(_ name: UTF8Text) -> String? {
        name.bytes.starts(with: tagPrefix) ? String(decoding: name.bytes.dropFirst(tagPrefix.count), as: UTF8.self) : nil
    }

    // MARK: - Unknown members

    /// Maximum number of tags that are registers of their own. Leaves room for other registers below `ListLimits.registers`.
    private static let maximumTags = 40

    /// Splits the unknown members of a hex or link, so that two replicas can change different tags, or a tag and the note. A tag is the
    /// register `tag/NAME`, and its value is its number among the tags.
    ///
    /// Members that `extra(of:)` would not join to the same bytes stay together in the register `extra`.
    /// - Parameter bytes: a JSON object; empty for none.
    static func values(ofExtra bytes: [UInt8]) -> [UTF8Text: UTF8Text] {
        guard !bytes.isEmpty else { return [:] }
        var (values, rest): ([UTF8Text: UTF8Text], [JSONMember]) = ([:], [])
        for member in (try? JSONValue(parsing: bytes))?.members ?? [] {
            if member.nameBytes.elementsEqual("tags".utf8), let texts = member.value.elements?.map(\.string), texts.count <= maximumTags {
                for (index, text) in texts.enumerated() {
                    values[UTF8Text(utf8: tagPrefix + Array((text ?? "").utf8))] = UTF8Text(String(index + 1))
                }
            } else if member.nameBytes.elementsEqual("note".utf8), let text = member.value.string {
                values[note] = UTF8Text(text)
            } else {
                rest.append(member)
            }
        }
        if !rest.isEmpty { values[extra] = UTF8Text(utf8: object(rest)) }
        let isExact = extra(of: values) == bytes && values.keys.allSatisfy { $0.count <= ListLimits.registerNameBytes }
        return isExact ? values : [extra: UTF8Text(utf8: bytes)]
    }

    /// Returns the registers of a hex. Empty texts are no registers.
    static func values(
        color: [UInt8], sender: [UInt8], senderName: [UInt8], extra: [UInt8]
    ) -> [UTF8Text: UTF8Text] {
        var values = values(ofExtra: extra)
        for (name, text) in [(Self.color, color), (Self.sender, sender), (Self.senderName, senderName)] where !text.isEmpty {
            values[name] = UTF8Text(utf8: text)
        }
        return values
    }

    /// Joins the unknown members of a hex or link: those of the register `extra`, the note, and the tags.
    /// - Returns: a JSON object; empty for none.
    static func extra(of values: [UTF8Text: UTF8Text]) -> [UInt8] {
        var (members, note): ([UInt8], [UInt8]?) = ([], nil)
        var tags: [(number: Int, name: [UInt8])] = []
        for (name, value) in values where !value.isEmpty {
            if name == Self.extra {
                members = value.bytes
            } else if name == Self.note {
                note = value.bytes
            } else if name.bytes.starts(with: tagPrefix) {
                tags.append((Int(value.description) ?? .max, Array(name.bytes.dropFirst(tagPrefix.count))))
            }
        }
        // Another machine may have written anything into the register.
        let parsed = members.isEmpty ? nil : (try? JSONValue(parsing: members))?.members
        guard note != nil || !tags.isEmpty else { return parsed == nil ? [] : members }
        tags.sort { $0.number == $1.number ? $0.name.lexicographicallyPrecedes($1.name) : $0.number < $1.number }
        var json = JSONWriter()
        json.object { json in
            // The members of a hex with too many tags for registers have `tags` too, if another change of it was merged or undone.
            for member in parsed ?? [] {
                if note != nil, member.nameBytes.elementsEqual("note".utf8) { continue }
                if !tags.isEmpty, member.nameBytes.elementsEqual("tags".utf8) {
                    let names = (member.value.elements ?? []).compactMap { $0.string.map { Array($0.utf8) } }
                    tags = names.map { (0, $0) } + tags.filter { !names.contains($0.name) }
                    continue
                }
                json.member(member.name, member.value)
            }
            if let note { json.member("note", String(decoding: note, as: UTF8.self)) }
            if !tags.isEmpty { json.named("tags") { json in json.array(tags) { $0.string(String(decoding: $1.name, as: UTF8.self)) } } }
        }
        return json.bytes
    }

    private static func object(_ members: [JSONMember]) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in for member in members { json.member(member.name, member.value) } }
        return json.bytes
    }

    // MARK: - The column

    /// Returns the registers as bytes; `nil` if there are none. For each register: the length of its name (1 byte), the name, the clock (8),
    /// the row of the replica (4), the length of its value (4), the value. Numbers are big-endian.
    static func encode(_ registers: some Sequence<(name: UTF8Text, clock: Int64, replica: Int64, value: UTF8Text)>) -> [UInt8]? {
        var bytes: [UInt8] = []
        for register in registers {
            bytes.append(UInt8(clamping: register.name.count))
            bytes += register.name.bytes.prefix(255)
            BigEndian.append(UInt64(bitPattern: register.clock), 8, to: &bytes)
            BigEndian.append(UInt64(bitPattern: register.replica), 4, to: &bytes)
            BigEndian.append(UInt64(register.value.count), 4, to: &bytes)
            bytes += register.value.bytes
        }
        return bytes.isEmpty ? nil : bytes
    }

    /// Joins the unknown members of a hex or link, as `extra(of:)` does. Copies no other values, which may have 64 KiB each.
    static func extra(inColumn bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var values: [UTF8Text: UTF8Text] = [:]
        forEachRegister(in: bytes[...]) { name, _, _, value in
            let name = UTF8Text(utf8: Array(name))
            if isExtra(name) { values[name] = UTF8Text(utf8: Array(value)) }
        }
        return extra(of: values)
    }

    /// Calls `body` with each register. Stops at the first one that is incomplete, in a damaged file.
    static func decode(_ bytes: [UInt8], _ body: (_ name: UTF8Text, _ clock: Int64, _ replica: Int64, _ value: UTF8Text) -> Void) {
        forEachRegister(in: bytes[...]) { body(UTF8Text(utf8: Array($0)), $1, $2, UTF8Text(utf8: Array($3))) }
    }

    private static func forEachRegister<Bytes: Collection<UInt8>>(
        in bytes: Bytes, _ body: (_ name: Bytes, _ clock: Int64, _ replica: Int64, _ value: Bytes) -> Void
    ) where Bytes.SubSequence == Bytes {
        var rest = bytes
        while let length = rest.popFirst().map(Int.init), rest.count >= length + 16 {
            let name = rest.prefix(length)
            rest = rest.dropFirst(length)
            let (clock, replica, count) = (
                BigEndian.number(8, of: &rest), BigEndian.number(4, of: &rest), Int(BigEndian.number(4, of: &rest))
            )
            guard rest.count >= count else { return }
            body(name, clock, replica, rest.prefix(count))
            rest = rest.dropFirst(count)
        }
    }
}
