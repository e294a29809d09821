import Foundation
import HexlistModel
import HexlistWire
import Testing

func decode(_ text: String, repairs: Bool = false) -> DecodedFrame { decode(Array(text.utf8), repairs: repairs) }

func decode(_ bytes: [UInt8], repairs: Bool = false) -> DecodedFrame {
    var decoder = WrapperDecoder(reportsRepairs: repairs)
    return decoder.decode(bytes)
}

/// The output of `hexlist frame decode`, parsed; without `repairs` unless requested.
func described(_ frame: DecodedFrame, repairs: Bool = false) throws -> [String: Any] {
    var object = try parsed(String(decoding: FrameJSON.json(frame), as: UTF8.self))
    if !repairs { object["repairs"] = nil }
    return object
}

func parsed(_ json: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
}

/// Compares JSON by structure.
func same(_ left: [String: Any], _ right: [String: Any]) -> Bool { NSDictionary(dictionary: left) == NSDictionary(dictionary: right) }

func wrapper(_ frame: DecodedFrame) throws -> DecodedWrapper {
    guard case .wrapper(let wrapper) = frame else {
        Issue.record("refused: \(frame)")
        throw TestFailure()
    }
    return wrapper
}

func refusal(_ frame: DecodedFrame) throws -> Refusal {
    guard case .refused(let refusal) = frame else {
        Issue.record("accepted: \(String(decoding: FrameJSON.json(frame), as: UTF8.self))")
        throw TestFailure()
    }
    return refusal
}

func hex(_ frame: DecodedFrame) throws -> HexContent {
    guard case .hex(let hex) = try wrapper(frame).object else {
        Issue.record("no hex: \(frame)")
        throw TestFailure()
    }
    return hex
}

struct TestFailure: Error {}

/// A hex in a comparable form: texts instead of slices.
struct PlainHex: Equatable {
    struct Link: Equatable {
        var url: String
        var linkDescription: String
        var service: String
        var extra: String
    }

    var senderUUID: String
    var senderName: String
    var hexDescription: String
    var hexColor: String
    var links: [Link]
    var extra: String

    init(_ hex: HexContent) {
        senderUUID = hex.string(hex.senderUUID)
        senderName = hex.string(hex.senderName)
        hexDescription = hex.string(hex.hexDescription)
        hexColor = hex.string(hex.hexColor)
        extra = hex.string(hex.extra)
        links = hex.links.map {
            Link(
                url: hex.string($0.url), linkDescription: hex.string($0.linkDescription), service: hex.string($0.service),
                extra: hex.string($0.extra))
        }
    }
}

/// A JSON string literal of a text, for embedding (T5, T18).
func quoted(_ text: String) -> String {
    var literal = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": literal += "\\\""
        case "\\": literal += "\\\\"
        case "\n": literal += "\\n"
        case "\r": literal += "\\r"
        case "\t": literal += "\\t"
        case "\u{FEFF}": literal += "\\ufeff"  // Foundation drops an unescaped one
        default: literal.unicodeScalars.append(scalar)
        }
    }
    return literal + "\""
}
