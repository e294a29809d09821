import Foundation
import HexlistModel
import HexlistWire
import Testing

/// Each member of the protocol with each kind of value that a hostile or careless sender may use.
@Suite("All members with all values")
struct HostileFieldTests {
    enum Kind { case text, number, object, array, literal, null, broken }

    /// JSON values, each with its kind, such as `number` or `broken`.
    static let values: [(json: String, kind: Kind)] = {
        let long = String(repeating: "x", count: 1 << 20)
        let texts = [
            "", "a", "0", "-1", "null", "true", "{}", "[]", "[1,", "{\"a\":1}", "6F9619FF-8B86-8011-B42D-00CF4FC964FF",
            "6f9619ff-8b86-8011-b42d-00cf4fc964ff", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
            "{6F9619FF-8B86-8011-B42D-00CF4FC964FF}", "STORE", "Box", "a\u{301}", "\u{202E}", "\u{FEFF}", "\u{10FFFF}",
        ]
        let escaped = [
            #""\u0000""#, #""6F9619FF-8B86-8011-B42D-00CF4FC964FF\u0000x""#, #""\ud800""#, #""\udc00\ud800""#, #""\u001b[2J""#,
            "\"\(long)\"",
        ]
        let numbers = [
            "0", "-0", "1", "-1", "1.5", "1e300", "-1e300", "1E-300", "9007199254740993", "9223372036854775807", "9223372036854775808",
            "-9223372036854775809", "18446744073709551616", String(repeating: "9", count: 5_000), "0.1e1", "4294967296",
        ]
        let rest: [(String, Kind)] = [
            ("{}", .object), (#"{"a":{"b":[]}}"#, .object), ("[]", .array), ("[[],{}]", .array), (#"["a",1,null,true]"#, .array),
            ("true", .literal), ("false", .literal), ("null", .null), ("", .broken), ("nul", .broken), ("01", .broken), ("\"", .broken),
            ("\"\u{1}\"", .broken), ("1.", .broken), ("[1,]", .broken), ("NaN", .broken),
        ]
        return texts.map { (quoted($0), .text) } + escaped.map { ($0, .text) } + numbers.map { ($0, .number) } + rest
    }()

    /// Members, each with a frame that has `$` in place of the value.
    static let fields: [(path: String, frame: String)] = {
        func wrapper(_ name: String, _ rest: String) -> (String, String) { (name, "{\"\(name)\":$,\(rest)}") }
        let store = #""operationType":"Store","jmObject":{"links":["u"]}"#
        let wrappers = [
            wrapper("versionID", store), wrapper("version", store), wrapper("versionType", store), wrapper("message", store),
            wrapper("messageID", store), wrapper("sequence", store), wrapper("jmObjectType", store),
            wrapper("operationType", #""jmObject":{"links":["u"]}"#), wrapper("jmObject", #""operationType":"Store""#),
        ]
        let hexes = ["senderUUID", "senderName", "hexDescription", "hexColor", "links", "children"].map {
            ($0, "{\"operationType\":\"Store\",\"jmObject\":{\"\($0)\":$}}")
        }
        let links = ["url", "linkDescription", "service", "fileName", "type"].map {
            ($0, "{\"operationType\":\"Store\",\"jmObject\":{\"links\":[{\"\($0)\":$}]}}")
        }
        func object(_ operation: String, _ names: [String], _ rest: String = "") -> [(String, String)] {
            names.map { ($0, "{\"operationType\":\"\(operation)\",\"jmObject\":{\(rest)\"\($0)\":$}}") }
        }
        return wrappers + hexes + links
            + object("Hello", ["uuid", "name", "boot", "protocols", "features", "maxFrameBytes", "window"])
            + object("Ack", ["through", "status", "of", "rejected"], #""through":9,"#)
            + ["sequence", "code", "message", "retryAfter"].map {
                (
                    "rejected.\($0)",
                    "{\"operationType\":\"Ack\",\"jmObject\":{\"through\":9,\"status\":\"stored\",\"rejected\":[{\"\($0)\":$}]}}"
                )
            }
            + object("Pair", ["step", "commitment", "nonce", "message"])
            + ["packageUUID", "senderName", "timestamp"].map { ($0, "{\"links\":[\"u\"],\"\($0)\":$}") }
            + ["description", "color", "key"].map { ($0, "{\"operationType\":\"Store\",\"jmObject\":{\"links\":[\"u\"],\"\($0)\":$}}") }
    }()

    @Test("both tables are complete") func count() {
        #expect(Self.values.count >= 40 && Self.fields.count >= 40)
    }

    @Test("each combination has a typed result, without a trap", arguments: fields)
    func outcome(_ field: (path: String, frame: String)) throws {
        var decoder = WrapperDecoder(reportsRepairs: true)
        for value in Self.values {
            let text = field.frame.replacingOccurrences(of: "$", with: value.json)
            let name = "\(field.path) = \(value.json.prefix(60))"
            switch decoder.decode(Array(text.utf8)) {
            case .refused(let refusal):
                #expect(refusal.isUndecodable == (value.kind == .broken), "\(name): \(refusal.message)")
                check(refusal, field.path, value, name)
            case .wrapper(let wrapper):
                #expect(value.kind != .broken, "\(name)")
                try check(wrapper, field.path, value, name)
            }
        }
    }

    /// Checks that the refusal is permitted for this field and value.
    private func check(_ refusal: Refusal, _ field: String, _ value: (json: String, kind: Kind), _ name: String) {
        guard value.kind != .broken else { return #expect(refusal.code == .malformed, "\(name)") }
        let isLong = value.json.utf8.count > 1 << 20
        switch refusal.code {
        case .tooLarge: #expect(isLong, "\(name)")
        case .malformed: #expect(field == "jmObject", "\(name): \(refusal.message)")  // rule T5
        case .missingObject: #expect(field == "jmObject" && value.kind == .null || field == "operationType", "\(name)")
        case .unsupportedOperation: #expect(field == "operationType", "\(name)")
        case .unsupportedObject: #expect(field == "jmObjectType", "\(name)")
        case .tooManyLinks, .blocked, .notAccepting, .quotaExceeded, .storageFull, .internal: Issue.record("\(name): \(refusal.code)")
        }
    }

    /// Checks that decoded values have the protocol's types, by the rules T2, T3, T4, T13, T20 and T21.
    private func check(_ wrapper: DecodedWrapper, _ field: String, _ value: (json: String, kind: Kind), _ name: String) throws {
        if let sequence = wrapper.sequence {
            #expect(sequence >= 1 && field == "sequence" && value.kind == .number && Int64(value.json) == sequence, "\(name)")
        }
        if field == "sequence", value.kind == .number, let number = Int64(value.json), number >= 1 {
            #expect(wrapper.sequence == number, "\(name)")
        }
        if let id = wrapper.messageID {
            #expect(id.uuid != .nil && id.uuid != .max && value.json.utf8.count == 38, "\(name)")  // rule T21
        }
        switch wrapper.object {
        case .hex(let hex):
            let plain = PlainHex(hex)
            for text in [plain.senderUUID, plain.senderName, plain.hexDescription, plain.hexColor]
                + plain.links.flatMap({ [$0.url, $0.linkDescription, $0.service] })
            {
                #expect(!text.unicodeScalars.contains("\u{0}") && text.utf8.count <= ProtocolLimits.stringBytes, "\(name)")
            }
            #expect(plain.links.allSatisfy { !$0.service.isEmpty }, "\(name)")
            guard ["senderUUID", "senderName", "hexDescription", "hexColor"].contains(field),
                wrapper.repairs.allSatisfy({ $0.rule != "T14" })
            else { return }
            let found = [
                "senderUUID": plain.senderUUID, "senderName": plain.senderName, "hexDescription": plain.hexDescription,
                "hexColor": plain.hexColor,
            ][field]
            switch value.kind {
            case .number, .literal: #expect(found == value.json, "\(name)")
            case .null, .object, .array: #expect(found == "", "\(name)")
            case .text: #expect(found?.isEmpty == (value.json == "\"\""), "\(name)")
            case .broken: break
            }
        case .hello(let hello):
            #expect(ProtocolLimits.windowFramesRange.contains(hello.window), "\(name)")
            #expect(hello.maxFrameBytes >= ProtocolLimits.firstFrameBytes, "\(name)")
            if hello.uuid != nil { #expect(field == "uuid" && value.json.utf8.count == 38, "\(name)") }
        case .receipt(let receipt):
            #expect(
                receipt.through >= -1 && receipt.rejected.allSatisfy { $0.retryAfter.map(ProtocolLimits.retryAfterRange.contains) ?? true },
                "\(name)")
        case .pairing, .none: break
        }
    }
}
