/// The destination of a peer's link, shown to the user before the link is opened.
///
/// Stricter than browsers: links that programs interpret in different ways are refused, so that the displayed host is the one that the
/// browser contacts (WHATWG URL). Parsed byte by byte, without a URL library.
public struct LinkTarget: Equatable, Sendable {
    /// The scheme, in lower case.
    public let scheme: String
    /// The host in ASCII, as browsers interpret it; `nil` if links with this scheme have no host.
    public let host: String?

    /// Schemes that run code or read files on this machine. The configuration cannot allow them.
    public static let neverOpened = ["about", "blob", "data", "file", "filesystem", "javascript", "vbscript", "view-source"]
    /// Maximum bytes of a link to open. The link is passed as a command-line argument, whose length is limited.
    public static let maximumBytes = 8 << 10
    /// Schemes whose links have a host that is parsed as in `http` links.
    private static let schemesWithHost = ["http", "https", "ftp", "ws", "wss"]

    /// Parses a link and checks whether it may be opened.
    /// - Parameter schemes: the schemes that may be opened, in lower case.
    /// - Throws: `LinkFault`, the reason why the link must not be opened.
    public init(_ url: String, schemes: [String]) throws(LinkFault) {
        let bytes = Array(url.utf8)
        guard !bytes.isEmpty else { throw .empty }
        guard bytes.count <= Self.maximumBytes else { throw .tooLong }
        try Self.checkText(url)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { throw .noScheme }
        scheme = String(decoding: bytes[..<colon].map(ASCII.lowercased), as: UTF8.self)
        guard Self.isScheme(scheme) else { throw .noScheme }
        guard schemes.contains(scheme), !Self.neverOpened.contains(scheme) else { throw .scheme(scheme) }
        guard Self.schemesWithHost.contains(scheme) else {
            host = nil
            return
        }
        let rest = bytes[(colon + 1)...]
        guard rest.starts(with: Array("//".utf8)) else { throw .noHost }
        let authority = rest.dropFirst(2).prefix { ![UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) }
        host = try LinkHost.ascii(ofAuthority: authority)
    }

    /// The host, or the scheme if there is no host. Shown when the user is asked whether to open the link.
    public var summary: String { host ?? "\(scheme):" }

    /// Whether the text is a valid scheme in lower case: a letter, then letters, digits, `+`, `-` and `.`, at most 32 bytes.
    public static func isScheme(_ text: String) -> Bool {
        guard let first = text.utf8.first, ASCII.isLowercase(first) else { return false }
        return text.utf8.count <= 32
            && text.utf8.allSatisfy {
                ASCII.isLowercase($0) || ASCII.isDigit($0) || [UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ".")].contains($0)
            }
    }

    /// Throws if the link contains characters that terminals, shells or browsers remove, reorder or hide.
    private static func checkText(_ url: String) throws(LinkFault) {
        for scalar in url.unicodeScalars {
            if scalar == "\\" { throw .backslash }
            if scalar.properties.isWhitespace { throw .whiteSpace }
        }
        guard TerminalText.clean(url).unicodeScalars.elementsEqual(url.unicodeScalars), !url.unicodeScalars.contains("\u{FFFD}") else {
            throw .invisible
        }
    }
}

/// The reason why a link must not be opened.
public enum LinkFault: Error, Equatable, Sendable, CustomStringConvertible {
    case empty, tooLong, noScheme, whiteSpace, invisible, backslash, noHost, user, port
    case scheme(String)
    case host

    public var description: String {
        switch self {
        case .empty: "it is empty"
        case .tooLong: "it is longer than \(LinkTarget.maximumBytes) bytes"
        case .noScheme: "it has no scheme such as https:"
        case .whiteSpace: "it contains spaces"
        case .invisible: "it contains invisible or control characters"
        case .backslash: "it contains a backslash, which programs read in different ways"
        case .noHost: "it has no host"
        case .user: "it hides its real host behind a user name"
        case .port: "its port is not a number up to 65535"
        case .scheme(let scheme): "\(scheme): links are blocked (open.schemes)"
        case .host: "programs read its host in different ways"
        }
    }
}
