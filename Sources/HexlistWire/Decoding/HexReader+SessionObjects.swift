import HexlistJSON
import HexlistModel

// The objects of Hello, Ack and Pair are small and rare, so they are parsed into values. As in hexes, the members may have any order,
// unknown members are ignored, and the last member of a repeated name is used.

/// Maximum number of refusals that are read from a receipt. No window is larger. For a receipt with more refusals, one with an invalid
/// number is added, so that the session ends.
private let maximumRejected = ProtocolLimits.windowFramesRange.upperBound

private enum HelloMember: String, CaseIterable { case uuid, name, boot, protocols, features, maxFrameBytes, window, card }
private enum ReceiptMember: String, CaseIterable { case through, status, of, rejected, envelope }
private enum RejectionMember: String, CaseIterable { case sequence, code, message, retryAfter }
private enum PairingMember: String, CaseIterable { case step, commitment, nonce, message }

extension HexReader {
    /// Reads the object of a Hello.
    /// - Parameter open: the number of open containers around the object.
    /// - Returns: the position after the object.
    mutating func hello(_ json: JSONScanner, at start: Int, open: Int) throws(GrammarFault) -> Int {
        var uuid = Text()
        var name = Text()
        var boot = Text()
        var card = Text()
        var hello = Hello(uuid: nil, name: "", boot: nil)
        let end = try members(json, at: start) { (reader, member: HelloMember?, position) throws(GrammarFault) in
            switch member {
            case .uuid: return try reader.texts.read(json, at: position, open: open + 1, into: &uuid)
            case .name: return try reader.texts.read(json, at: position, open: open + 1, into: &name)
            case .boot: return try reader.texts.read(json, at: position, open: open + 1, into: &boot)
            case .card: return try reader.texts.read(json, at: position, open: open + 1, into: &card)
            case .protocols:
                let (protocols, end) = try reader.elements(json, at: position, open: open + 1) { json, start, end in
                    json.integer(at: start, end).flatMap { Int(exactly: $0) }
                }
                hello.protocols = protocols ?? [1]
                return end
            case .features:
                let (features, end) = try reader.elements(json, at: position, open: open + 1) { json, start, end in
                    json.plainString(start, end)
                }
                hello.features = features ?? []
                return end
            case .maxFrameBytes:
                let end = try json.skipValue(at: position, open: open + 1)
                hello.maxFrameBytes = json.integer(
                    at: position, end, in: ProtocolLimits.firstFrameBytes...ProtocolLimits.largestFrameBytes,
                    default: ProtocolLimits.trustedFrameBytes)
                return end
            case .window:
                let end = try json.skipValue(at: position, open: open + 1)
                hello.window = json.integer(
                    at: position, end, in: ProtocolLimits.windowFramesRange, default: ProtocolLimits.windowFrames)
                return end
            case nil: return try json.skipValue(at: position, open: open + 1)
            }
        }
        hello.uuid = texts.withBytes(of: uuid.slice, in: json) { UUIDBytes(text: $0) }.map { PeerID($0) }
        hello.name = texts.string(name.slice, in: json, bytes: ProtocolLimits.nameBytes)
        hello.boot = BootNonce(texts.string(boot.slice, in: json, bytes: ProtocolLimits.wordBytes))
        // A card of another length is ignored. This bounds the memory, because a session stores the Hello of its peer.
        if card.slice.count == ProtocolLimits.cardTextBytes { hello.card = texts.string(card.slice, in: json) }
        object = .hello(hello)
        return end
    }

    /// Reads the object of an Ack. If a member is invalid, `through` or the sequence number of the refusal is set to -1. The session then
    /// ends with `receiptFault`.
    mutating func receipt(_ json: JSONScanner, at start: Int, open: Int) throws(GrammarFault) -> Int {
        var status = Text()
        var of = Text()
        var envelope = Text()
        var receipt = Receipt(through: -1, status: nil)
        let end = try members(json, at: start) { (reader, member: ReceiptMember?, position) throws(GrammarFault) in
            switch member {
            case .through:
                let end = try json.skipValue(at: position, open: open + 1)
                receipt.through = json.number(at: position, end)
                return end
            case .status: return try reader.texts.read(json, at: position, open: open + 1, into: &status)
            case .of: return try reader.texts.read(json, at: position, open: open + 1, into: &of)
            case .envelope: return try reader.texts.read(json, at: position, open: open + 1, into: &envelope)
            case .rejected:
                let (rejected, end) = try reader.rejected(json, at: position, open: open + 1)
                receipt.rejected = rejected
                return end
            case nil: return try json.skipValue(at: position, open: open + 1)
            }
        }
        receipt.status = named(status, json)
        let id = texts.string(envelope.slice, in: json, bytes: ProtocolLimits.wordBytes)
        receipt.envelope = id.isEmpty ? nil : id
        // The first result of a hex cannot be `duplicate`.
        receipt.of = named(of, json).flatMap { $0 == .duplicate ? nil : $0 }
        object = .receipt(receipt)
        return end
    }

    /// Reads the refusals of a receipt.
    /// - Returns: the refusals, none if the member is missing; and the position after the value.
    private mutating func rejected(_ json: JSONScanner, at start: Int, open: Int) throws(GrammarFault) -> ([HexRejection], Int) {
        let unreadable = HexRejection(sequence: -1, code: .internal)
        guard json.byte(start) == UInt8(ascii: "[") else {
            let end = try json.skipValue(at: start, open: open)
            return (json.byte(start) == UInt8(ascii: "n") ? [] : [unreadable], end)
        }
        var rejected: [HexRejection] = []
        var count = 0
        var position = json.enterArray(at: start)
        while json.byte(position) != UInt8(ascii: "]") {
            if json.byte(position) == UInt8(ascii: "{") {
                let (rejection, end) = try rejection(json, at: position, open: open + 1)
                if rejected.count < maximumRejected { rejected.append(rejection) }
                position = end
            } else {
                position = try json.skipValue(at: position, open: open + 1)
                if rejected.count < maximumRejected { rejected.append(unreadable) }
            }
            count += 1
            position = try json.nextElement(position)
        }
        if count > maximumRejected { rejected.append(unreadable) }
        return (rejected, position + 1)
    }

    private mutating func rejection(_ json: JSONScanner, at start: Int, open: Int) throws(GrammarFault) -> (HexRejection, Int) {
        var code = Text()
        var message = Text()
        var rejection = HexRejection(sequence: -1, code: .internal)
        let end = try members(json, at: start) { (reader, member: RejectionMember?, position) throws(GrammarFault) in
            switch member {
            case .sequence:
                let end = try json.skipValue(at: position, open: open + 1)
                rejection.sequence = json.number(at: position, end)
                return end
            case .code: return try reader.texts.read(json, at: position, open: open + 1, into: &code)
            case .message: return try reader.texts.read(json, at: position, open: open + 1, into: &message)
            case .retryAfter:
                let end = try json.skipValue(at: position, open: open + 1)
                let seconds = json.integer(at: position, end)
                rejection.retryAfter = seconds.map { Self.clamped($0, to: ProtocolLimits.retryAfterRange) }
                return end
            case nil: return try json.skipValue(at: position, open: open + 1)
            }
        }
        rejection.message = texts.string(message.slice, in: json, bytes: ProtocolLimits.messageBytes)
        if let known: RefusalCode = named(code, json) {
            rejection.code = known
            if !known.isTemporary { rejection.retryAfter = nil }
        } else {
            // A code of a newer version is read as `internal`, which is temporary. The code's name is put before the message.
            let name = texts.string(code.slice, in: json, bytes: ProtocolLimits.wordBytes)
            let description = rejection.message.isEmpty ? name : "\(name): \(rejection.message)"
            rejection.message = PeerName.cut(description, bytes: ProtocolLimits.messageBytes)
        }
        return (rejection, end)
    }

    mutating func pairing(_ json: JSONScanner, at start: Int, open: Int) throws(GrammarFault) -> Int {
        var step = Text()
        var commitment = Text()
        var nonce = Text()
        var message = Text()
        let end = try members(json, at: start) { (reader, member: PairingMember?, position) throws(GrammarFault) in
            switch member {
            case .step: return try reader.texts.read(json, at: position, open: open + 1, into: &step)
            case .commitment: return try reader.texts.read(json, at: position, open: open + 1, into: &commitment)
            case .nonce: return try reader.texts.read(json, at: position, open: open + 1, into: &nonce)
            case .message: return try reader.texts.read(json, at: position, open: open + 1, into: &message)
            case nil: return try json.skipValue(at: position, open: open + 1)
            }
        }
        let pairing = Pairing(
            step: texts.string(step.slice, in: json, bytes: ProtocolLimits.wordBytes),
            commitment: texts.string(commitment.slice, in: json, bytes: ProtocolLimits.wordBytes),
            nonce: texts.string(nonce.slice, in: json, bytes: ProtocolLimits.wordBytes),
            message: texts.string(message.slice, in: json, bytes: ProtocolLimits.messageBytes))
        object = .pairing(pairing)
        return end
    }

    // MARK: - Iteration

    /// Calls `read` for each member of an object, with the position of its value. The member is `nil` if it is unknown. `read` returns the
    /// position after the value.
    private mutating func members<Member: RawRepresentable<String> & CaseIterable>(
        _ json: JSONScanner, at start: Int, _ read: (inout HexReader, Member?, _ position: Int) throws(GrammarFault) -> Int
    ) throws(GrammarFault) -> Int {
        var position = try json.enterObject(at: start)
        while json.byte(position) != UInt8(ascii: "}") {
            let name = position + 1
            let token = try json.string(from: name)
            position = try json.value(behindName: token.end + 1)
            let member = json.withName(name, token, &scratch) { name in
                Member(utf8: UnsafeRawBufferPointer(start: name.start, count: name.count))
            }
            position = try json.nextMember(read(&self, member, position))
        }
        return position + 1
    }

    private func named<Name: RawRepresentable<String> & CaseIterable>(_ text: Text, _ json: JSONScanner) -> Name? {
        texts.withBytes(of: text.slice, in: json) { Name(utf8: $0) }
    }

    /// Calls `element` for each element of an array.
    /// - Returns: the results that are not `nil`, or `nil` if the value is not an array; and the position after the value.
    private func elements<Element>(
        _ json: JSONScanner, at start: Int, open: Int, _ element: (JSONScanner, Int, Int) -> Element?
    ) throws(GrammarFault) -> ([Element]?, Int) {
        guard json.byte(start) == UInt8(ascii: "[") else { return (nil, try json.skipValue(at: start, open: open)) }
        var elements: [Element] = []
        var position = json.enterArray(at: start)
        while json.byte(position) != UInt8(ascii: "]") {
            let end = try json.skipValue(at: position, open: open + 1)
            if elements.count < ProtocolLimits.helloElements, let element = element(json, position, end) { elements.append(element) }
            position = try json.nextElement(end)
        }
        return (elements, position + 1)
    }

    fileprivate static func clamped(_ value: Int64, to range: ClosedRange<Int>) -> Int {
        Int(exactly: min(max(value, Int64(range.lowerBound)), Int64(range.upperBound))) ?? range.lowerBound
    }
}

extension JSONScanner {
    /// Returns the integer at a position, clamped to 64 bits; `nil` if the value is not a number.
    fileprivate func integer(at start: Int, _ stop: Int) -> Int64? {
        switch byte(start) {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): integer(start, stop)
        default: nil
        }
    }

    fileprivate func integer(at start: Int, _ stop: Int, in range: ClosedRange<Int>, default value: Int) -> Int {
        integer(at: start, stop).map { HexReader.clamped($0, to: range) } ?? value
    }

    /// Returns the sequence number at a position; -1 if it is invalid.
    fileprivate func number(at start: Int, _ stop: Int) -> Int64 {
        integer(at: start, stop).flatMap { $0 >= 0 && $0 < .max ? $0 : nil } ?? -1
    }

    /// Returns the string at a position; `nil` if the value is not a string, or is longer than `ProtocolLimits.wordBytes`.
    fileprivate func plainString(_ start: Int, _ stop: Int) -> String? {
        guard byte(start) == UInt8(ascii: "\""), stop - start - 2 <= ProtocolLimits.wordBytes else { return nil }
        var text: [UInt8] = []
        _ = appendText(start + 1, stop - 1, to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
