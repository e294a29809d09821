/// An IPv6 address as URLs have it, in brackets.
struct IPv6Text {
    private var pieces: [UInt16]

    /// - Parameter bytes: `2001:db8::1`, `::ffff:192.0.2.1`; no zone.
    init?(_ bytes: some Collection<UInt8>) {
        let text = String(decoding: bytes, as: UTF8.self)
        var halves: [Substring] = [text[...]]
        if let gap = Self.gap(in: text) { halves = [text[..<gap.lowerBound], text[gap.upperBound...]] }
        var parsed: [[UInt16]] = []
        for (index, half) in halves.enumerated() {
            guard let pieces = Self.pieces(half, mayEndInIPv4: index == halves.count - 1) else { return nil }
            parsed.append(pieces)
        }
        let count = parsed.reduce(0) { $0 + $1.count }
        guard parsed.count == 2 ? count <= 7 : count == 8 else { return nil }
        pieces = parsed[0] + Array(repeating: 0, count: 8 - count) + (parsed.count == 2 ? parsed[1] : [])
    }

    /// In lower case, the longest run of two zeros or more as `::`, the first of equal ones.
    var text: String {
        var longest = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, pieces[end] == 0 { end += 1 }
            if end - start > max(1, longest.count) { longest = start..<end }
            start = max(end, start + 1)
        }
        func joined(_ pieces: ArraySlice<UInt16>) -> String { pieces.map { String($0, radix: 16) }.joined(separator: ":") }
        guard !longest.isEmpty else { return joined(pieces[...]) }
        return joined(pieces[..<longest.lowerBound]) + "::" + joined(pieces[longest.upperBound...])
    }

    /// Where `::` is.
    private static func gap(in text: String) -> Range<String.Index>? {
        var index = text.startIndex
        while index < text.endIndex {
            let next = text.index(after: index)
            if next < text.endIndex, text[index] == ":", text[next] == ":" { return index..<text.index(after: next) }
            index = next
        }
        return nil
    }

    private static func pieces(_ text: Substring, mayEndInIPv4: Bool) -> [UInt16]? {
        guard !text.isEmpty else { return [] }
        var pieces: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if mayEndInIPv4, index == parts.count - 1, part.utf8.contains(UInt8(ascii: ".")) {
                guard let octets = IPv4Text.octets(part.split(separator: ".", omittingEmptySubsequences: false)) else { return nil }
                pieces += [octets[0] << 8 | octets[1], octets[2] << 8 | octets[3]]
            } else {
                guard (1...4).contains(part.utf8.count), part.utf8.allSatisfy({ Hexadecimal.value(of: $0) != nil }),
                    let piece = UInt16(part, radix: 16)
                else { return nil }
                pieces.append(piece)
            }
        }
        return pieces.count <= 8 ? pieces : nil
    }
}

/// An IPv4 address in the one form every program reads alike.
enum IPv4Text {
    /// - Parameter labels: what stands between its dots.
    /// - Returns: four numbers up to 255; `nil` also where one has zeros before it, which some programs read as octal.
    static func octets(_ labels: [some StringProtocol]) -> [UInt16]? {
        let octets = labels.compactMap { label -> UInt16? in
            guard (1...3).contains(label.utf8.count), label.utf8.allSatisfy(ASCII.isDigit), label == "0" || !label.hasPrefix("0") else {
                return nil
            }
            return UInt16(label).flatMap { $0 <= 255 ? $0 : nil }
        }
        return labels.count == 4 && octets.count == 4 ? octets : nil
    }
}
