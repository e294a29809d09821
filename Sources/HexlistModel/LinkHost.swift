/// Parses the host of a link as browsers do (WHATWG URL, "host parsing"). Accepts only hosts that all programs interpret in the same way.
enum LinkHost {
    /// Returns the host in ASCII and lower case, without the port; an IPv6 address keeps its brackets.
    /// - Parameter authority: the part of the link between `//` and the path.
    static func ascii(ofAuthority authority: ArraySlice<UInt8>) throws(LinkFault) -> String {
        guard !authority.isEmpty else { throw .noHost }
        guard !authority.contains(UInt8(ascii: "@")) else { throw .user }
        var host = authority
        var port: ArraySlice<UInt8>?
        // A port's colon follows the closing bracket of an IPv6 address. In other authorities it is the only colon.
        let closing = authority.lastIndex(of: UInt8(ascii: "]")) ?? authority.startIndex
        if let colon = authority[closing...].firstIndex(of: UInt8(ascii: ":")) {
            host = authority[..<colon]
            port = authority[(colon + 1)...]
        }
        if let port {
            guard (1...5).contains(port.count), port.allSatisfy(ASCII.isDigit), port.reduce(0, { $0 * 10 + Int($1 & 0x0F) }) <= 65_535
            else { throw .port }
        }
        guard !host.isEmpty else { throw .noHost }
        // Checks the length first, because Punycode takes quadratic time.
        guard host.count <= nameBytes + 1 else { throw .host }
        if host.first == UInt8(ascii: "[") {
            guard host.last == UInt8(ascii: "]"), let address = IPAddress.six(host.dropFirst().dropLast()) else { throw .host }
            return "[\(IPAddress.text(ofSix: address))]"
        }
        return try name(host)
    }

    /// Maximum bytes of a host name without its final dot, and of one label (RFC 1035, 2.3.4), both as written in the link and in ASCII.
    private static let nameBytes = 253
    private static let labelBytes = 63

    private static func name(_ bytes: ArraySlice<UInt8>) throws(LinkFault) -> String {
        var labels: [String] = []
        for part in bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            labels.append(try label(part, isLast: part.endIndex == bytes.endIndex))
        }
        let isAbsolute = labels.last == ""
        let name = labels.joined(separator: ".")
        guard name.utf8.count - (isAbsolute ? 1 : 0) <= nameBytes, name != "." else { throw .host }
        // Browsers interpret a host whose last label is a number as an IPv4 address, which has several notations. Only four decimal
        // numbers, as in `192.0.2.1`, are accepted.
        if let last = labels.last(where: { !$0.isEmpty }), isNumber(last) {
            guard IPAddress.four(name.utf8) != nil else { throw .host }
        }
        return name
    }

    private static func label(_ bytes: ArraySlice<UInt8>, isLast: Bool) throws(LinkFault) -> String {
        guard !bytes.isEmpty else {
            guard isLast else { throw .host }  // the empty label after the final dot of an absolute name
            return ""
        }
        guard bytes.count <= labelBytes else { throw .host }
        guard bytes.allSatisfy({ $0 < 0x80 }) else { return try international(bytes) }
        let lowered = bytes.map(ASCII.lowercased)
        let isPlain = lowered.allSatisfy { byte in
            ASCII.isLowercase(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
        }
        guard isPlain else { throw .host }
        return String(decoding: lowered, as: UTF8.self)
    }

    /// Encodes a label with non-ASCII letters (RFC 3490, `xn--`). Accepts only letters and digits that browsers use unchanged. Refuses
    /// characters that browsers replace (capitals, full-width forms, ligatures) or compose with others, and invisible joiners.
    private static func international(_ bytes: ArraySlice<UInt8>) throws(LinkFault) -> String {
        let scalars = Array(String(decoding: bytes, as: UTF8.self).unicodeScalars)
        for scalar in scalars {
            if scalar.isASCII {
                let byte = UInt8(truncatingIfNeeded: scalar.value)
                guard ASCII.isLowercase(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-") else { throw .host }
                continue
            }
            switch scalar.properties.generalCategory {
            case .lowercaseLetter, .otherLetter: break
            default: throw .host
            }
            // Jamo, the parts of Korean syllables, are refused because browsers compose them.
            guard !scalar.properties.changesWhenNFKCCaseFolded, !(0x1100...0x11FF).contains(scalar.value),
                !(0xA960...0xA97F).contains(scalar.value), !(0xD7B0...0xD7FF).contains(scalar.value)
            else { throw .host }
        }
        guard let encoded = Punycode.encode(scalars) else { throw .host }
        let label = "xn--" + encoded
        guard label.utf8.count <= labelBytes, scalars.first != "-", scalars.last != "-" else { throw .host }
        return label
    }

    /// Whether the label is a decimal or hexadecimal number, such as `12` or `0x7f`.
    private static func isNumber(_ label: String) -> Bool {
        let bytes = Array(label.utf8)
        return bytes.allSatisfy(ASCII.isDigit)
            || bytes.starts(with: Array("0x".utf8)) && bytes.dropFirst(2).allSatisfy { Hexadecimal.value(of: $0) != nil }
    }
}

/// Encodes Punycode (RFC 3492), the part of an internationalized label after `xn--`.
enum Punycode {
    /// Encodes a label. Returns `nil` if a number overflows, which cannot happen for labels of up to 63 bytes.
    static func encode(_ scalars: [Unicode.Scalar]) -> String? {
        let (base, tMin, tMax, skew, damp) = (36, 1, 26, 38, 700)
        var (point, delta, bias) = (0x80, 0, 72)
        var output = scalars.filter(\.isASCII).map { UInt8(truncatingIfNeeded: $0.value) }
        let basics = output.count
        var handled = basics
        if basics > 0 { output.append(UInt8(ascii: "-")) }
        func digit(_ value: Int) -> UInt8 { UInt8(value < 26 ? 0x61 + value : 0x30 + value - 26) }
        while handled < scalars.count {
            guard let next = scalars.lazy.map({ Int($0.value) }).filter({ $0 >= point }).min() else { return nil }
            let (step, overflow) = (next - point).multipliedReportingOverflow(by: handled + 1)
            guard !overflow else { return nil }
            delta += step
            point = next
            for scalar in scalars {
                if scalar.value < point { delta += 1 }
                guard scalar.value == point else { continue }
                var (rest, k) = (delta, base)
                while true {
                    let threshold = min(max(k - bias, tMin), tMax)
                    guard rest >= threshold else { break }
                    output.append(digit(threshold + (rest - threshold) % (base - threshold)))
                    rest = (rest - threshold) / (base - threshold)
                    k += base
                }
                output.append(digit(rest))
                // Adapts the bias to the distance between the characters (RFC 3492 section 6.1).
                delta = handled == basics ? delta / damp : delta / 2
                delta += delta / (handled + 1)
                k = 0
                while delta > (base - tMin) * tMax / 2 {
                    delta /= base - tMin
                    k += base
                }
                bias = k + (base - tMin + 1) * delta / (delta + skew)
                delta = 0
                handled += 1
            }
            delta += 1
            point += 1
        }
        return String(decoding: output, as: UTF8.self)
    }
}
