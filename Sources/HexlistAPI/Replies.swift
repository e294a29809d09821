public import HexlistJSON

/// One page of a list: `{"items":[…],"next":cursor|null}`.
public struct Page<Item: JSONShape & Sendable>: JSONShape, Sendable {
    public var items: [Item]
    /// What `after=` takes to go on; `null` at the end.
    public var next: String?

    public init(items: [Item], next: String? = nil) {
        self.items = items
        self.next = next
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("items", items)
            $0.nullableMember("next", next)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        items = try object.value("items")
        next = try object.optional("next")
    }
}

extension Page: Equatable where Item: Equatable {}

/// `{"error":{"code","message","hint"?}}`
public struct ErrorShape: JSONShape, Sendable, Equatable {
    /// Stable; a newer daemon may know more.
    public var code: String
    public var message: String
    public var hint: String?

    public init(code: String, message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("error", Body(error: self))
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let outer = try JSONObject(json)
        let body: JSONValue = try outer.value("error")
        let object = try JSONObject(body)
        code = try object.value("code")
        message = try object.value("message")
        hint = try object.optional("hint")
    }

    private struct Body: JSONEncodable {
        var error: ErrorShape

        func write(to json: inout JSONWriter) {
            json.object {
                $0.member("code", error.code)
                $0.member("message", error.message)
                $0.member("hint", error.hint)
            }
        }
    }
}

/// How many a request changed: `{"changed":3}`.
public struct ChangedShape: JSONShape, Sendable, Equatable {
    public var changed: Int

    public init(changed: Int) { self.changed = changed }

    public func write(to json: inout JSONWriter) {
        json.object { $0.member("changed", changed) }
    }

    public init(json: JSONValue) throws(JSONFault) { changed = try JSONObject(json).value("changed") }
}
