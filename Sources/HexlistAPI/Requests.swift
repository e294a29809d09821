public import HexlistJSON
public import HexlistModel

/// The body of `POST /v1/peers/{peer}/trust`: the fingerprint and the name that the user saw. Without a fingerprint, the path must have the
/// whole UUID.
public struct TrustRequest: JSONShape, Sendable, Equatable {
    /// The whole fingerprint shown to the user. The request is refused if the peer has another fingerprint now.
    public var fingerprint: String?
    /// The name shown to the user, which becomes the alias even if the peer has changed its name meanwhile.
    public var name: String?

    private enum CodingKeys: String, RequestKey {
        case fingerprint, name
    }

    public init(fingerprint: String? = nil, name: String? = nil) {
        self.fingerprint = fingerprint
        self.name = name
    }
}

/// The body of `POST /v1/peers/{peer}/takeover`. The peer in the path replaces another one, which was the same machine before its
/// reinstallation.
public struct TakeoverRequest: JSONShape, Sendable, Equatable {
    /// The PEER that is replaced and forgotten.
    public var from: String

    private enum CodingKeys: String, RequestKey {
        case from
    }

    public init(from: String) { self.from = from }
}

/// The body of `PATCH /v1/peers/{peer}`: one or more members to change; `null` removes the alias.
extension PeerChange: JSONCoded {
    public func write(to json: inout JSONWriter) {
        json.object {
            if case .set(let alias) = alias { $0.member("alias", NullIfNone(wrappedValue: alias)) }
            $0.member("receive", receive?.rawValue)
            $0.member("notify", notify)
            $0.member("fetchLimit", fetchLimit)
            $0.member("fetchTo", fetchTo?.rawValue)
            $0.member("openLinks", openLinks)
            $0.member("pin", pin)
            $0.member("routes", routes?.text)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(
            json, allowing: ["alias", "receive", "notify", "fetchLimit", "fetchTo", "openLinks", "pin", "routes"])
        guard !object.names.isEmpty else {
            throw JSONFault("`alias`, `receive`, `notify`, `fetchLimit`, `fetchTo`, `openLinks`, `pin` or `routes` is missing")
        }
        let alias: NullIfNone<String>? = try object.given("alias")
        let receive: PeerReceiveSetting? = try Self.word("receive", in: object)
        let limit: Int64? = try object.given("fetchLimit")
        guard (0...1 << 50).contains(limit ?? 0) else { throw JSONFault("`fetchLimit`: bytes from 0 to \(1 << 50) are expected") }
        let target: AutomaticFetchDestination? = try Self.word("fetchTo", in: object)
        let openLinks: Int? = try object.given("openLinks")
        guard (0...Self.mostOpenLinks).contains(openLinks ?? 0) else {
            throw JSONFault("`openLinks`: a number from 0 to \(Self.mostOpenLinks) is expected")
        }
        let pin: String? = try object.given("pin")
        guard pin?.utf8.count ?? 0 <= Self.pinBytes else { throw JSONFault("`pin`: at most \(Self.pinBytes) bytes are expected") }
        let text: String? = try object.given("routes")
        let routes = try text.map { text throws(JSONFault) -> RouteSelection in
            guard let routes = RouteSelection(text) else { throw JSONFault("`routes`: any, none, or names of routes are expected") }
            return routes
        }
        self.init(
            alias: alias.map { .set($0.wrappedValue) } ?? .unchanged, receive: receive, notify: try object.given("notify"),
            fetchLimit: limit, fetchTo: target, openLinks: openLinks, pin: pin, routes: routes)
    }

    private static func word<Word: RawRepresentable & CaseIterable>(
        _ name: String, in object: JSONObject
    ) throws(JSONFault) -> Word? where Word.RawValue == String {
        guard let text: String = try object.given(name) else { return nil }
        guard let word = Word(rawValue: text) else {
            throw JSONFault("`\(name)`: one of \(Word.allCases.map(\.rawValue).joined(separator: ", ")) is expected")
        }
        return word
    }
}

/// The body of `PATCH /v1/hexes` and `PATCH /v1/hexes/{id}`: marks hexes, or single links, read or unread.
public struct UnreadPatch: JSONCoded, Sendable, Equatable {
    /// A link, by its hex and its number in that hex, from 1. In JSON: `[7,2]`.
    public struct Link: Sendable, Equatable {
        public var hex: Int64
        public var number: Int64

        public init(hex: Int64, number: Int64) { (self.hex, self.number) = (hex, number) }
    }

    /// The hexes to mark; `nil` if the path has the id of a hex, or if `links` is set.
    public var hexes: HexSelection?
    /// The links to mark; `nil` if hexes are marked.
    public var links: [Link]?
    public var unread: Bool

    public init(hexes: HexSelection? = nil, links: [Link]? = nil, unread: Bool) {
        self.hexes = hexes
        self.links = links
        self.unread = unread
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            hexes?.writeMembers(to: &$0)
            if let links { $0.member("links", links.map { [$0.hex, $0.number] }) }
            $0.member("unread", unread)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json, allowing: HexSelection.members + ["links", "unread"])
        hexes = try HexSelection(object)
        let pairs: [[Int64]]? = try object.given("links")
        links = try pairs?.map { (pair) throws(JSONFault) in
            guard pair.count == 2, pair[0] > 0, pair[1] > 0 else {
                throw JSONFault("`links`: a link has the id of its hex and its number, as [7,2]")
            }
            return Link(hex: pair[0], number: pair[1])
        }
        guard hexes == nil || links == nil else { throw JSONFault("`links` does not go with other members than `unread`") }
        unread = try object.value("unread")
    }
}

/// A selection of hexes to change; the body of `POST /v1/hexes/delete` and `POST /v1/hexes/accept`.
///
///     {"ids":[1,2],"ranges":[[3,40]]}         hexes by id, hexes in ranges of ids, or both
///     {"from":PEER,"location"?:"held"}        the list of hexes from that peer
///     {"all":true,"location"?:"held"}         all hexes of a list
///     … "newest"?:ID                          with "from" or "all": excludes hexes that arrived after this one
public enum HexSelection: JSONCoded, Sendable, Equatable {
    /// Hexes by id, all of which must exist, and all existing hexes in ranges of ids.
    case ids([Int64], ranges: [ClosedRange<Int64>] = [])
    /// - Parameters:
    ///   - from: a PEER; `nil` for all peers.
    ///   - location: defaults to `inbox`, for accepting to `held`.
    ///   - newest: the id of the first hex of the list as shown to the user; hexes that arrived later are excluded.
    case list(from: String? = nil, location: String? = nil, newest: Int64? = nil)

    /// The whole inbox.
    public static let all = HexSelection.list()

    static let members = ["ids", "ranges", "from", "all", "location", "newest"]

    public func write(to json: inout JSONWriter) {
        json.object { writeMembers(to: &$0) }
    }

    func writeMembers(to json: inout JSONWriter) {
        switch self {
        case .ids(let ids, let ranges):
            if !ids.isEmpty || ranges.isEmpty { json.member("ids", ids) }
            if !ranges.isEmpty { json.member("ranges", ranges.map { [$0.lowerBound, $0.upperBound] }) }
        case .list(let from, let location, let newest):
            if let from { json.member("from", from) } else { json.member("all", true) }
            json.member("location", location)
            json.member("newest", newest)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        guard let selection = try HexSelection(JSONObject(json, allowing: Self.members)) else {
            throw JSONFault("one of `ids`, `ranges`, `from` and `all` is missing")
        }
        self = selection
    }

    /// Reads a selection; `nil` if the object has no member of a selection.
    init?(_ object: JSONObject) throws(JSONFault) {
        let ids: [Int64]? = try object.given("ids")
        let ranges: [[Int64]]? = try object.given("ranges")
        let from: String? = try object.given("from")
        let all = try object.given("all") ?? false
        let location: String? = try object.given("location")
        let newest: Int64? = try object.given("newest")
        let isNamed = ids != nil || ranges != nil
        switch (isNamed, from, all) {
        case (true, nil, false):
            guard location == nil, newest == nil else { throw JSONFault("`location` and `newest` go with `from` and `all`") }
            self = .ids(ids ?? [], ranges: try Self.ranges(ranges ?? []))
        case (false, _?, false), (false, nil, true): self = .list(from: from, location: location, newest: newest)
        case (false, nil, false): return nil
        case (true, nil, true): throw JSONFault("`ids` and `all` do not go together")
        case (true, _?, _): throw JSONFault("`ids` and `from` do not go together")
        case (false, _?, true): throw JSONFault("`from` and `all` do not go together")
        }
    }

    /// Converts pairs of a first and a last id to ranges. Omits empty ranges, whose last id is below the first.
    /// - Throws: `JSONFault` if an element is not a pair of positive ids.
    private static func ranges(_ pairs: [[Int64]]) throws(JSONFault) -> [ClosedRange<Int64>] {
        var ranges: [ClosedRange<Int64>] = []
        for ends in pairs {
            guard ends.count == 2, ends[0] > 0, ends[1] > 0 else {
                throw JSONFault("`ranges`: a range has its first and its last id, as [3,40]")
            }
            if ends[0] <= ends[1] { ranges.append(ends[0]...ends[1]) }
        }
        return ranges
    }
}
