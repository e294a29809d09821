public import HexlistModel

/// A link to a file of a peer: the `url` of a LinkJM (Docs/Protocol.md).
///
///     hexlist://<peer UUID>/<offer: 32 hexadecimal digits>/<name, percent-encoded>
///     hexlist://<peer UUID>/share/<share>/<path>
///
/// The name in a link to an offer is only displayed: the offer's ID alone determines the file.
public struct FileLink: Sendable, CustomStringConvertible {
    public enum Target: Sendable {
        /// An offered file. The name is untrusted text, may be empty, and has at most `maximumBytes`. `FileName` makes a safe name of it.
        case offer(OfferID, name: String)
        /// A file or folder in a share. The share's name is valid by `SharePath.isName`.
        case share(name: String, path: SharePath)
    }

    /// Maximum length of a link in bytes.
    public static let maximumBytes = LinkTarget.maximumBytes
    /// The URL scheme. A link `hexlist://peer/…`, which `hexlist id --qr` prints, has the same scheme but is not a link to a file.
    public static let scheme = "hexlist"

    public let peer: PeerID
    public let target: Target

    public init(peer: PeerID, target: Target) {
        self.peer = peer
        self.target = target
    }

    /// Parses a link from an untrusted source; `nil` if it has neither of the two forms. Scheme, UUID and digits may have any letter case.
    /// A `/` at the end of a folder's path is ignored.
    public init?(_ url: some StringProtocol) {
        let bytes = Array(url.utf8)
        let start = Array("\(Self.scheme)://".utf8)
        guard bytes.count <= Self.maximumBytes, bytes.prefix(start.count).map(ASCII.lowercased) == start else { return nil }
        let parts = bytes[start.count...].split(separator: UInt8(ascii: "/"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, let peer = PeerID(String(decoding: parts[0], as: UTF8.self)) else { return nil }
        self.peer = peer
        let rest = parts.count > 2 ? parts[2] : []
        if parts[1].elementsEqual(Self.share.utf8) {
            guard let target = Self.share(rest) else { return nil }
            self.target = target
        } else {
            guard let offer = OfferID(String(decoding: parts[1], as: UTF8.self)), let name = Self.name(rest) else { return nil }
            target = .offer(offer, name: name)
        }
    }

    private static let share = "share"

    private static func share(_ text: ArraySlice<UInt8>) -> Target? {
        let parts = text.split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let name = SharePath.name(percentEncoded: first) else { return nil }
        var rest = parts.count > 1 ? parts[1] : []
        if rest.last == UInt8(ascii: "/") { rest = rest.dropLast() }
        guard let path = SharePath(percentEncoded: rest) else { return nil }
        return .share(name: name, path: path)
    }

    /// Decodes the name of an offer. After decoding it may contain any character, because it is not used as a path. Characters that URLs do
    /// not allow must be encoded.
    private static func name(_ text: ArraySlice<UInt8>) -> String? {
        guard
            text.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        else { return nil }
        return PercentEncoding.decode(String(decoding: text, as: UTF8.self))
    }

    /// The link. A long name is cut so that the link has at most `maximumBytes`.
    public var description: String {
        let start = "\(Self.scheme)://\(peer)/"
        switch target {
        case .offer(let offer, let name): return "\(start)\(offer)/\(PercentEncoding.encode(PeerName.cut(name, bytes: Self.nameBytes)))"
        case .share(let name, .root): return "\(start)\(Self.share)/\(PercentEncoding.encode(name))"
        case .share(let name, let path): return "\(start)\(Self.share)/\(PercentEncoding.encode(name))/\(path.percentEncoded)"
        }
    }

    /// Maximum bytes of a name in a link that this machine creates. An encoded byte takes three, and the rest of the link takes less than
    /// 100 bytes.
    private static let nameBytes = (maximumBytes - 100) / 3

    /// The path and query of the HTTP request that fetches the file (`FileRequestTarget`).
    public var requestTarget: String {
        switch target {
        case .offer(let offer, _): FileRequestTarget.offer(offer).description
        case .share(let name, let path): FileRequestTarget.entry(share: name, path: path, .content).description
        }
    }
}

extension FileLink: Equatable {
    public static func == (left: FileLink, right: FileLink) -> Bool { PeerTextComparison.areEqual(left.description, right.description) }
}
