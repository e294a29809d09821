import HexlistJSON
import HexlistModel

/// The members of a DataSendWrapper. If a name is repeated, the last member is used (rule T19).
struct WrapperMembers {
    /// The `jmObject` member in any of its forms.
    enum Object {
        case absent
        case null
        /// An object that was read as a hex. Its content is in the reader.
        case hex(start: Int)
        /// An object of which only the syntax was validated.
        case object(start: Int)
        /// A string (rule T5), given by the range without its quotes.
        case text(start: Int, end: Int, hasEscapes: Bool)
        /// A number, a boolean or an array.
        case other

        var isMissing: Bool {
            switch self {
            case .absent, .null: true
            case .hex, .object, .text, .other: false
            }
        }
    }

    var versionID = Text()
    var operationType = Text()
    var message = Text()
    var jmObjectType = Text()
    var messageID = Text()
    var object = Object.absent
    var sequence: Int64?
    /// Whether a `sequence` was ignored, because its value is invalid (rule T21).
    var hasOddSequence = false
    /// Whether there is a member `links` that is not `null`, as in a link package (rule T14).
    var hasLinks = false
    /// Whether these two members were repeated, to be reported as repairs. Text members have `Text.isRepeated` for this.
    var isObjectRepeated = false
    var isSequenceRepeated = false
    /// The members with older names of `versionID` (rule T11): their indices among the unknown members.
    var version: Int?
    var versionType: Int?
    /// Whether the frame is a link package without a wrapper (rule T14).
    var isPackage = false

    func violation(over limit: Int) -> LimitViolation? {
        if versionID.slice.count > limit { return .text("versionID") }
        if message.slice.count > limit { return .text("message") }
        return nil
    }
}

extension HexReader {
    /// Reads a frame. Its syntax is validated up to the last byte. The value of `jmObject` is read if it may be a hex.
    /// - Parameter start: the position of the `{`.
    mutating func wrapper(_ json: JSONScanner, at start: Int) throws(GrammarFault) {
        var version: Int?
        var versionType: Int?
        var position = try json.enterObject(at: start)
        // Fast path for the usual members in the usual order. The loop below reads all others.
        try texts.read(json, usual: #""versionID":"#, at: &position, into: &members.versionID)
        try texts.read(json, usual: #""operationType":"#, at: &position, into: &members.operationType)
        try texts.read(json, usual: #""jmObjectType":"#, at: &position, into: &members.jmObjectType)
        try texts.read(json, usual: #""messageID":"#, at: &position, into: &members.messageID)
        if let value = json.value(of: #""sequence":"#, at: position) { position = try json.nextMember(sequence(json, at: value)) }
        if let value = json.value(of: #""jmObject":"#, at: position) { position = try json.nextMember(jmObject(json, at: value)) }
        while json.byte(position) != UInt8(ascii: "}") {
            let name = position &+ 1
            let token = try json.string(from: name)
            position = try json.value(behindName: token.end &+ 1)
            switch json.withName(name, token, &scratch, { WrapperMember($0) }) {
            case .versionID: position = try texts.read(json, at: position, open: 1, into: &members.versionID)
            case .operationType: position = try texts.read(json, at: position, open: 1, into: &members.operationType)
            case .jmObjectType: position = try texts.read(json, at: position, open: 1, into: &members.jmObjectType)
            case .messageID: position = try texts.read(json, at: position, open: 1, into: &members.messageID)
            case .message: position = try texts.read(json, at: position, open: 1, into: &members.message)
            case .sequence: position = try sequence(json, at: position)
            case .jmObject: position = try jmObject(json, at: position)
            case .version: position = try keep(json, name, token, at: position, open: 1, insteadOf: &version)
            case .versionType: position = try keep(json, name, token, at: position, open: 1, insteadOf: &versionType)
            case .links:
                members.hasLinks = json.byte(position) != UInt8(ascii: "n")
                position = try keep(json, name, token, at: position, open: 1)
            case .unknown: position = try keep(json, name, token, at: position, open: 1)
            }
            position = try json.nextMember(position)
        }
        members.version = version
        members.versionType = versionType
        try json.finish(position &+ 1)
    }

    private mutating func sequence(_ json: JSONScanner, at start: Int) throws(GrammarFault) -> Int {
        members.isSequenceRepeated = members.sequence != nil || members.hasOddSequence
        if let (sequence, end) = json.sequence(at: start) {
            members.sequence = sequence
            members.hasOddSequence = false
            return end
        }
        let end = try json.skipValue(at: start, open: 1)
        members.sequence = nil
        members.hasOddSequence = json.byte(start) != UInt8(ascii: "n")
        return end
    }

    private mutating func jmObject(_ json: JSONScanner, at start: Int) throws(GrammarFault) -> Int {
        if case .absent = members.object {
        } else {
            members.isObjectRepeated = true
            repairs.removeAll()
        }
        switch json.byte(start) {
        case UInt8(ascii: "{"):
            // The member `operationType` may follow later. As long as it is unknown, the object is read as a hex, because most frames are
            // Stores.
            guard mayBeStore(members.operationType, json) else {
                members.object = .object(start: start)
                return try json.skipValue(at: start, open: 1)
            }
            members.object = .hex(start: start)
            return try object(json, at: start, open: 1)
        case UInt8(ascii: "\""):
            let token = try json.string(from: start &+ 1)
            members.object = .text(start: start &+ 1, end: token.end, hasEscapes: token.hasEscapes)
            return token.end &+ 1
        case UInt8(ascii: "n"): members.object = .null
        default: members.object = .other
        }
        return try json.skipValue(at: start, open: 1)
    }

    @inline(__always)  // a call would copy the whole reader, also in other functions with this attribute
    private func mayBeStore(_ operationType: Text, _ json: JSONScanner) -> Bool {
        operationType.isMissingName
            || texts.withBytes(of: operationType.slice, in: json) { $0.equals("Store") || $0.matches(Operation.store.rawValue) }
    }
}

// MARK: The decoded wrapper

extension HexReader {
    /// Returns the object of an accepted wrapper.
    @inline(__always)
    mutating func object(of operation: Operation, _ frame: [UInt8]) -> WrapperObject {
        guard operation == .store else { return object ?? .none }
        if let text { return .hex(content(frame: text)) }  // `text ?? frame` would copy, with a retain and release
        return .hex(content(frame: frame))
    }

    /// Sets the other members of an accepted wrapper. It is not inlined, for the reason given at `HexReader.fill`.
    @inline(never)
    mutating func fill(_ wrapper: inout DecodedWrapper, _ json: JSONScanner) {
        if reportsRepairs { reportRepairs(wrapper.operation, json) }
        if !members.versionID.slice.isEmpty {
            wrapper.versionID = texts.string(members.versionID.slice, in: json, bytes: ProtocolLimits.wordBytes)
        }
        switch members.message.form {
        case .plain, .repaired, .scalar:
            // Tokens are compared and sent back unchanged, so they are not truncated.
            let limit = wrapper.operation.hasToken ? textLimit : ProtocolLimits.messageBytes
            wrapper.message = texts.string(members.message.slice, in: json, bytes: limit)
        case .absent, .null, .structure: break
        }
        wrapper.messageID = messageID(json)
        if wrapper.operation.isNumbered { wrapper.sequence = members.sequence }
        if unknown.mark > 0 { wrapper.extra = closeWrapper(json) }
        if reportsRepairs { wrapper.repairs = repairs }
    }

    /// The message ID of the wrapper, or of a link package.
    @inline(__always)
    func messageID(_ json: JSONScanner) -> MessageID? { packageUUID ?? messageID(members.messageID.slice, json) }

    mutating func takeOlderVersion(_ json: JSONScanner) {
        var versionID = members.versionID
        if takeOlder(members.version, json, 1, into: &versionID) || takeOlder(members.versionType, json, 1, into: &versionID) {
            members.versionID = versionID
            report("T11", "versionID")
        }
    }

    /// Returns the unknown members of the wrapper as a JSON object.
    private mutating func closeWrapper(_ json: JSONScanner) -> [UInt8] {
        let first = texts.arena.count
        _ = close(from: 0, json) { $0 }
        defer { texts.arena.removeSubrange(first...) }
        return Array(texts.arena[first...])
    }

    private mutating func reportRepairs(_ operation: Operation, _ json: JSONScanner) {
        guard !members.isPackage else { return report("T14", "") }
        report(members.versionID, "versionID")
        reportTypeName(members.operationType, operation.rawValue, "operationType", missing: "T6", json)
        if let objectType = operation.objectType {
            reportTypeName(members.jmObjectType, objectType, "jmObjectType", missing: "T7", json)
        }
        if members.message.form != .absent { report(members.message, "message") }
        if members.messageID.isRepeated { report("T19", "messageID") }
        if !members.messageID.isMissing, messageID(json) == nil { report("T21", "messageID") }
        if members.isSequenceRepeated { report("T19", "sequence") }
        if members.hasOddSequence { report("T21", "sequence") }
        if members.isObjectRepeated { report("T19", "jmObject") }
    }

    private mutating func reportTypeName(
        _ text: Text, _ canonical: String, _ path: String, missing rule: String, _ json: JSONScanner
    ) {
        if text.isMissingName {
            report(rule, path)
        } else if texts.string(text.slice, in: json) != canonical {
            report("T8", path)
        }
        if text.isRepeated { report("T19", path) }
    }
}
