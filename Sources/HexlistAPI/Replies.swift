public import HexlistJSON

/// One page of a list: `{"items":[…],"next":cursor|null}`.
public struct Page<Item: JSONShape & Sendable>: JSONShape, Sendable {
    public var items: [Item]
    /// The value of `after=` for the next page; `null` at the end.
    @NullIfNone public var next: String?

    public init(items: [Item], next: String? = nil) {
        self.items = items
        self.next = next
    }

    /// Writes the same JSON as the default implementation, but without its type look-ups. The reply to each send is a page, so speed
    /// matters.
    public func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("items", items)
            json.member("next", _next)
        }
    }
}

extension Page: Equatable where Item: Equatable {}

/// An error in JSON: `{"error":{"code","message","hint"?}}`.
public struct ErrorJSON: JSONShape, Sendable, Equatable {
    /// The error code. Codes are stable; a newer daemon may have more.
    public var code: String
    public var message: String
    public var hint: String?

    public init(code: String, message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    private enum OuterKeys: String, CodingKey {
        case error
    }

    private enum CodingKeys: String, CodingKey {
        case code, message, hint
    }

    public func encode(to encoder: any Encoder) throws {
        var outer = encoder.container(keyedBy: OuterKeys.self)
        var container = outer.nestedContainer(keyedBy: CodingKeys.self, forKey: .error)
        try container.encode(code, forKey: .code)
        try container.encode(message, forKey: .message)
        try container.encodeIfPresent(hint, forKey: .hint)
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: OuterKeys.self).nestedContainer(keyedBy: CodingKeys.self, forKey: .error)
        code = try container.decode(String.self, forKey: .code)
        message = try container.decode(String.self, forKey: .message)
        hint = try container.decodeIfPresent(String.self, forKey: .hint)
    }
}

/// The number of changed items: `{"changed":3}`.
public struct ChangeCountJSON: JSONShape, Sendable, Equatable {
    public var changed: Int
    /// Set only with `dryRun`: the number of links of the hexes, the number of inner hexes, and the number of links of the inner hexes.
    @OmittedIfEmpty public var links: Int
    @OmittedIfEmpty public var hexesInside: Int
    @OmittedIfEmpty public var linksInside: Int

    public init(changed: Int, links: Int = 0, hexesInside: Int = 0, linksInside: Int = 0) {
        self.changed = changed
        self.links = links
        self.hexesInside = hexesInside
        self.linksInside = linksInside
    }
}
