import HexlistJSON
public import HexlistModel

/// Encodes a hex as a HexJM.
public enum HexEncoder {
    /// The nesting depth that the members of a hex have in a wrapper.
    private static let hexLevel = 2

    /// Returns the hex as a JSON object: known members first, then unknown ones byte for byte (rule T1). `children` is written only if the
    /// hex contains hexes.
    ///
    /// An unknown member is omitted if this version knows its name by now, or if it would exceed the nesting limit. The latter happens if
    /// the member was received in a string (rules T5 and T18), where nesting is counted from 0.
    public static func encode(_ hex: HexContent) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(hex.byteCount + 128 + hex.allLinkCount * 48 + hex.children.count * 96)
        append(hex, to: &bytes)
        return bytes
    }

    /// Appends the encoded hex.
    /// - Parameter senders: replaces the hex's members for the sender. It is a result of `senders(uuid:name:)`.
    public static func append(_ hex: HexContent, senders: [UInt8]? = nil, to bytes: inout [UInt8]) {
        JSONWriter.append(to: &bytes) { json in
            let top = Node(hex)
            begin(top, senders, of: hex, level: hexLevel, to: &json)
            if hex.children.isEmpty {
                finish(top, of: hex, level: hexLevel, to: &json)
            } else {
                appendChildren(of: top, hex, to: &json)
            }
        }
    }

    /// The beginning of an encoded hex: the opening brace, and the two members for the sender.
    public static func senders(uuid: String, name: String) -> [UInt8] {
        var json = JSONWriter(wireCapacity: 96)
        json.raw(#"{"senderUUID":"#)
        json.string(uuid)
        json.raw(#","senderName":"#)
        json.string(name)
        return json.bytes
    }

    /// The outermost hex or an inner hex.
    private struct Node {
        var senderUUID, senderName, hexDescription, hexColor, extra: TextSlice
        var links: ArraySlice<LinkContent>
        var children: Range<Int>

        init(_ hex: HexContent) {
            (senderUUID, senderName, hexDescription) = (hex.senderUUID, hex.senderName, hex.hexDescription)
            (hexColor, extra, links, children) = (hex.hexColor, hex.extra, hex.links[...], hex.children(of: nil))
        }

        init(_ child: ChildContent, of hex: HexContent) {
            (senderUUID, senderName, hexDescription) = (child.senderUUID, child.senderName, child.hexDescription)
            (hexColor, extra, links, children) = (child.hexColor, child.extra, hex.childLinks[child.links], child.children)
        }
    }

    /// Writes the inner hexes of a hex, with all hexes inside them, and the end of the hex.
    private static func appendChildren(of top: Node, _ hex: HexContent, to json: inout JSONWriter) {
        var open = [(node: top, next: top.children.lowerBound)]
        while let (node, next) = open.last {
            let level = hexLevel + 2 * (open.count - 1)
            guard node.children.contains(next) else {
                if !node.children.isEmpty { json.raw("]") }
                finish(node, of: hex, level: level, to: &json)
                open.removeLast()
                continue
            }
            json.raw(next == node.children.lowerBound ? #","children":["# : ",")
            open[open.count - 1].next += 1
            let child = Node(hex.children[next], of: hex)
            begin(child, nil, of: hex, level: level + 2, to: &json)
            open.append((child, child.children.lowerBound))
        }
    }

    /// Writes the beginning of a hex, up to and including its links.
    /// - Parameters:
    ///   - senders: replaces the hex's members for the sender.
    ///   - level: the nesting depth of the hex's members.
    @inline(__always)
    private static func begin(_ node: Node, _ senders: [UInt8]?, of hex: HexContent, level: Int, to json: inout JSONWriter) {
        if let senders {
            json.raw(senders)
        } else {
            json.raw(#"{"senderUUID":"#)
            json.string(node.senderUUID, of: hex)
            json.raw(#","senderName":"#)
            json.string(node.senderName, of: hex)
        }
        json.raw(#","hexDescription":"#)
        json.string(node.hexDescription, of: hex)
        json.raw(#","hexColor":"#)
        json.string(node.hexColor, of: hex)
        json.raw(#","links":["#)
        var isFirst = true
        for link in node.links {
            if !isFirst { json.raw(",") }
            isFirst = false
            if hex.frame.withUnsafeBufferPointer({ appendAsRead(link, from: $0, to: &json) }) { continue }
            json.raw(#"{"url":"#)
            json.string(link.url, of: hex)
            json.raw(#","linkDescription":"#)
            json.string(link.linkDescription, of: hex)
            json.raw(#","service":"#)
            json.string(link.service, of: hex)
            appendExtra(link.extra, of: hex, level: level + 2, to: &json) {
                switch LinkMember($0) {
                case .url, .linkDescription, .service: false
                case .fileName, .type, .unknown: true
                }
            }
            json.raw("}")
        }
        json.raw("]")
    }

    /// Copies a link from the JSON in which it was received, if it is in canonical form there. Most senders write this form.
    /// - Returns: `false` if it is not in canonical form. Nothing was written then.
    @inline(__always)
    private static func appendAsRead(_ link: LinkContent, from frame: UnsafeBufferPointer<UInt8>, to json: inout JSONWriter) -> Bool {
        guard link.extra.isEmpty, !link.url.isInArena, !link.linkDescription.isInArena, !link.service.isInArena,
            let base = frame.baseAddress
        else { return false }
        func isThere(_ text: StaticString, before end: Int) -> Bool {
            MemberNameBytes(start: base + end - text.utf8CodeUnitCount, count: text.utf8CodeUnitCount).equals(text)
        }
        let (beforeURL, beforeDescription, beforeService): (StaticString, StaticString, StaticString) = (
            #"{"url":""#, #"","linkDescription":""#, #"","service":""#
        )
        let start = link.url.offset - beforeURL.utf8CodeUnitCount
        let end = link.service.offset + link.service.count + 2
        guard start >= 0, end <= frame.count,
            // URL, description and service have this order and fixed distances. All compared bytes are therefore between `start` and `end`.
            link.linkDescription.offset == link.url.offset + link.url.count + beforeDescription.utf8CodeUnitCount,
            link.service.offset == link.linkDescription.offset + link.linkDescription.count + beforeService.utf8CodeUnitCount,
            isThere(beforeURL, before: link.url.offset), isThere(beforeDescription, before: link.linkDescription.offset),
            isThere(beforeService, before: link.service.offset),
            base[end - 2] == UInt8(ascii: "\""), base[end - 1] == UInt8(ascii: "}")
        else { return false }
        json.raw(UnsafeBufferPointer(rebasing: frame[start..<end]))
        return true
    }

    /// Writes the unknown members of a hex, and the end of the hex.
    private static func finish(_ node: Node, of hex: HexContent, level: Int, to json: inout JSONWriter) {
        appendExtra(node.extra, of: hex, level: level, to: &json) {
            switch HexMember($0, .wire) {
            case .senderUUID, .senderName, .hexDescription, .hexColor, .links: false
            // A member `children` is unknown if its value is not an array, or if an older version received it.
            case .children: node.children.isEmpty
            case .unknown, .localDescription, .localColor, .key, .packageUUID: true
            }
        }
        json.raw("}")
    }

    private static func appendExtra(
        _ extra: TextSlice, of hex: HexContent, level: Int, to json: inout JSONWriter, isKept: (MemberNameBytes) -> Bool
    ) {
        guard !extra.isEmpty else { return }
        hex.withBytes(of: extra) { bytes in
            UnknownMemberIterator.forEach(in: bytes, level: level) { name, member in
                guard isKept(name) else { return }
                json.raw(",")
                json.raw(member)
            }
        }
    }
}

/// Iterates over the members of a JSON object that was kept unchanged, such as `{"a":1}`.
enum UnknownMemberIterator {
    /// Calls `body` for each member of the object.
    /// - Parameters:
    ///   - level: the number of open containers around a member's value.
    ///   - body: called with each name, and with the bytes from the quote before the name to the end of the value. Members that would
    ///     exceed the nesting limit are skipped, and so is everything after a syntax error.
    static func forEach(in object: UnsafeRawBufferPointer, level: Int, _ body: (MemberNameBytes, UnsafeRawBufferPointer) -> Void) {
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
                return  // members were validated when they were received, so the store is damaged
            }
        }
    }
}

extension JSONWriter {
    mutating func string(_ slice: TextSlice, of hex: HexContent) {
        hex.withBytes(of: slice) { string($0) }
    }
}
