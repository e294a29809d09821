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

extension ForwardCompatibleEnum where Word == Trust {
    public static var trusted: ForwardCompatibleEnum { ForwardCompatibleEnum(Trust.trusted) }
    public static var stranger: ForwardCompatibleEnum { ForwardCompatibleEnum(Trust.stranger) }
    public static var blocked: ForwardCompatibleEnum { ForwardCompatibleEnum(Trust.blocked) }
}
