import HexlistJSON
public import HexlistModel

/// A hex that was read from the local API: from an import, a bulk send, or a request.
public struct LocalHex: Sendable {
    public var content: HexContent
    /// The caller's idempotency key, which is not sent to peers; `nil` if it is missing or empty.
    public var key: String?

    public init(content: HexContent, key: String? = nil) {
        self.content = content
        self.key = key
    }
}

/// The tolerant decoder: strict about JSON syntax, tolerant about content. Its rules T1 to T22 are in Docs/Protocol.md, "Tolerant
/// decoding"; comments refer to them by number.
///
/// Works in one pass, without a tree of JSON values: texts are slices of the frame. For any input, decoding takes linear time and uses no
/// recursion. A length that is only announced causes no allocation. Between frames, a decoder keeps only its buffers. Not thread-safe.
public struct WrapperDecoder: Sendable {
    /// Maximum bytes of an input. Frames are far smaller. Slices have only 31 bits for their offset.
    static let largestInput = 1 << 28

    private static let tooLarge = Refusal(code: .tooLarge, message: "more than \(largestInput) bytes of JSON")

    private var reader: HexReader

    /// - Parameter reportsRepairs: whether `DecodedWrapper.repairs` is filled, which makes decoding slower.
    public init(reportsRepairs: Bool = false) { reader = HexReader(reportsRepairs: reportsRepairs) }

    /// Decodes a frame. Never traps or throws.
    /// - Parameter frame: the body of the frame.
    public mutating func decode(_ frame: [UInt8]) -> DecodedFrame {
        reader.begin()
        guard frame.count <= Self.largestInput else { return .refused(Self.tooLarge) }
        return frame.withUnsafeBufferPointer { buffer in
            do throws(GrammarFault) {
                let (json, start) = try Self.object(in: buffer)
                try reader.wrapper(json, at: start)
                switch decide(json, start) {
                case .refused(let refusal):
                    return .refused(refusal)
                case .accepted(let operation):
                    return wrapper(operation, json, frame)
                }
            } catch {
                return .refused(Refusal(code: .malformed, message: error.message, isUndecodable: true))
            }
        }
    }

    /// Creates the decoded wrapper. It is not inlined, for the reason given at `HexReader.fill`.
    @inline(never)
    private mutating func wrapper(_ operation: Operation, _ json: JSONScanner, _ frame: [UInt8]) -> DecodedFrame {
        var wrapper = DecodedWrapper(operation, reader.object(of: operation, frame))
        reader.fill(&wrapper, json)
        return .wrapper(wrapper)
    }

    /// Decodes a HexJM without a wrapper. The bounds and the rules T1–T4, T12, T13 and T15–T20 apply.
    /// - Parameters:
    ///   - json: the bytes of an object. White space and a byte order mark are accepted.
    ///   - acceptsLocalNames: whether the names of the local API are accepted: `description` and `color` for missing `hexDescription` and
    ///     `hexColor`, and `key`.
    public mutating func decodeHex(_ json: [UInt8], acceptsLocalNames: Bool) -> Result<LocalHex, Refusal> {
        reader.begin()
        guard json.count <= Self.largestInput else { return .failure(Self.tooLarge) }
        return json.withUnsafeBufferPointer { buffer in
            do throws(GrammarFault) {
                let (scanner, start) = try Self.object(in: buffer)
                try scanner.finish(reader.object(scanner, at: start, open: 0, dialect: acceptsLocalNames ? .local : .wire))
                if let violation = reader.violation { return .failure(Refusal(code: violation.code, message: violation.message)) }
                let key = reader.key.flatMap { $0.isEmpty ? nil : reader.texts.string($0, in: scanner) }
                return .success(LocalHex(content: reader.content(frame: json), key: key))
            } catch {
                return .failure(Refusal(code: .malformed, message: error.message, isUndecodable: true))
            }
        }
    }

    /// Returns a scanner for the bytes, and the position of the object in them.
    private static func object(in bytes: UnsafeBufferPointer<UInt8>) throws(GrammarFault) -> (JSONScanner, Int) {
        guard let json = JSONScanner(bytes) else { throw GrammarFault(reason: .value, offset: 0, isAtEnd: true) }
        let hasMark = json.byte(0) == 0xEF && json.byte(1) == 0xBB && json.byte(2) == 0xBF
        let start = json.skipSpace(hasMark ? 3 : 0)
        guard json.byte(start) == UInt8(ascii: "{") else { throw json.fault(at: start, .notObject) }
        return (json, start)
    }
}

// MARK: - Checks in this order: operationType, jmObject missing, jmObjectType, form of jmObject, limits

extension WrapperDecoder {
    private enum Decision {
        case refused(Refusal)
        /// The wrapper is accepted. Its object is in the reader.
        case accepted(Operation)
    }

    private mutating func decide(_ json: JSONScanner, _ start: Int) -> Decision {
        let operation: Operation
        if reader.members.operationType.isMissingName {
            if reader.members.object.isMissing {
                if reader.members.hasLinks { return package(json, start) }
                return refused(.unsupportedOperation, "no `operationType` and no `jmObject`", nil, json)
            }
            operation = .store
        } else {
            let known = reader.texts.withBytes(of: reader.members.operationType.slice, in: json) { Operation(matching: $0) }
            guard let known else {
                let message = "`operationType` is `\(excerpt(reader.members.operationType, json))`, which is not known here"
                return refused(.unsupportedOperation, message, nil, json)
            }
            operation = known
        }
        guard let objectType = operation.objectType else { return accepted(operation, json) }
        if reader.members.object.isMissing {
            return refused(.missingObject, "\(operation.rawValue) takes a `jmObject` and has none", operation, json)
        }
        if !accepts(operation, objectType, json) {
            let type = excerpt(reader.members.jmObjectType, json)
            let message = "`jmObjectType` is `\(type)`; \(operation.rawValue) takes `\(objectType)`"
            return refused(.unsupportedObject, message, operation, json)
        }
        switch reader.members.object {
        case .hex where operation == .store:
            return accepted(operation, json)
        case .hex(let start), .object(let start):
            do throws(GrammarFault) {
                _ = try read(operation, json, at: start, open: 1)
                return accepted(operation, json)
            } catch {
                return refused(.malformed, error.message, operation, json)  // unreachable: the grammar was validated before
            }
        case .text(let start, let end, let hasEscapes):
            return embedded(operation, start, end, hasEscapes, json)
        case .other, .absent, .null:
            return refused(.malformed, "`jmObject` is a number, a boolean or an array", operation, json)
        }
    }

    @inline(__always)
    private func accepts(_ operation: Operation, _ objectType: String, _ json: JSONScanner) -> Bool {
        reader.members.jmObjectType.isMissingName
            || reader.texts.withBytes(of: reader.members.jmObjectType.slice, in: json) { type in
                operation == .store && type.equals("Hex") || type.matches(objectType)
            }
    }

    /// Reads the object of a wrapper. The result is in `reader`.
    /// - Parameter open: the number of open containers around the object.
    /// - Returns: the position after the object.
    private mutating func read(
        _ operation: Operation, _ json: JSONScanner, at start: Int, open: Int
    ) throws(GrammarFault) -> Int {
        switch operation {
        case .store: try reader.object(json, at: start, open: open)
        case .hello: try reader.hello(json, at: start, open: open)
        case .ack: try reader.receipt(json, at: start, open: open)
        case .pair: try reader.pairing(json, at: start, open: open)
        case .alert, .ping, .pong, .bye, .dialBack, .dialedBack, .fileDial, .listNews: try json.skipValue(at: start, open: open)
        }
    }

    /// Reads an object that is in a string (rule T5). The slices of a hex then refer to this string.
    private mutating func embedded(
        _ operation: Operation, _ start: Int, _ end: Int, _ hasEscapes: Bool, _ json: JSONScanner
    ) -> Decision {
        reader.report("T5", "jmObject")
        if !hasEscapes { return embedded(operation, json.ending(at: end), at: start, json) }
        var text: [UInt8] = []
        text.reserveCapacity(end - start)
        if json.appendText(start, end, to: &text) { reader.report("T20", "jmObject") }
        reader.text = text
        return text.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return refused(.malformed, "`jmObject` is empty", operation, json) }
            return embedded(operation, JSONScanner(base: base, end: buffer.count), at: 0, json)
        }
    }

    private mutating func embedded(
        _ operation: Operation, _ inner: JSONScanner, at start: Int, _ json: JSONScanner
    ) -> Decision {
        do throws(GrammarFault) {
            let start = inner.skipSpace(start)
            guard inner.byte(start) == UInt8(ascii: "{") else { throw inner.fault(at: start, .notObject) }
            try inner.finish(read(operation, inner, at: start, open: 0))
            return accepted(operation, json)
        } catch {
            return refused(.malformed, "`jmObject` is a text, and in it: \(error.message)", operation, json)
        }
    }

    /// Reads a hex without a wrapper (rule T14).
    private mutating func package(_ json: JSONScanner, _ start: Int) -> Decision {
        reader.begin()
        do throws(GrammarFault) {
            _ = try reader.object(json, at: start, open: 0, dialect: .package)
        } catch {
            return refused(.malformed, error.message, .store, json)  // unreachable: the grammar was validated before
        }
        reader.members.isPackage = true
        return accepted(.store, json)
    }

    private mutating func accepted(_ operation: Operation, _ json: JSONScanner) -> Decision {
        if reader.members.versionID.isMissing { reader.takeOlderVersion(json) }
        if let violation = (operation == .store ? reader.violation : nil) ?? reader.members.violation(over: reader.textLimit) {
            return refused(violation.code, violation.message, operation, json)
        }
        return .accepted(operation)
    }

    private func refused(_ code: RefusalCode, _ message: String, _ operation: Operation?, _ json: JSONScanner) -> Decision {
        .refused(
            Refusal(
                code: code, message: message, sequence: operation?.isNumbered == false ? nil : reader.members.sequence,
                messageID: reader.messageID(json), operation: operation))
    }

    /// Returns the beginning of a text of the peer, for use in a message.
    private func excerpt(_ text: Text, _ json: JSONScanner) -> String {
        PeerName.cut(reader.texts.string(text.slice, in: json), bytes: 64)
    }
}

extension Operation {
    /// Finds the operation with this name, ignoring the case of ASCII letters (rule T8).
    @inline(__always)
    fileprivate init?(matching name: UnsafeRawBufferPointer) {
        if name.equals("Store") {
            self = .store
        } else if let operation = Self.allCases.first(where: { name.matches($0.rawValue) }) {
            self = operation
        } else {
            return nil
        }
    }
}
