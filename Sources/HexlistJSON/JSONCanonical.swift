import HexlistModel

extension JSONValue {
    /// The canonical form. It is the same for values that differ only in member order, escapes and white space. Members are sorted by name;
    /// members with the same name keep their order. Numbers are compared as text.
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
            // `string` is not used, because it replaces lone surrogates by U+FFFD, which would make different strings equal.
            json.raw(bytes)
        }
    }
}
