/// An incremental parser of `multipart/form-data` (RFC 7578). Performs no IO.
struct MultipartParser {
    enum Event: Equatable {
        /// A part begins. Both names are untrusted text. `fileName` is `nil` if the part is not a file.
        case part(name: String, fileName: String?)
        /// The next bytes of the current part, at least one.
        case bytes([UInt8])
        case partEnd
    }

    enum Fault: Error { case malformed }

    private enum State { case preamble, delimiter, head, bodyStart, body, epilogue }

    /// Maximum bytes of the head of a part.
    static let headBytes = 4 << 10
    /// Maximum number of parts.
    static let partLimit = 64
    /// Maximum bytes of a boundary (RFC 2046).
    private static let boundaryBytes = 70

    private let delimiter: [UInt8]
    private var state = State.preamble
    private var parts = 0
    /// The bytes that are not processed yet. Begins with a line break, because a delimiter includes the line break before it, which the
    /// first delimiter of a body may lack.
    private var buffer: [UInt8] = Array("\r\n".utf8)

    init(boundary: String) throws(Fault) {
        guard (1...Self.boundaryBytes).contains(boundary.utf8.count) else { throw .malformed }
        delimiter = Array("\r\n--\(boundary)".utf8)
    }

    /// Processes the next bytes of the body. Returns the events that they complete.
    mutating func feed(_ bytes: some Sequence<UInt8>) throws(Fault) -> [Event] {
        buffer += bytes
        var events: [Event] = []
        var position = 0
        while try step(&position, &events) {}
        buffer.removeFirst(position)
        return events
    }

    /// Checks, at the end of the body, that the body was complete.
    func finish() throws(Fault) {
        guard case .epilogue = state else { throw .malformed }
    }

    /// Processes the next element in the buffer: a delimiter, the head of a part, or bytes of its body.
    /// - Parameter position: the offset of the first byte that is not processed.
    /// - Returns: `false` if more bytes are needed.
    private mutating func step(_ position: inout Int, _ events: inout [Event]) throws(Fault) -> Bool {
        switch state {
        case .preamble, .body:
            let isBody = state == .body
            let found = find(delimiter, from: position)
            // The end of the buffer may be the beginning of a delimiter, so it is processed with the next bytes.
            let end = found ?? max(position, buffer.count - delimiter.count + 1)
            if isBody, end > position { events.append(.bytes(Array(buffer[position..<end]))) }
            position = end
            guard found != nil else { return false }
            position += delimiter.count
            if isBody { events.append(.partEnd) }
            state = .delimiter
            return true
        case .delimiter:
            guard buffer.count - position >= 2 else { return false }
            guard !buffer[position...].starts(with: "--".utf8) else {
                state = .epilogue
                return true
            }
            // Spaces may follow a boundary.
            guard let line = find(Array("\r\n".utf8), from: position) else { return try needsMore(position) }
            guard buffer[position..<line].allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }), parts < Self.partLimit else {
                throw .malformed
            }
            parts += 1
            position = line  // the line break before the first field
            state = .head
            return true
        case .head:
            guard let end = find(Array("\r\n\r\n".utf8), from: position) else { return try needsMore(position) }
            events.append(try Self.part(buffer[position..<end]))
            position = end + 2
            state = .bodyStart
            return true
        case .bodyStart:
            // The body of a part may be empty. Then its delimiter begins with the line break at the end of the head.
            let rest = buffer[position...]
            if rest.starts(with: delimiter) {
                state = .body
                return true
            }
            guard rest.count >= delimiter.count || !delimiter.starts(with: rest) else { return false }
            position += 2
            state = .body
            return true
        case .epilogue:
            position = buffer.count
            return false
        }
    }

    private func needsMore(_ position: Int) throws(Fault) -> Bool {
        guard buffer.count - position <= Self.headBytes else { throw .malformed }
        return false
    }

    private static func part(_ head: ArraySlice<UInt8>) throws(Fault) -> Event {
        guard head.count <= headBytes else { throw .malformed }
        for line in head.split(whereSeparator: { $0 == 13 || $0 == 10 }) {
            let field = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            guard field.count == 2, String(decoding: field[0], as: UTF8.self).lowercased() == "content-disposition" else { continue }
            let value = ParameterizedField(String(decoding: field[1], as: UTF8.self))
            return .part(name: value["name"] ?? "", fileName: value.fileName)
        }
        throw .malformed
    }

    private func find(_ pattern: [UInt8], from start: Int) -> Int? {
        var position = start
        while let next = buffer[position...].firstIndex(of: pattern[0]) {
            guard buffer.count - next >= pattern.count else { return nil }
            if buffer[next..<(next + pattern.count)].elementsEqual(pattern) { return next }
            position = next + 1
        }
        return nil
    }
}
