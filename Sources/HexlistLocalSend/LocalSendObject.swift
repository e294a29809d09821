internal import HexlistJSON
internal import HexlistModel

/// The members of a JSON object of a device. Members of an unexpected type count as missing, because versions of LocalSend differ.
struct LocalSendObject {
    private let object: JSONObject

    init(parsing bytes: [UInt8]) throws(LocalSendFault) {
        guard let json = try? JSONValue(parsing: bytes) else { throw .invalid("it is not JSON") }
        try self.init(json)
    }

    init(_ json: JSONValue) throws(LocalSendFault) {
        guard let object = try? JSONObject(json) else { throw .invalid("an object is expected") }
        self.object = object
    }

    subscript(_ name: String) -> JSONValue? { object[name] }

    /// Returns the text of a member, truncated to `limit` bytes; `nil` if it is missing or not a string.
    func text(_ name: String, limit: Int = LocalSendLimits.textBytes) -> String? {
        object[name]?.string.map { PeerName.cut($0, bytes: limit) }
    }

    func integer(_ name: String) -> Int64? { object[name].flatMap { try? Int64(json: $0) } }
}
