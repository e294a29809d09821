import HexlistJSON
import HexlistModel

/// Writes wrappers as JSON. Only members that are needed are written, in a fixed order.
enum WrapperWriter {
    /// Begins a wrapper: writes the members up to the operation.
    static func begin(_ operation: Operation, versionID: String = ProtocolLimits.appVersion) -> JSONWriter {
        var json = JSONWriter(wireCapacity: 192)
        json.raw(#"{"versionID":"#)
        json.string(versionID)
        json.raw(#","operationType":""#)
        json.raw(operation.rawValue.utf8)
        if let objectType = operation.objectType {
            json.raw(#"","jmObjectType":""#)
            json.raw(objectType.utf8)
        }
        json.raw("\"")
        return json
    }

    /// The beginning that all Stores have.
    private static let storeBeginning = begin(.store).bytes

    static func store(messageID: MessageID?, sequence: Int64?) -> JSONWriter {
        var json = JSONWriter(wireCapacity: 224)
        json.raw(storeBeginning)
        json.identity(messageID, sequence)
        json.raw(#","jmObject":"#)
        return json
    }

    static func message(_ operation: Operation, _ message: String?, sequence: Int64? = nil, padding: Int = 0) -> [UInt8] {
        var json = begin(operation)
        json.identity(nil, sequence)
        json.message(message)
        if padding > 0 { json.member(#","padding":"#) { $0.string(String(repeating: ".", count: padding)) } }
        json.raw("}")
        return json.bytes
    }

    static func hello(_ hello: Hello) -> [UInt8] { object(.hello) { $0.hello(hello) } }
    static func ack(_ receipt: Receipt) -> [UInt8] { object(.ack) { $0.receipt(receipt) } }
    static func pair(_ pairing: Pairing) -> [UInt8] { object(.pair) { $0.pairing(pairing) } }

    private static func object(_ operation: Operation, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var json = begin(operation)
        json.raw(#","jmObject":"#)
        body(&json)
        json.raw("}")
        return json.bytes
    }

    /// Encodes a decoded wrapper in canonical form, with its unknown members. Used by `hexlist frame` only.
    static func encode(_ wrapper: DecodedWrapper) -> [UInt8] {
        var json = begin(wrapper.operation, versionID: wrapper.versionID)
        json.identity(wrapper.messageID, wrapper.sequence)
        json.message(wrapper.message)
        switch wrapper.object {
        case .none: break
        case .hex(let hex): json.member(#","jmObject":"#) { $0.raw(HexEncoder.encode(hex)) }
        case .hello(let hello): json.member(#","jmObject":"#) { $0.hello(hello) }
        case .receipt(let receipt): json.member(#","jmObject":"#) { $0.receipt(receipt) }
        case .pairing(let pairing): json.member(#","jmObject":"#) { $0.pairing(pairing) }
        }
        if wrapper.extra.count > 2 {
            json.raw(",")
            json.raw(wrapper.extra.dropFirst().dropLast())
        }
        json.raw("}")
        return json.bytes
    }
}

extension JSONWriter {
    mutating func member(_ name: StaticString, _ value: (inout JSONWriter) -> Void) {
        raw(name)
        value(&self)
    }

    fileprivate mutating func identity(_ messageID: MessageID?, _ sequence: Int64?) {
        if let messageID { member(#","messageID":"#) { $0.uuid(messageID.uuid) } }
        if let sequence { member(#","sequence":"#) { $0.raw(sequence) } }
    }

    fileprivate mutating func message(_ message: String?) {
        if let message { member(#","message":"#) { $0.string(message) } }
    }

    fileprivate mutating func hello(_ hello: Hello) {
        member(#"{"uuid":"#) { json in if let uuid = hello.uuid { json.uuid(uuid.uuid) } else { json.string("") } }
        member(#","name":"#) { $0.string(hello.name) }
        member(#","boot":"#) { $0.string(hello.boot?.description ?? "") }
        member(#","protocols":"#) { $0.array(hello.protocols) { $0.raw($1) } }
        member(#","features":"#) { $0.array(hello.features) { $0.string($1) } }
        member(#","maxFrameBytes":"#) { $0.raw(hello.maxFrameBytes) }
        member(#","window":"#) { $0.raw(hello.window) }
        if let card = hello.card { member(#","card":"#) { $0.string(card) } }
        raw("}")
    }

    fileprivate mutating func receipt(_ receipt: Receipt) {
        raw("{")
        if let envelope = receipt.envelope {
            member(#""envelope":"#) { $0.string(envelope) }
            raw(",")
        }
        member(#""through":"#) { $0.raw(receipt.through) }
        if let status = receipt.status { member(#","status":"#) { $0.string(status.rawValue) } }
        if let of = receipt.of { member(#","of":"#) { $0.string(of.rawValue) } }
        member(#","rejected":"#) {
            $0.array(receipt.rejected) { json, rejection in
                json.member(#"{"sequence":"#) { $0.raw(rejection.sequence) }
                json.member(#","code":"#) { $0.string(rejection.code.rawValue) }
                json.member(#","message":"#) { $0.string(rejection.message) }
                if let retryAfter = rejection.retryAfter { json.member(#","retryAfter":"#) { $0.raw(retryAfter) } }
                json.raw("}")
            }
        }
        raw("}")
    }

    fileprivate mutating func pairing(_ pairing: Pairing) {
        member(#"{"step":"#) { $0.string(pairing.step) }
        if !pairing.commitment.isEmpty { member(#","commitment":"#) { $0.string(pairing.commitment) } }
        if !pairing.nonce.isEmpty { member(#","nonce":"#) { $0.string(pairing.nonce) } }
        if !pairing.message.isEmpty { member(#","message":"#) { $0.string(pairing.message) } }
        raw("}")
    }
}
