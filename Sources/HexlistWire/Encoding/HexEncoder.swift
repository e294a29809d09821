import HexlistJSON
public import HexlistModel

/// Encodes a hex as the HexJM that is sent.
public enum HexEncoder {
    /// The levels of nesting around a member of a hex inside a wrapper, and around a member of one of its links.
    private static let hexLevel = 2
    private static let linkLevel = 4

    /// One JSON object: all known members, then the unknown ones byte for byte as received (T1).
    ///
    /// Leaves out a kept member whose name this version knows, and one that would be nested deeper in the frame than a receiver takes: it
    /// was received in a text of its own (T5, T18), where levels are counted anew.
    public static func encode(_ hex: HexContent) -> [UInt8] {
        var json = JSONWriter(wireCapacity: hex.byteCount + 128 + hex.links.count * 48)
        json.raw(#"{"senderUUID":"#)
        json.string(hex.senderUUID, of: hex)
        json.raw(#","senderName":"#)
        json.string(hex.senderName, of: hex)
        json.raw(#","hexDescription":"#)
        json.string(hex.hexDescription, of: hex)
        json.raw(#","hexColor":"#)
        json.string(hex.hexColor, of: hex)
        json.raw(#","links":["#)
        for (index, link) in hex.links.enumerated() {
            if index > 0 { json.raw(",") }
            json.raw(#"{"url":"#)
            json.string(link.url, of: hex)
            json.raw(#","linkDescription":"#)
            json.string(link.linkDescription, of: hex)
            json.raw(#","service":"#)
            json.string(link.service, of: hex)
            appendExtra(link.extra, of: hex, level: linkLevel, to: &json) {
                switch LinkMember($0) {
                case .url, .linkDescription, .service: false
                case .fileName, .type, .unknown: true
                }
            }
            json.raw("}")
        }
        json.raw("]")
        appendExtra(hex.extra, of: hex, level: hexLevel, to: &json) {
            switch HexMember($0, .wire) {
            case .senderUUID, .senderName, .hexDescription, .hexColor, .links: false
            case .unknown, .localDescription, .localColor, .key, .packageUUID: true
            }
        }
        json.raw("}")
        return json.bytes
    }

    private static func appendExtra(
        _ extra: TextSlice, of hex: HexContent, level: Int, to json: inout JSONWriter, isKept: (NameBytes) -> Bool
    ) {
        guard !extra.isEmpty else { return }
        hex.withBytes(of: extra) { bytes in
            KeptMembers.forEach(in: bytes, level: level) { name, member in
                guard isKept(name) else { return }
                json.raw(",")
                json.raw(member)
            }
        }
    }
}

/// Iterates over a kept object, `{"a":1}`, member by member.
enum KeptMembers {
    ///   - level: the number of containers open around a member's value.
    ///   - body: receives each name, and the member from its name's quote to its value's end. Members that would be nested too deep are
    ///     skipped, as is everything after a grammar fault.
    static func forEach(in object: UnsafeRawBufferPointer, level: Int, _ body: (NameBytes, UnsafeRawBufferPointer) -> Void) {
        object.withMemoryRebound(to: UInt8.self) { buffer in
            guard let base = buffer.baseAddress, base[0] == UInt8(ascii: "{") else { return }
            let json = JSONScanner(base: base, end: buffer.count)
            var scratch: [UInt8] = []
            do throws(GrammarFault) {
                var position = try json.enterObject(at: 0)
                while json.byte(position) != UInt8(ascii: "}") {
                    let quote = position
                    let token = try json.string(from: quote + 1)
                    let value = try json.value(behindName: token.end + 1)
                    let end = try json.skipValue(at: value, open: 0)
                    if (try? json.skipValue(at: value, open: level)) != nil {
                        json.withName(quote + 1, token, &scratch) { body($0, json.bytes(quote, end)) }
                    }
                    position = try json.nextMember(end)
                }
            } catch {
                return  // kept members were checked when they were received; nothing is sent on from a damaged store
            }
        }
    }
}

extension JSONWriter {
    mutating func string(_ slice: TextSlice, of hex: HexContent) {
        hex.withBytes(of: slice) { string($0) }
    }
}
