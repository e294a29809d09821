import HexlistModel

extension JSONValue {
    /// The value in canonical form, the same for values that differ only in the order of members, in escapes, and in white space: members
    /// sorted by their names, those of one name in their order. A number is kept as its text.
    public var canonicalBytes: [UInt8] {
        var json = JSONWriter()
        writeCanonical(to: &json)
        return json.bytes
    }

    private func writeCanonical(to json: inout JSONWriter) {
        if let members {
            let sorted = members.enumerated().sorted { left, right in
                if left.element.nameBytes.elementsEqual(right.element.nameBytes) { return left.offset < right.offset }
                return left.element.nameBytes.lexicographicallyPrecedes(right.element.nameBytes)
            }
            json.object { json in
                for (_, member) in sorted { json.named(member.name) { member.value.writeCanonical(to: &$0) } }
            }
        } else if let elements {
            json.array(elements) { $1.writeCanonical(to: &$0) }
        } else if let string, !string.unicodeScalars.contains("\u{FFFD}") {
            json.string(string)
        } else {
            // A lone surrogate reads as U+FFFD, which would make different strings equal.
            json.raw(bytes)
        }
    }
}
