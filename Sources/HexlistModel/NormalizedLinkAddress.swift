/// The identity of a link's address: a normalized form that is equal for addresses of the same page (Docs/Files.md, "Equal addresses").
/// It is used only for comparison; the address is stored, shown and opened as it was received. After a change of these rules, increase
/// `SearchDocument.format`, so that the search index is rebuilt.
///
/// Addresses with the schemes of `defaultPorts` are normalized. For other schemes, only the scheme is changed to lower case. Normalization
/// never fails, because invalid parts are kept unchanged. Its time is proportional to the length, plus the sorting of the query parameters.
public enum NormalizedLinkAddress {
    private static let defaultPorts: [(scheme: String, port: String)] = [
        ("https", "443"), ("http", "80"), ("ftp", "21"), ("wss", "443"), ("ws", "80"),
    ]
    /// Names of query parameters that identify a visitor or a campaign, not a page. `trackerPrefixes` has prefixes of such names.
    private static let trackers = ["fbclid", "gclid", "igshid"].map { Array($0.utf8) }
    private static let trackerPrefixes = ["utm_", "mc_"].map { Array($0.utf8) }
    /// The delimiter before a text directive: `#:~:text=word` makes a browser scroll to a passage of the page.
    private static let textDirective = Array(":~:".utf8)

    public static func of(_ address: String) -> [UInt8] { of(Array(address.utf8)) }

    public static func of(_ address: [UInt8]) -> [UInt8] {
        guard let colon = address.firstIndex(of: UInt8(ascii: ":")) else { return address }
        let scheme = address[..<colon].map(ASCII.lowercased)
        guard LinkTarget.isScheme(String(decoding: scheme, as: UTF8.self)) else { return address }
        let rest = address[(colon + 1)...]
        guard let known = defaultPorts.first(where: { $0.scheme.utf8.elementsEqual(scheme) }),
            rest.starts(with: [UInt8(ascii: "/"), UInt8(ascii: "/")])
        else { return scheme + address[colon...] }
        let authority = rest.dropFirst(2).prefix { !isEnd($0) }
        let tail = rest[authority.endIndex...]
        let path = tail.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let query = tail[path.endIndex...].prefix { $0 != UInt8(ascii: "#") }
        var identity = scheme
        identity.reserveCapacity(address.count + 1)
        identity += "://".utf8
        append(authority, defaultPort: known.port, to: &identity)
        append(path: path, to: &identity)
        append(query: query.dropFirst(), to: &identity)
        append(fragment: tail[query.endIndex...].dropFirst(), to: &identity)
        return identity
    }

    private static func isEnd(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    /// Appends the user, the host in ASCII and lower case, and the port unless it is the default one.
    private static func append(_ authority: ArraySlice<UInt8>, defaultPort: String, to identity: inout [UInt8]) {
        var host = authority
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            identity += authority[...at]
            host = authority[(at + 1)...]
        }
        var port = host[host.endIndex...]
        let closing = host.lastIndex(of: UInt8(ascii: "]")) ?? host.startIndex
        // An authority with several colons is invalid and is treated as a host without a port.
        if let colon = host[closing...].firstIndex(of: UInt8(ascii: ":")), !host[(colon + 1)...].contains(UInt8(ascii: ":")) {
            port = host[(colon + 1)...]
            host = host[..<colon]
        }
        let lowered = host.map(ASCII.lowercased)
        if lowered.allSatisfy({ $0 < 0x80 }) && lowered.first != UInt8(ascii: "[") {
            identity += lowered
        } else {
            let text = Array(String(decoding: lowered, as: UTF8.self).lowercased().utf8)
            identity += (try? LinkHost.ascii(ofAuthority: text[...])).map { Array($0.utf8) } ?? lowered
        }
        guard !port.isEmpty, !port.elementsEqual(defaultPort.utf8) else { return }
        identity.append(UInt8(ascii: ":"))
        identity += port
    }

    /// Appends a path with its segments `.` and `..` resolved. An empty path becomes `/`.
    private static func append(path: ArraySlice<UInt8>, to identity: inout [UInt8]) {
        let slash = UInt8(ascii: "/")
        guard !path.isEmpty else { return identity.append(slash) }
        let start = identity.count
        appendEncoded(path, to: &identity)
        var index = start + 1
        while index < identity.count, identity[index - 1] != slash || identity[index] != UInt8(ascii: ".") { index += 1 }
        guard index < identity.count else { return }  // no segment begins with a dot
        var segments: [ArraySlice<UInt8>] = []
        var isFolder = false
        for segment in identity[(start + 1)...].split(separator: slash, omittingEmptySubsequences: false) {
            isFolder = segment.elementsEqual(".".utf8) || segment.elementsEqual("..".utf8)
            if segment.elementsEqual("..".utf8) { _ = segments.popLast() }
            if !isFolder { segments.append(segment) }
        }
        if isFolder { segments.append([]) }
        let joined = segments.joined(separator: [slash])
        identity.replaceSubrange((start + 1)..., with: Array(joined))
    }

    /// Appends the parameters without trackers and empty parts (`&&`), sorted by name. Parameters with the same name keep their order.
    private static func append(query: ArraySlice<UInt8>, to identity: inout [UInt8]) {
        guard !query.isEmpty else { return }
        var parameters: [(name: [UInt8], index: Int, text: [UInt8])] = []
        for (index, part) in query.split(separator: UInt8(ascii: "&")).enumerated() {
            var text: [UInt8] = []
            appendEncoded(part, to: &text)
            let name = Array(text.prefix { $0 != UInt8(ascii: "=") })
            let lowered = name.map(ASCII.lowercased)
            if trackers.contains(lowered) || trackerPrefixes.contains(where: { lowered.starts(with: $0) }) { continue }
            parameters.append((name, index, text))
        }
        parameters.sort { $0.name == $1.name ? $0.index < $1.index : $0.name.lexicographicallyPrecedes($1.name) }
        for (position, parameter) in parameters.enumerated() {
            identity.append(position == 0 ? UInt8(ascii: "?") : UInt8(ascii: "&"))
            identity += parameter.text
        }
    }

    /// Appends a fragment that begins with `!` or `/`, up to a text directive: single-page applications use such fragments as addresses of
    /// pages. Omits any other fragment, because it is a position in the page.
    private static func append(fragment: ArraySlice<UInt8>, to identity: inout [UInt8]) {
        guard let first = fragment.first, first == UInt8(ascii: "!") || first == UInt8(ascii: "/") else { return }
        var encoded: [UInt8] = []
        appendEncoded(fragment, to: &encoded)
        var end = 0
        while end < encoded.count, !encoded[end...].starts(with: textDirective) { end += 1 }
        identity.append(UInt8(ascii: "#"))
        identity += encoded[..<end]
    }

    /// Appends bytes in the normalized form of percent-encoding (RFC 3986, 6.2.2): escapes of unreserved characters are decoded, all other
    /// escapes get capital digits, and bytes that are not printable ASCII are escaped.
    private static func appendEncoded(_ bytes: ArraySlice<UInt8>, to identity: inout [UInt8]) {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            if byte == UInt8(ascii: "%"), index + 2 < bytes.endIndex, let high = Hexadecimal.value(of: bytes[index + 1]),
                let low = Hexadecimal.value(of: bytes[index + 2])
            {
                let value = high << 4 | low
                if isUnreserved(value) { identity.append(value) } else { appendPercent(value, to: &identity) }
                index += 3
                continue
            }
            if (0x21...0x7E).contains(byte) { identity.append(byte) } else { appendPercent(byte, to: &identity) }
            index += 1
        }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
            || byte == UInt8(ascii: "~")
    }

    private static func appendPercent(_ byte: UInt8, to identity: inout [UInt8]) {
        identity.append(UInt8(ascii: "%"))
        for digit in [byte >> 4, byte & 15] { identity.append(digit < 10 ? digit | 0x30 : digit + 0x37) }
    }
}
