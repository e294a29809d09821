/// The server and the resource of an `http` or `https` link, in the parts that an HTTP request needs. Created only for links that
/// `LinkTarget` accepts, whose host all programs interpret in the same way.
public struct HTTPLinkTarget: Sendable, Equatable {
    public var isTLS: Bool
    /// The host in ASCII, in lower case; an IPv6 address without brackets.
    public var host: String
    public var port: UInt16
    /// The path, beginning with `/`, and the query, without the fragment. Only printable ASCII characters.
    public var resource: String

    /// - Returns: `nil` if the link has another scheme, or is not accepted by `LinkTarget`.
    public init?(_ url: String) {
        guard let target = try? LinkTarget(url, schemes: ["http", "https"]), let host = target.host else { return nil }
        isTLS = target.scheme == "https"
        let rest = url.utf8.dropFirst(target.scheme.utf8.count + 3)
        let authority = rest.prefix { !"/?#".utf8.contains($0) }
        port = isTLS ? 443 : 80
        if let colon = authority.lastIndex(of: UInt8(ascii: ":")), !authority[colon...].contains(UInt8(ascii: "]")) {
            guard let number = UInt16(String(decoding: authority[authority.index(after: colon)...], as: UTF8.self)), number > 0 else {
                return nil
            }
            port = number
        }
        self.host = host.utf8.first == UInt8(ascii: "[") ? String(host.dropFirst().dropLast()) : host
        resource = Self.resource(rest[authority.endIndex...])
    }

    /// Resolves the `Location` of a redirect (RFC 3986, 5.2). Returns `nil` if the result is not a link that `init` accepts.
    public func redirected(to location: String) -> HTTPLinkTarget? {
        let reference = location.prefix { $0 != "#" }
        let isAbsolute = reference.lowercased().hasPrefix("http:") || reference.lowercased().hasPrefix("https:")
        if isAbsolute { return HTTPLinkTarget(String(reference)) }
        if reference.hasPrefix("//") { return HTTPLinkTarget("\(scheme):\(reference)") }
        let head = reference.prefix { !["/", "?"].contains($0) }
        guard !head.contains(":") else { return nil }  // a link with another scheme
        let path = resource.prefix { $0 != "?" }
        let base: Substring =
            switch reference.first {
            case nil: resource[...]
            case "/": ""
            case "?": path
            default: path[...(path.lastIndex(of: "/") ?? path.startIndex)]
            }
        return HTTPLinkTarget("\(scheme)://\(authority)\(base)\(reference)")
    }

    /// Host and port as in a URL, without the default port. Also the value of the header `Host`.
    public var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isTLS ? 443 : 80) ? name : "\(name):\(port)"
    }

    private var scheme: String { isTLS ? "https" : "http" }

    /// Returns the path, with `.` and `..` resolved, and the query. All characters except printable ASCII are percent-encoded.
    private static func resource(_ bytes: Substring.UTF8View) -> String {
        let whole = bytes.prefix { $0 != UInt8(ascii: "#") }
        let path = whole.prefix { $0 != UInt8(ascii: "?") }
        var segments: [String] = []
        let parts = String(decoding: path.drop { $0 == UInt8(ascii: "/") }.isEmpty ? Array("/".utf8) : Array(path), as: UTF8.self)
            .split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            switch part {
            case ".": if isLast { segments.append("") }
            case "..":
                _ = segments.popLast()
                if isLast { segments.append("") }
            default: segments.append(String(part))
            }
        }
        let text = "/" + segments.joined(separator: "/") + String(decoding: whole[path.endIndex...], as: UTF8.self)
        return PercentEncoding.encodeUnprintable(text)
    }
}
