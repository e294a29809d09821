public import HexlistJSON
public import HexlistModel

// The JSON forms of the model's values.

extension PeerID: JSONStringConvertible {
    public static var expectation: String { "a UUID" }
    public func write(to json: inout JSONWriter) { json.uuid(uuid) }
}

extension MessageID: JSONStringConvertible {
    public static var expectation: String { "a UUID" }
    public func write(to json: inout JSONWriter) { json.uuid(uuid) }
}

extension Fingerprint: JSONStringConvertible {
    public static var expectation: String { "a fingerprint" }
}

extension BootNonce: JSONStringConvertible {
    public static var expectation: String { "a nonce of 16 hexadecimal digits" }
}

extension Timestamp: JSONStringConvertible {
    public static var expectation: String { "a time in RFC 3339" }
}

extension OutboxState: JSONWord {}

extension OpenWord where Word == Trust {
    public static var trusted: OpenWord { OpenWord(Trust.trusted) }
    public static var stranger: OpenWord { OpenWord(Trust.stranger) }
    public static var blocked: OpenWord { OpenWord(Trust.blocked) }
}
