import Foundation
import HexlistModel

/// The members of `--json` output that the tests read.
struct PeerRow: Decodable, Sendable, Equatable {
    struct Endpoint: Decodable, Sendable, Equatable {
        var host: String
        var port: Int
        var via: String
        /// The time of the last handshake there that proved the peer's key.
        var lastOK: String?
    }

    var uuid: String?
    var name: String
    var state: String
    var reason: String?
    var why: String?
    var trust: String
    var fingerprint: String?
    var boot: String?
    var endpoints: [Endpoint]
}

struct StatusRow: Decodable, Sendable {
    struct Avahi: Decodable, Sendable {
        var state: String
        var message: String?
    }

    var uuid: String
    var name: String
    var pid: Int
    var port: Int
    var avahi: Avahi
    struct Identity: Decodable, Sendable {
        var state: String
        var message: String?
    }

    var identity: Identity
    var peers: Int
    var ghosts: Int
    var unread: Int
    var held: Int
    var outbox: [String: Int]
}

struct LinkRow: Decodable, Sendable, Equatable {
    var url: String
    var linkDescription: String
    var service: String
}

struct HexRow: Decodable, Sendable {
    var id: Int64
    var location: String
    var senderUUID: String
    var senderName: String
    var peerUUID: String?
    var description: String
    var color: String
    var linkCount: Int
    var unread: Bool
    var messageID: String?
    var links: [LinkRow]?
}

struct SendRow: Decodable, Sendable {
    var outboxID: Int64
    var messageID: String
    var peer: String
    var state: String
    var code: String?
}

struct EventRow: Decodable, Sendable {
    var number: Int64
    var type: String
    var peer: String?
    var hex: Int64?
}

/// One page of the local API.
struct Items<Item: Decodable & Sendable>: Decodable, Sendable {
    var items: [Item]
}

enum JSONLines {
    /// Decodes one object per line.
    static func decode<Row: Decodable>(_ text: String, as type: Row.Type = Row.self) throws -> [Row] {
        try text.split(separator: "\n").map { try JSONDecoder().decode(Row.self, from: Data($0.utf8)) }
    }

    /// The bytes of a top-level member's value in a line of compact JSON.
    static func member(_ name: String, of line: some StringProtocol) -> String? {
        let bytes = Array(line.utf8)
        var depth = 0
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "\""):
                let end = endOfString(bytes, from: index)
                let isWanted = depth == 1 && bytes[(index + 1)..<end].elementsEqual(name.utf8)
                index = end
                if isWanted, index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: ":") {
                    return value(bytes, from: index + 2)
                }
            default: break
            }
            index += 1
        }
        return nil
    }

    /// The index of the closing quote.
    private static func endOfString(_ bytes: [UInt8], from start: Int) -> Int {
        var index = start + 1
        while index < bytes.count - 1, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index, bytes.count - 1)
    }

    private static func value(_ bytes: [UInt8], from start: Int) -> String {
        var depth = 0
        var index = start
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): index = endOfString(bytes, from: index)
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return String(decoding: bytes[start..<index], as: UTF8.self) }
                depth -= 1
            case UInt8(ascii: ","):
                if depth == 0 { return String(decoding: bytes[start..<index], as: UTF8.self) }
            default: break
            }
            index += 1
        }
        return String(decoding: bytes[start...], as: UTF8.self)
    }
}
