@testable import HexlistDNS

/// Writes DNS answers, valid and invalid.
struct Answer {
    var bytes: [UInt8]

    /// - Parameter count: number of answers in the header.
    init(flags: UInt16 = 0x8180, count: Int, question: String = "_hexlist._tcp.corp.example") {
        bytes = [0x12, 0x34]
        bytes += Self.uint16(Int(flags)) + Self.uint16(1) + Self.uint16(count) + [0, 0, 0, 0]
        bytes += Self.name(question) + Self.uint16(12) + Self.uint16(1)
    }

    static func uint16(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)] }

    static func label(_ label: [UInt8]) -> [UInt8] { [UInt8(label.count)] + label }
    static func label(_ text: String) -> [UInt8] { label(Array(text.utf8)) }

    /// A name as labels, split at dots.
    static func name(_ text: String) -> [UInt8] { text.split(separator: ".").flatMap { label(String($0)) } + [0] }

    mutating func add(
        _ type: Int, at name: [UInt8] = [0xC0, 12], ttl: [UInt8] = [0, 0, 0, 120], recordClass: Int = 1, length: Int? = nil, _ data: [UInt8]
    ) {
        bytes += name + Self.uint16(type) + Self.uint16(recordClass) + ttl + Self.uint16(length ?? data.count) + data
    }

    static func service(_ port: Int, _ target: [UInt8], priority: Int = 0) -> [UInt8] {
        uint16(priority) + uint16(0) + uint16(port) + target
    }

    var message: DNSMessage? { DNSMessage(bytes) }
}

extension DNSName {
    /// Parses a name. An invalid text gives the root.
    static func of(_ text: String) -> DNSName { DNSName(text) ?? DNSName(labels: []) }
}
