public import HexlistJSON

/// One message of a Server-Sent Events stream.
public struct ServerSentEvent: Sendable, Equatable {
    /// The message id, which clients send as `Last-Event-ID` when they reconnect.
    public var id: String?
    /// The event type; `nil` means `message`.
    public var event: String?
    /// The data, in one line. It is JSON, which has no unescaped line breaks.
    public var data: String

    public init(id: String? = nil, event: String? = nil, data: String) {
        self.id = id
        self.event = event
        self.data = data
    }

    public var bytes: [UInt8] {
        var text = ""
        if let id { text += "id: \(id)\n" }
        if let event { text += "event: \(event)\n" }
        text += "data: \(data)\n\n"
        return Array(text.utf8)
    }

    /// A comment line, which is sent periodically as a keep-alive.
    public static let comment = Array(": still here\n\n".utf8)
}

/// Incremental parser of a Server-Sent Events stream.
public struct ServerSentEventParser: Sendable {
    private var line: [UInt8] = []
    private var message = ServerSentEvent(data: "")
    private var hasData = false
    /// Maximum bytes of a line. hexlistd sends no longer lines.
    private let limit: Int

    public init(limit: Int = 64 << 20) { self.limit = limit }

    /// Parses the next bytes. Returns the messages completed by them.
    public mutating func feed(_ bytes: some Sequence<UInt8>) throws(JSONFault) -> [ServerSentEvent] {
        var messages: [ServerSentEvent] = []
        for byte in bytes {
            if byte != UInt8(ascii: "\n") {
                guard line.count < limit else { throw JSONFault("a line of the event stream is longer than \(limit) bytes") }
                line.append(byte)
                continue
            }
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            if line.isEmpty {
                if hasData { messages.append(message) }
                message = ServerSentEvent(data: "")
                hasData = false
            } else {
                take(line)
            }
            line.removeAll(keepingCapacity: true)
        }
        return messages
    }

    private mutating func take(_ line: [UInt8]) {
        let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = parts.first, !name.isEmpty else { return }  // a comment
        var value = parts.count == 2 ? parts[1] : []
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        let text = String(decoding: value, as: UTF8.self)
        switch String(decoding: name, as: UTF8.self) {
        case "id": message.id = text
        case "event": message.event = text
        case "data":
            message.data = hasData ? "\(message.data)\n\(text)" : text
            hasData = true
        default: break  // the standard says that other fields are ignored
        }
    }
}
