/// Where a link of a peer leads when it is opened, so that it can be said before.
///
/// Stricter than browsers are: what programs read in different ways is refused, so that the host shown is the one a
/// browser goes to (WHATWG URL). Works on the bytes; no library's idea of a URL is asked.
public struct LinkTarget: Equatable, Sendable {
    /// In lower case.
    public let scheme: String
    /// In ASCII, as browsers have it; `nil` for a scheme whose links name no host that is known to be one.
    public let host: String?

    /// Schemes that run or read something here, whatever the configuration says.
    public static let neverOpened = ["about", "blob", "data", "file", "filesystem", "javascript", "vbscript", "view-source"]
    /// Bytes. Programs are handed it as one argument.
    public static let maximumBytes = 8 << 10
    /// Schemes whose links name a host, by the same rules.
    private static let schemesWithHost = ["http", "https", "ftp", "ws", "wss"]

    /// - Parameter schemes: those that may be opened, in lower case.
    /// - Throws: why it is not to be offered for opening.
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

    /// The host, or the scheme where there is none: what a person is told before it is opened.
    public var summary: String { host ?? "\(scheme):" }

    /// A letter, and then letters, digits, `+`, `-` and `.`; in lower case.
    public static func isScheme(_ text: String) -> Bool {
        guard let first = text.utf8.first, ASCII.isLowercase(first) else { return false }
        return text.utf8.count <= 32
            && text.utf8.allSatisfy {
                ASCII.isLowercase($0) || ASCII.isDigit($0) || [UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ".")].contains($0)
            }
    }

    /// What is dropped, turned around, or not seen on its way through terminals, shells and browsers.
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

/// Why a link is not offered for opening.
public enum LinkFault: Error, Equatable, Sendable, CustomStringConvertible {
    case empty, tooLong, noScheme, whiteSpace, invisible, backslash, noHost, user, port
    case scheme(String)
    case host

    public var description: String {
        switch self {
        case .empty: "it is empty"
        case .tooLong: "it is longer than \(LinkTarget.maximumBytes) bytes"
        case .noScheme: "it does not begin with a scheme such as https:"
        case .whiteSpace: "there is white space in it"
        case .invisible: "there are invisible or control characters in it"
        case .backslash: "there is a backslash in it, which programs read in different ways"
        case .noHost: "it names no host"
        case .user: "it has a user name before its host, to be taken for the host"
        case .port: "its port is no number up to 65535"
        case .scheme(let scheme): "\(scheme): is not among the schemes that are opened (open.schemes)"
        case .host: "its host is written in a way that programs read differently"
        }
    }
}
