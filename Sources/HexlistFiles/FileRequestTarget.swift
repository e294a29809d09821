public import HexlistModel

/// The target (path and query) of an HTTP request on a file connection (Docs/Protocol.md). Parsing does not check whether the peer may have
/// the file.
///
///     /offers/<offer>          /shares          /shares/<share>[/<path>][?sort=<order>][&after=<cursor>] or [?about]
public enum FileRequestTarget: Sendable, CustomStringConvertible {
    case offer(OfferID)
    /// The list of the shares that the requesting peer may see.
    case shares
    /// A file or folder in a share.
    case entry(share: String, path: SharePath, EntryQuery)

    /// The part of a file or folder in a share that is requested: content, listing or metadata.
    public enum EntryQuery: Sendable {
        /// The bytes of a file, or the first page of a folder's listing, sorted by name.
        case content
        /// A page of a folder's listing. The response for a file is 404. `after` is the `next` of the previous page; `nil` for the first
        /// page.
        case list(FolderSortOrder, after: String?)
        /// The metadata of the file or folder itself, as a list with one entry.
        case about
    }

    /// Maximum bytes of a target, if each byte of share, path and cursor is percent-encoded.
    public static let maximumBytes = 3 * (SharePath.maximumBytes + 2 * SharePath.maximumNameBytes) + 32

    /// Parses a request target. Percent-escapes are decoded once. Returns `nil`, to be answered with 404, for any other form: other letter
    /// case, empty names, `.` and `..` (also encoded), NUL, invalid UTF-8, a `/` at the end, or another query.
    public init?(_ target: some Collection<UInt8>) {
        guard target.count <= Self.maximumBytes else { return nil }
        let parts = target.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let path = parts.first else { return nil }
        let query = parts.count > 1 ? parts[1] : nil
        if let rest = Self.rest(of: path, behind: "/offers/") {
            let digits = String(decoding: rest, as: UTF8.self)
            guard query == nil, let offer = OfferID(digits), digits.utf8.elementsEqual(offer.description.utf8) else { return nil }
            self = .offer(offer)
        } else if path.elementsEqual("/shares".utf8) {
            guard query == nil else { return nil }
            self = .shares
        } else if let rest = Self.rest(of: path, behind: "/shares/") {
            let parts = rest.split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
            guard let share = parts.first.flatMap({ SharePath.name(percentEncoded: $0) }) else { return nil }
            // A `/` must be followed by a name.
            guard parts.count < 2 || !parts[1].isEmpty, let path = parts.count < 2 ? .root : SharePath(percentEncoded: parts[1]) else {
                return nil
            }
            guard let wanted = query.map({ Self.entryQuery($0) }) ?? .content else { return nil }
            self = .entry(share: share, path: path, wanted)
        } else {
            return nil
        }
    }

    /// Parses a query: `about`, or optionally `sort=<order>` followed by optionally `after=<cursor>`.
    private static func entryQuery(_ query: some Collection<UInt8>) -> EntryQuery? {
        if query.elementsEqual("about".utf8) { return .about }
        var parts = query.split(separator: UInt8(ascii: "&"), maxSplits: 1, omittingEmptySubsequences: false)[...]
        var (order, after): (FolderSortOrder, String?) = (.name, nil)
        if let first = parts.first, let word = rest(of: first, behind: "sort=") {
            guard let known = FolderSortOrder.allCases.first(where: { $0.rawValue.utf8.elementsEqual(word) }) else { return nil }
            order = known
            parts = parts.dropFirst()
        }
        if let part = parts.popFirst() {
            // In a query, `&`, `=` and `+` are special, so they must be encoded in a cursor.
            guard let value = rest(of: part, behind: "after="), !value.contains(where: { "&=+".utf8.contains($0) }),
                let text = SharePath.text(percentEncoded: value), FolderCursor(text, order) != nil
            else { return nil }
            after = text
        }
        return parts.isEmpty ? .list(order, after: after) : nil
    }

    public init?(_ target: some StringProtocol) { self.init(Array(target.utf8)) }

    private static func rest<Bytes: Collection<UInt8>>(of bytes: Bytes, behind start: StaticString) -> Bytes.SubSequence? {
        let start = UnsafeBufferPointer(start: start.utf8Start, count: start.utf8CodeUnitCount)
        return bytes.starts(with: start) ? bytes.dropFirst(start.count) : nil
    }

    /// The target as text, percent-encoded.
    public var description: String {
        switch self {
        case .offer(let offer): "/offers/\(offer)"
        case .shares: "/shares"
        case .entry(let share, let path, let query):
            "/shares/\(PercentEncoding.encode(share))" + (path.names.isEmpty ? "" : "/\(path.percentEncoded)") + query.text
        }
    }
}

extension FileRequestTarget.EntryQuery {
    fileprivate var text: String {
        switch self {
        case .content: ""
        case .about: "?about"
        case .list(.name, let after?): "?after=\(PercentEncoding.encode(after))"
        case .list(let order, let after): "?sort=\(order.rawValue)" + (after.map { "&after=\(PercentEncoding.encode($0))" } ?? "")
        }
    }
}

extension FileRequestTarget: Equatable {
    public static func == (left: FileRequestTarget, right: FileRequestTarget) -> Bool {
        PeerTextComparison.areEqual(left.description, right.description)
    }
}
