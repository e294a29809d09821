public import HexlistJSON

/// The body of `POST /v1/export`: the hexes to export.
///
///     {"ids":[1,2]}                                    and the other forms of `HexSelection`, without `newest`
///     {"search":TEXT,"from"?:PEER,"location"?:"mine"}  search results
public enum ExportSelection: JSONCoded, Sendable, Equatable {
    case hexes(HexSelection)
    /// - Parameters:
    ///   - text: a query in the syntax of `SearchTerm`.
    ///   - from: a PEER; `nil` for all peers.
    ///   - location: `inbox`, `held` or `mine`; `nil` for inbox and My Hexlist.
    case search(_ text: String, from: String? = nil, location: String? = nil)

    /// Whether the selection is restricted to My Hexlist by its `location`. False for a selection by ids, whose locations are not known.
    public var isMine: Bool {
        switch self {
        case .hexes(.ids): false
        case .hexes(.list(_, let location, _)), .search(_, _, let location): location == "mine"
        }
    }

    public func write(to json: inout JSONWriter) {
        switch self {
        case .hexes(let selection): selection.write(to: &json)
        case .search(let text, let from, let location):
            json.object {
                $0.member("search", text)
                $0.member("from", from)
                $0.member("location", location)
            }
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        guard try JSONObject(json)["search"] != nil else {
            self = .hexes(try HexSelection(json: json))
            return
        }
        let object = try JSONObject(json, allowing: ["search", "from", "location"])
        let text: String = try object.value("search")
        let from: String? = try object.given("from")
        let location: String? = try object.given("location")
        self = .search(text, from: from, location: location)
    }
}
