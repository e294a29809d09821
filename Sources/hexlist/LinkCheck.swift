import HexlistModel

/// The check of a typed link before it is sent. The receiver accepts anything as a link, so a slip of the sender would arrive as one.
enum LinkCheck {
    /// A link needs a scheme.
    case scheme
    /// `https://` is put before a bare host name.
    case guess
    /// Anything is sent unchanged.
    case raw

    /// - Parameters:
    ///   - place: the file and line of the link, for the message.
    ///   - previous: the argument before, of whose description this one may be a part.
    ///   - following: the arguments after it, which may be further parts.
    /// - Throws: `HexlistError` for a text without a scheme, with what was probably meant.
    func checked(
        _ link: LinkInput, from place: String? = nil, after previous: LinkInput? = nil, before following: ArraySlice<String> = []
    ) throws(HexlistError) -> LinkInput {
        let form = LinkForm(link.url)
        switch (self, form) {
        case (.raw, _): return link
        case (_, .link):
            var link = link
            link.service = link.service ?? Service(ofLink: link.url)?.rawValue
            return link
        case (.guess, .bareHost):
            var link = link
            link.url = "https://" + link.url
            link.service = Service(ofLink: link.url)?.rawValue
            return link
        case (_, .bareHost):
            throw refused(link, place, "Give https://\(shown(link.url)), or --guess to have https:// put before it.")
        case (_, .other):
            guard let previous, place == nil else {
                throw refused(link, place, "A link begins as https:// does. --raw sends it as it is.")
            }
            let more = following.prefix { argument in LinkInput(argument).map { LinkForm($0.url) == .other } ?? false }
            let words = ([previous.url, previous.description, link.url, link.description] + more).filter { !$0.isEmpty }
            throw refused(
                link, place,
                "A link and its description stand in one pair of quotes: \"\(shown(words.joined(separator: " ")))\". --raw sends it as it is."
            )
        }
    }

    private func refused(_ link: LinkInput, _ place: String?, _ hint: String) -> HexlistError {
        let place = place.map { TerminalText.clean($0) + ": " } ?? ""
        return HexlistError(.badRequest, "\(place)`\(shown(link.url))` is no link: it has no scheme.", hint: hint)
    }

    private func shown(_ text: String) -> String { TerminalText.clean(text, columns: 60) }
}

/// The form of a text, judged by its beginning.
enum LinkForm {
    /// A scheme (RFC 3986) and something after it.
    case link
    /// A host name or address, perhaps with a port and a path, as in `avahi.org/download` or `localhost:8080`.
    case bareHost
    case other

    /// Schemes that may be followed by digits only; otherwise that is `host:port`.
    private static let numberSchemes = ["tel", "sms", "fax"]

    init(_ text: String) {
        let bytes = Array(text.utf8)
        let authority = bytes.prefix { !"/?#".utf8.contains($0) }
        // An IPv6 address in brackets contains colons.
        let bracket = bytes.first == UInt8(ascii: "[") ? authority.firstIndex(of: UInt8(ascii: "]")) : nil
        let name = bracket.map { bytes[...$0] } ?? bytes.prefix { $0 != UInt8(ascii: ":") }
        let rest = bytes.dropFirst(name.count + 1)
        let hasPort = authority.count > name.count && Self.isPort(authority.dropFirst(name.count + 1))
        let isNumber = Self.numberSchemes.contains(String(decoding: name, as: UTF8.self).lowercased())
        if Self.isScheme(name), name.count < bytes.count, !rest.isEmpty, !hasPort || isNumber {
            self = .link
        } else {
            self = Self.isHost(hasPort ? name : authority, hasPort: hasPort) ? .bareHost : .other
        }
    }

    /// Whether the bytes are a scheme. A single letter is a drive of another system, not a scheme.
    private static func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard bytes.count > 1, let first = bytes.first, isLetter(first) else { return false }
        return bytes.allSatisfy { isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) }
    }

    private static func isPort(_ bytes: ArraySlice<UInt8>) -> Bool { (1...5).contains(bytes.count) && bytes.allSatisfy(isDigit) }

    private static func isHost(_ bytes: ArraySlice<UInt8>, hasPort: Bool) -> Bool {
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") { return bytes.count > 3 }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isNamed = labels.count > 1 || hasPort || String(decoding: bytes, as: UTF8.self).lowercased() == "localhost"
        return isNamed
            && labels.allSatisfy { label in
                !label.isEmpty && label.allSatisfy { isLetter($0) || isDigit($0) || $0 >= 0x80 || $0 == UInt8(ascii: "-") }
            }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte & 0xDF) && byte < 0x80 }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
