import HexlistJSON
public import HexlistModel

/// A hex of the local side: an import, a line of a bulk stream, a request to the local API.
public struct LocalHex: Sendable {
    public var content: HexContent
    /// The caller's key, which makes a rerun idempotent and does not travel; `nil` where there was none or an empty one.
    public var key: String?

    public init(content: HexContent, key: String? = nil) {
        self.content = content
        self.key = key
    }
}

/// The tolerant decoder (Docs/Protocol.md, "Tolerant decoding"): grammar is strict, what the object says is read
/// generously.
///
/// One pass over the bytes, without a general JSON tree on the way: texts are slices of the frame. Takes time linear in
/// the bytes whatever they are: no more than a few passes over any of them, no recursion, no allocation by a claim. A
/// decoder keeps room for the next frame and nothing else; it is used by one thread at a time.
public struct WrapperDecoder: Sendable {
    /// Bytes; slices count in 31 bits. Far above the longest frame.
    static let largestInput = 1 << 28

    private static let tooLarge = Refusal(code: .tooLarge, message: "more than \(largestInput) bytes of JSON")

    private var reader: HexReader

    /// - Parameter reportsRepairs: fills `DecodedWrapper.repairs`, for a person to read. Costs time.
    public init(reportsRepairs: Bool = false) { reader = HexReader(reportsRepairs: reportsRepairs) }

    /// Never traps and never throws, whatever the bytes.
    /// - Parameter frame: one frame's body.
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

    /// Apart, and not inlined, for the reason `HexReader.fill` is.
    @inline(never)
    private mutating func wrapper(_ operation: Operation, _ json: JSONScanner, _ frame: [UInt8]) -> DecodedFrame {
        var wrapper = DecodedWrapper(operation)
        reader.fill(&wrapper, json, frame)
        return .wrapper(wrapper)
    }

    /// Decodes a HexJM that stands alone (T1–T4, T12, T13, T15–T20 and the bounds).
    /// - Parameters:
    ///   - json: white space and a byte order mark around the object are allowed.
    ///   - acceptsLocalNames: `description` and `color` stand for `hexDescription` and `hexColor` where those are
    ///     missing, and `key` is taken out of the hex.
    public mutating func decodeHex(_ json: [UInt8], acceptsLocalNames: Bool) -> Result<LocalHex, Refusal> {
        reader.begin()
        guard json.count <= Self.largestInput else { return .failure(Self.tooLarge) }
        return json.withUnsafeBufferPointer { buffer in
            do throws(GrammarFault) {
                let (scanner, start) = try Self.object(in: buffer)
                try scanner.finish(reader.object(scanner, at: start, open: 0, dialect: acceptsLocalNames ? .local : .wire))
                if let excess = reader.excess { return .failure(Refusal(code: excess.code, message: excess.message)) }
                let key = reader.key.flatMap { $0.isEmpty ? nil : reader.texts.string($0, in: scanner) }
                return .success(LocalHex(content: reader.content(frame: json), key: key))
            } catch {
                return .failure(Refusal(code: .malformed, message: error.message, isUndecodable: true))
            }
        }
    }

    /// The scanner of the bytes and where their object begins.
    private static func object(in buffer: UnsafeBufferPointer<UInt8>) throws(GrammarFault) -> (JSONScanner, Int) {
        guard let base = buffer.baseAddress else { throw GrammarFault(reason: .value, offset: 0, isAtEnd: true) }
        let json = JSONScanner(base: base, end: buffer.count)
        let hasMark = json.byte(0) == 0xEF && json.byte(1) == 0xBB && json.byte(2) == 0xBF
        let start = json.skipSpace(hasMark ? 3 : 0)
        guard json.byte(start) == UInt8(ascii: "{") else { throw json.fault(at: start, .notObject) }
        return (json, start)
    }
}

// MARK: - The order of checks: operationType, jmObject missing, jmObjectType, form of jmObject, bounds

extension WrapperDecoder {
    private enum Decision {
        case refused(Refusal)
        /// The reader has the object.
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
        if !takes(operation, objectType, json) {
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
                return refused(.malformed, error.message, operation, json)  // not reached: it was read before
            }
        case .text(let start, let end, let hasEscapes):
            return embedded(operation, start, end, hasEscapes, json)
        case .other, .absent, .null:
            return refused(.malformed, "`jmObject` is a number, a boolean or an array", operation, json)
        }
    }

    @inline(__always)
    private func takes(_ operation: Operation, _ objectType: String, _ json: JSONScanner) -> Bool {
        reader.members.jmObjectType.isMissingName
            || reader.texts.withBytes(of: reader.members.jmObjectType.slice, in: json) { type in
                operation == .store && type.equals("Hex") || type.matches(objectType)
            }
    }

    /// Reads the object into the reader.
    /// - Parameter open: containers open around the object.
    /// - Returns: the position behind it.
    private mutating func read(
        _ operation: Operation, _ json: JSONScanner, at start: Int, open: Int
    ) throws(GrammarFault) -> Int {
        switch operation {
        case .store: try reader.object(json, at: start, open: open)
        case .hello: try reader.hello(json, at: start, open: open)
        case .ack: try reader.receipt(json, at: start, open: open)
        case .pair: try reader.pairing(json, at: start, open: open)
        case .alert, .ping, .pong, .bye, .dialBack, .dialedBack: try json.skipValue(at: start, open: open)
        }
    }

    /// The object comes out of a text (T5), whose bytes then are what a hex is made of.
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

    /// No wrapper: the whole object is the hex, and no member of a wrapper is read (T14).
    private mutating func package(_ json: JSONScanner, _ start: Int) -> Decision {
        reader.begin()
        do throws(GrammarFault) {
            _ = try reader.object(json, at: start, open: 0, dialect: .package)
        } catch {
            return refused(.malformed, error.message, .store, json)  // not reached: it was read before
        }
        reader.members.isPackage = true
        return accepted(.store, json)
    }

    private mutating func accepted(_ operation: Operation, _ json: JSONScanner) -> Decision {
        if reader.members.versionID.isMissing { reader.takeOlderVersion(json) }
        if let excess = (operation == .store ? reader.excess : nil) ?? reader.members.excess(over: reader.textLimit) {
            return refused(excess.code, excess.message, operation, json)
        }
        return .accepted(operation)
    }

    private func refused(_ code: RefusalCode, _ message: String, _ operation: Operation?, _ json: JSONScanner) -> Decision {
        .refused(
            Refusal(
                code: code, message: message, sequence: operation?.isNumbered == false ? nil : reader.members.sequence,
                messageID: reader.messageID(json), operation: operation))
    }

    /// The beginning of a peer's word, for a message.
    private func excerpt(_ text: Text, _ json: JSONScanner) -> String {
        PeerName.cut(reader.texts.string(text.slice, in: json), bytes: 64)
    }
}

extension Operation {
    /// The operation of that name, ASCII letters in either case (T8).
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
