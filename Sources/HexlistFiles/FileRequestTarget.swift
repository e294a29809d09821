public import HexlistModel

/// What the target of an HTTP request on a file connection asks for (Docs/Protocol.md). It says nothing of whether the peer may have it.
///
///     /offers/<offer>          /shares          /shares/<share>[/<path>][?sort=<order>][&after=<place>] or [?about]
public enum FileRequestTarget: Sendable, CustomStringConvertible {
    case offer(OfferID)
    /// The shares this peer may see.
    case shares
    /// Something in a share.
    case entry(share: String, path: SharePath, EntryQuery)

    /// The part of a file or folder in a share that a request asks for.
    public enum EntryQuery: Sendable {
        /// The bytes of a file, or the first page of a folder by name.
        case content
        /// A page of a folder; of a file it is a 404.
        /// - after: the `next` of the page before; `nil` for the first.
        case list(FileOrder, after: String?)
        /// The entry that a list would have of it, as a list of one.
        case about
    }

    /// The most bytes of a target: a share, a path and a name, each byte encoded.
    public static let maximumBytes = 3 * (SharePath.maximumBytes + 2 * SharePath.maximumNameBytes) + 32

    /// Reads a request's target. Escapes are decoded exactly once; whatever is not exactly one of the forms is `nil`, which is a 404:
    /// other letter cases, empty names, `.` and `..`, encoded or not, NUL, invalid UTF-8, a `/` at the end, another query.
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
            // What stands behind `/` has a name.
            guard parts.count < 2 || !parts[1].isEmpty, let path = parts.count < 2 ? .root : SharePath(percentEncoded: parts[1]) else {
                return nil
            }
            guard let wanted = query.map({ Self.entryQuery($0) }) ?? .content else { return nil }
            self = .entry(share: share, path: path, wanted)
        } else {
            return nil
        }
    }

    /// `about`, `sort=<order>`, `after=<place>`, or the two in this order.
    private static func entryQuery(_ query: some Collection<UInt8>) -> EntryQuery? {
        if query.elementsEqual("about".utf8) { return .about }
        var parts = query.split(separator: UInt8(ascii: "&"), maxSplits: 1, omittingEmptySubsequences: false)[...]
        var (order, after): (FileOrder, String?) = (.name, nil)
        if let first = parts.first, let word = rest(of: first, behind: "sort=") {
            guard let known = FileOrder.allCases.first(where: { $0.rawValue.utf8.elementsEqual(word) }) else { return nil }
            order = known
            parts = parts.dropFirst()
        }
        if let part = parts.popFirst() {
            // `&`, `=` and `+` mean something in a query, and stand in a name encoded only.
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

    /// The target as it is sent.
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
        PeerText.areEqual(left.description, right.description)
    }
}
