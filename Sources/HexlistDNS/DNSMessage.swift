/// A DNS response (RFC 1035 section 4), with the parts that service discovery needs. Untrusted: anyone on the network path may have sent
/// it.
///
/// Parsing never traps: offsets are checked, compression pointers only lead backwards, and at most `maximumRecords` records are read.
public struct DNSMessage: Sendable, Equatable {
    public static let maximumRecords = 2_048
    /// Maximum bytes of all strings of a TXT record that are kept.
    static let textBytes = 4_096

    public struct ResourceRecord: Sendable, Equatable {
        public var name: DNSName
        /// TTL in seconds; 0 if the highest bit is set (RFC 2181 section 8).
        public var ttl: UInt32
        public var data: RecordData
    }

    public enum RecordData: Sendable, Equatable {
        case pointer(DNSName)
        case alias(DNSName)
        /// An SRV record. An empty target means that the service is not available.
        case service(priority: UInt16, port: UInt16, target: DNSName)
        case text([[UInt8]])
        /// An address of 4 or 16 bytes in network byte order.
        case address([UInt8])
    }

    /// The records of the answer section, in order. Unsupported types and classes are left out.
    public var answers: [ResourceRecord] = []

    /// - Returns: `nil` if the bytes are not a response, are truncated, or contain a malformed name.
    public init?(_ bytes: [UInt8]) {
        var reader = Reader(bytes: bytes)
        guard reader.uint16() != nil, let flags = reader.uint16(), flags & 0x8000 != 0, let questions = reader.uint16(),
            let count = reader.uint16(), reader.uint16() != nil, reader.uint16() != nil, questions <= 16
        else { return nil }
        for _ in 0..<questions {
            guard reader.name() != nil, reader.uint16() != nil, reader.uint16() != nil else { return nil }
        }
        for _ in 0..<min(Int(count), Self.maximumRecords) {
            guard let name = reader.name(), let type = reader.uint16(), let recordClass = reader.uint16(), let ttl = reader.uint32(),
                let length = reader.uint16(), reader.left >= Int(length)
            else { return nil }
            let end = reader.offset + Int(length)
            // The highest bit of the class is the cache-flush bit of multicast DNS.
            if recordClass & 0x7FFF == 1 {
                guard let data = Self.data(type, &reader, end: end) else { return nil }
                if let data = data.known { answers.append(ResourceRecord(name: name, ttl: ttl > UInt32(Int32.max) ? 0 : ttl, data: data)) }
            }
            reader.offset = end
        }
    }

    /// - Returns: `nil` if the data is malformed for its type; `known` is `nil` for unsupported types.
    private static func data(_ type: UInt16, _ reader: inout Reader, end: Int) -> (known: RecordData?, Void)? {
        switch type {
        case 12, 5:
            guard let name = reader.name(), reader.offset == end else { return nil }
            return (type == 12 ? .pointer(name) : .alias(name), ())
        case 33:
            guard let priority = reader.uint16(), reader.uint16() != nil, let port = reader.uint16(), let target = reader.name(),
                reader.offset == end
            else { return nil }
            return (.service(priority: priority, port: port, target: target), ())
        case 16:
            var strings: [[UInt8]] = []
            var kept = 0
            while reader.offset < end {
                guard let length = reader.uint8(), reader.offset + Int(length) <= end, let string = reader.take(Int(length)) else {
                    return nil
                }
                kept += string.count + 1
                if kept <= textBytes { strings.append(string) }
            }
            return (.text(strings), ())
        case 1, 28:
            guard end - reader.offset == (type == 1 ? 4 : 16), let address = reader.take(end - reader.offset) else { return nil }
            return (.address(address), ())
        default: return (nil, ())
        }
    }

    private struct Reader {
        let bytes: [UInt8]
        var offset = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        var left: Int { bytes.count - offset }

        mutating func uint8() -> UInt8? {
            guard left >= 1 else { return nil }
            defer { offset += 1 }
            return bytes[offset]
        }

        mutating func uint16() -> UInt16? {
            guard left >= 2 else { return nil }
            defer { offset += 2 }
            return UInt16(bytes[offset]) << 8 | UInt16(bytes[offset + 1])
        }

        mutating func uint32() -> UInt32? {
            guard let high = uint16(), let low = uint16() else { return nil }
            return UInt32(high) << 16 | UInt32(low)
        }

        mutating func take(_ count: Int) -> [UInt8]? {
            guard count >= 0, left >= count else { return nil }
            defer { offset += count }
            return Array(bytes[offset..<offset + count])
        }

        /// Reads a name. Reading then continues after the name, or after its first compression pointer.
        mutating func name() -> DNSName? {
            var labels: [[UInt8]] = []
            var length = 1
            var position = offset
            var resume: Int?
            var jumps = 0
            while true {
                guard position < bytes.count else { return nil }
                let byte = Int(bytes[position])
                switch byte {
                case 0:
                    offset = resume ?? position + 1
                    return DNSName(labels: labels)
                case 1...63:
                    guard position + 1 + byte <= bytes.count else { return nil }
                    labels.append(Array(bytes[position + 1..<position + 1 + byte]))
                    length += byte + 1
                    guard length <= 255 else { return nil }
                    position += byte + 1
                case 0xC0...0xFF:
                    guard position + 1 < bytes.count else { return nil }
                    let target = (byte & 0x3F) << 8 | Int(bytes[position + 1])
                    jumps += 1
                    // Pointers lead backwards, so the loop ends; and a name has at most 127 labels.
                    guard target < position, jumps <= 127 else { return nil }
                    if resume == nil { resume = position + 2 }
                    position = target
                default: return nil
                }
            }
        }
    }
}
