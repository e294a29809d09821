import Foundation
import HexlistModel
import HexlistWire
import TestSupport
import Testing

/// The members of the wrapper itself, and the order in which they are checked.
struct WrapperTests {
    @Test(
        "a decoded wrapper",
        arguments: [
            // Rules T6, T7 and T8 of Docs/Protocol.md, and empty names
            (#"{"jmObject":{}}"#, "Store", "", nil as String?, "{}"),
            (#"{"operationType":"","jmObjectType":"","jmObject":{}}"#, "Store", "", nil, "{}"),
            (#"{"operationType":null,"jmObjectType":null,"jmObject":{}}"#, "Store", "", nil, "{}"),
            (#"{"operationType":{},"jmObjectType":[1],"jmObject":{}}"#, "Store", "", nil, "{}"),
            (#"{"operationType":"sToRe","jmObjectType":"HEX","jmObject":{}}"#, "Store", "", nil, "{}"),
            (#"{"operationType":"PONG","message":"m"}"#, "Pong", "", "m", "{}"),
            (#"{"operationType":"\u0050ing","jmObjectType":"Nonsense","jmObject":"{"}"#, "Ping", "", nil, "{}"),
            // Rules T2 to T4 for texts of the wrapper
            (#"{"operationType":"Bye","message":7,"versionID":true}"#, "Bye", "true", "7", "{}"),
            (#"{"operationType":"Bye","message":null,"versionID":null}"#, "Bye", "", nil, "{}"),
            (#"{"operationType":"Bye","message":[],"versionID":{}}"#, "Bye", "", nil, "{}"),
            (#"{"operationType":"Bye","message":"","versionID":""}"#, "Bye", "", "", "{}"),
            (#"{"operationType":"Bye","message":"\ud800\u0000"}"#, "Bye", "", "\u{FFFD}\u{FFFD}", "{}"),
            // Rule T11: older names of `versionID`
            (#"{"operationType":"Ping","version":"2","versionType":"3"}"#, "Ping", "2", nil, #"{"wrapper":{"versionType":"3"}}"#),
            (#"{"versionType":"3","operationType":"Ping","version":null}"#, "Ping", "3", nil, #"{"wrapper":{"version":null}}"#),
            (#"{"versionType":"3","operationType":"Ping","versionID":""}"#, "Ping", "", nil, #"{"wrapper":{"versionType":"3"}}"#),
            (#"{"version":1.50,"operationType":"Ping","versionID":null}"#, "Ping", "1.50", nil, "{}"),
            (#"{"version":"1","operationType":"Ping","version":"2"}"#, "Ping", "2", nil, "{}"),
            (#"{"version":{},"operationType":"Ping","versionType":"2"}"#, "Ping", "", nil, #"{"wrapper":{"versionType":"2"}}"#),
            // Rules T1 and T19: unknown and repeated members
            (#"{"x":1,"operationType":"Ping","links":["u"],"x":2}"#, "Ping", "", nil, #"{"wrapper":{"x":2,"links":["u"]}}"#),
            (#"{"operationType":"Nope","operationType":"Alert","message":"a","message":"b"}"#, "Alert", "", "b", "{}"),
            (#"{"jmObject":3,"operationType":"Store","jmObject":{}}"#, "Store", "", nil, "{}"),
            (#"{"jmObject":"no","operationType":"Store","jmObject":"{}"}"#, "Store", "", nil, "{}"),
        ]) func understood(_ input: String, _ operation: String, _ version: String, _ message: String?, _ extra: String) throws
    {
        let found = try described(decode(input))
        #expect(found["ok"] as? Bool == true, "\(found)")
        #expect(found["operation"] as? String == operation)
        #expect(found["versionID"] as? String == version)
        #expect(found["message"] as? String == message)
        #expect(same(try #require(found["extra"] as? [String: Any]), try parsed(extra)))
    }

    @Test(
        "a refused wrapper",
        arguments: [
            // operationType is checked before everything but grammar
            (#"{}"#, "unsupportedOperation", false),
            (#"{"operationType":"Retract"}"#, "unsupportedOperation", false),
            (#"{"operationType":"Store ","jmObject":3,"jmObjectType":"x"}"#, "unsupportedOperation", false),
            (#"{"operationType":7,"jmObject":{}}"#, "unsupportedOperation", false),
            (#"{"operationType":"\u212Ack"}"#, "unsupportedOperation", false),
            (#"{"operationType":"","jmObject":null}"#, "unsupportedOperation", false),
            (#"{"links":null,"packageUUID":"0B3D2C1A-1111-4222-8333-444455556666"}"#, "unsupportedOperation", false),
            // a missing object is reported only if the operation is known
            (#"{"operationType":"Store","jmObjectType":"Peer"}"#, "missingObject", false),
            (#"{"operationType":"Hello","jmObject":null}"#, "missingObject", false),
            (#"{"operationType":"Store","jmObject":{},"jmObject":null}"#, "missingObject", false),
            (#"{"operationType":"Store","links":["u"]}"#, "missingObject", false),
            // the type of the object is checked after its presence
            (#"{"operationType":"Store","jmObjectType":"Peer","jmObject":3}"#, "unsupportedObject", false),
            (#"{"operationType":"Ack","jmObjectType":"Hex","jmObject":{}}"#, "unsupportedObject", false),
            (#"{"jmObjectType":"Peer","jmObject":{}}"#, "unsupportedObject", false),
            (#"{"operationType":"Store","jmObjectType":false,"jmObject":{}}"#, "unsupportedObject", false),
            // the form of the object is checked last
            (#"{"operationType":"Store","jmObject":[]}"#, "malformed", false),
            (#"{"operationType":"Store","jmObject":true}"#, "malformed", false),
            (#"{"operationType":"Store","jmObject":""}"#, "malformed", false),
            (#"{"operationType":"Store","jmObject":"[]"}"#, "malformed", false),
            (#"{"operationType":"Store","jmObject":"\"{}\""}"#, "malformed", false),
            (#"{"operationType":"Store","jmObject":"{} {}"}"#, "malformed", false),
            (#"{"operationType":"Store","jmObject":"\ufeff{}"}"#, "malformed", false),
            (#"{"operationType":"Hello","jmObject":"{\"uuid\":}"}"#, "malformed", false),
            (#"{"operationType":"Store","jmObject":"{}","jmObject":"{"}"#, "malformed", false),
            // Rule T22: invalid JSON
            (#"{"operationType":"Nope","x":}"#, "malformed", true),
            ("", "malformed", true),
            ("   ", "malformed", true),
            (#"{"operationType":"Ping"}}"#, "malformed", true),
        ]) func refused(_ input: String, _ code: String, _ isUndecodable: Bool) throws
    {
        let refusal = try refusal(decode(input))
        #expect(refusal.code.rawValue == code)
        #expect(refusal.isUndecodable == isUndecodable)
        #expect(!refusal.message.isEmpty)
    }

    @Test(
        "ids and numbers (T21)",
        arguments: [
            (#""0b3d2c1a-1111-4222-8333-444455556666""#, "0B3D2C1A-1111-4222-8333-444455556666" as String?),
            (#""\u0030B3D2C1A-1111-4222-8333-444455556666""#, "0B3D2C1A-1111-4222-8333-444455556666"),
            (#""FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF""#, nil), (#""ffffffff-ffff-ffff-ffff-ffffffffffff""#, nil),
            (#""FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFE""#, "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFE"),
            (#""00000000-0000-0000-0000-000000000001""#, "00000000-0000-0000-0000-000000000001"),
            (#""0B3D2C1A-1111-4222-8333-44445555666""#, nil), (#""0B3D2C1A-1111-4222-8333-4444555566666""#, nil),
            (#""0B3D2C1A-1111-4222-8333-44445555666G""#, nil), (#""0B3D2C1A_1111-4222-8333-444455556666""#, nil),
            (#""{B3D2C1A-1111-4222-8333-44445555666}""#, nil), (#""0B3D2C1A-1111-4222-8333-444455556666\u0000""#, nil),
            (#""0B3D2C1A111142228333444455556666""#, nil), ("7", nil), ("null", nil), ("{}", nil), (#""""#, nil),
        ]) func messageID(_ id: String, _ expected: String?) throws
    {
        let found = try wrapper(decode(#"{"operationType":"Store","jmObject":{},"messageID":\#(id)}"#))
        #expect(found.messageID?.description == expected)
        let package = try wrapper(decode(#"{"packageUUID":\#(id),"links":[]}"#))
        #expect(package.messageID?.description == expected)
        #expect(String(decoding: FrameJSON.json(.wrapper(package)), as: UTF8.self).contains("packageUUID") == (expected == nil))
    }

    @Test(
        "sequence (T21)",
        arguments: [
            ("1", 1 as Int64?), ("9223372036854775807", .max), ("9223372036854775808", nil), ("99999999999999999999999", nil), ("0", nil),
            ("-1", nil), ("1.0", nil), ("1e0", nil), ("1E2", nil), ("10", 10), (#""7""#, nil), ("null", nil), ("true", nil), ("{}", nil),
        ]) func sequence(_ number: String, _ expected: Int64?) throws
    {
        #expect(try wrapper(decode(#"{"operationType":"Store","jmObject":{},"sequence":\#(number)}"#)).sequence == expected)
        #expect(try wrapper(decode(#"{"sequence":5,"sequence":\#(number),"operationType":"Ping"}"#)).sequence == expected)
        // A frame refused after its JSON was parsed keeps its number, also one with an unknown operation.
        #expect(try refusal(decode(#"{"operationType":"Retract","sequence":\#(number)}"#)).sequence == expected)
        #expect(try refusal(decode(#"{"operationType":"Store","jmObject":"{","sequence":\#(number)}"#)).sequence == expected)
        // Operations whose frames have no sequence number.
        for operation in ["Pong", "Bye"] {
            #expect(try wrapper(decode(#"{"operationType":"\#(operation)","sequence":\#(number)}"#)).sequence == nil)
        }
        #expect(try refusal(decode(#"{"operationType":"Hello","sequence":\#(number)}"#)).sequence == nil)
    }

    @Test("members come in any order") func order() throws {
        let members = [
            #""versionID":"1""#, #""operationType":"Store""#, #""jmObjectType":"Hex""#, #""sequence":3"#,
            #""jmObject":{"senderName":"a\n","links":[{"url":"u","x":1}],"y":2}"#, #""messageID":"0B3D2C1A-1111-4222-8333-444455556666""#,
            #""z":[]"#,
        ]
        let first = try described(decode("{" + members.joined(separator: ",") + "}"))
        #expect(first["ok"] as? Bool == true)
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<500 {
            let shuffled = members.shuffled(using: &generator).joined(separator: " , ")
            #expect(same(try described(decode("{ \(shuffled) }")), first), "\(shuffled)")
        }
    }

    @Test(
        "a package is not a wrapper (T14)",
        arguments: [
            (#"{"links":5}"#, "{}"), (#"{"links":""}"#, "{}"),
            (#"{"links":{},"message":"m","sequence":9}"#, #"{"hex":{"message":"m","sequence":9}}"#),
            (#"{"links":[],"jmObjectType":"Peer","jmObject":null}"#, #"{"hex":{"jmObjectType":"Peer","jmObject":null}}"#),
            (#"{"links":[],"operationType":{"a":1}}"#, #"{"hex":{"operationType":{"a":1}}}"#),
            (#"{"operationType":"Alert","links":[],"operationType":""}"#, #"{"hex":{"operationType":""}}"#),
            (#"{"links":["a"],"version":"1","links":[]}"#, #"{"hex":{"version":"1"}}"#),
        ]) func package(_ input: String, _ extra: String) throws
    {
        let found = try described(decode(input))
        #expect(found["operation"] as? String == "Store" && found["versionID"] as? String == "" && found["sequence"] is NSNull, "\(found)")
        #expect(found["message"] == nil)
        #expect(same(try #require(found["extra"] as? [String: Any]), try parsed(extra)))
    }

    @Test("a package's id does not carry over to the next frame") func packageIDIsForgotten() throws {
        var decoder = WrapperDecoder()
        _ = decoder.decode(Array(#"{"packageUUID":"0B3D2C1A-1111-4222-8333-444455556666","links":[]}"#.utf8))
        #expect(try wrapper(decoder.decode(Array(#"{"operationType":"Ping"}"#.utf8))).messageID == nil)
        #expect(try wrapper(decoder.decode(Array(#"{"operationType":"Store","jmObject":{}}"#.utf8))).messageID == nil)
    }

    @Test("bounds count decoded members", arguments: [0, 1]) func bounds(_ over: Int) throws {
        let text = "\"" + String(repeating: "x", count: ProtocolLimits.stringBytes + over) + "\""
        let escaped = "\"" + String(repeating: "\\u0078", count: ProtocolLimits.stringBytes + over) + "\""
        let number = String(repeating: "7", count: ProtocolLimits.stringBytes + over)
        let links = "[" + Array(repeating: "\"u\"", count: ProtocolLimits.links + over).joined(separator: ",") + "]"
        let expected: [(String, RefusalCode)] = [
            (#"{"operationType":"Store","jmObject":{"senderUUID":\#(text)}}"#, .tooLarge),
            (#"{"operationType":"Store","jmObject":{"hexColor":\#(escaped)}}"#, .tooLarge),
            (#"{"operationType":"Store","jmObject":{"senderName":\#(number)}}"#, .tooLarge),
            (#"{"operationType":"Store","jmObject":{"links":[\#(text)]}}"#, .tooLarge),
            (#"{"operationType":"Store","jmObject":{"links":\#(text)}}"#, .tooLarge),
            (#"{"operationType":"Store","jmObject":{"links":{\#(text):"u"}}}"#, .tooLarge),
            (#"{"operationType":"Store","jmObject":{"links":[{"service":\#(text)}]}}"#, .tooLarge),
            (#"{"operationType":"Store","jmObject":{"links":[{"linkDescription":\#(text)}]}}"#, .tooLarge),
            (#"{"operationType":"Store","jmObject":{"links":[{"url":\#(text)}]}}"#, .tooLarge),
            (#"{"operationType":"Alert","message":\#(text)}"#, .tooLarge),
            (#"{"operationType":"Alert","versionID":\#(text)}"#, .tooLarge),
            (#"{"operationType":"Alert","versionType":\#(text)}"#, .tooLarge),
            (#"{"operationType":"Store","jmObject":{"links":\#(links)}}"#, .tooManyLinks),
            (#"{"operationType":"Store","jmObject":\#(quoted(#"{"links":\#(links)}"#))}"#, .tooManyLinks),
            (#"{"operationType":"Store","jmObject":{"links":\#(quoted(links))}}"#, .tooManyLinks),
            (#"{"links":\#(links)}"#, .tooManyLinks),
        ]
        for (input, code) in expected {
            switch decode(input) {
            case .wrapper: #expect(over == 0, "\(input.prefix(80))")
            case .refused(let refusal): #expect(over == 1 && refusal.code == code && !refusal.isUndecodable, "\(input.prefix(80))")
            }
        }
    }

    @Test("bounds do not count skipped members") func boundsDoNotCount() throws {
        let long = "\"" + String(repeating: "x", count: ProtocolLimits.stringBytes + 1) + "\""
        let many = "[" + Array(repeating: "\"u\"", count: ProtocolLimits.links + 1).joined(separator: ",") + "]"
        let skipped = "[" + Array(repeating: "\"\",null", count: ProtocolLimits.links).joined(separator: ",") + ",\"u\"]"
        for members in [
            #""senderName":\#(long),"senderName":"a""#, #""links":\#(many),"links":[]"#, #""x":\#(long)"#, #""links":[{"x":\#(long)}]"#,
            #""links":\#(quoted(many)),"links":"u""#, #""links":\#(skipped)"#, #""links":[{"url":\#(long),"url":"u"}]"#,
            #""links":{\#(long):null}"#, #""links":[\#(long)],"links":["u"]"#,
        ] {
            _ = try wrapper(decode(#"{"operationType":"Store","jmObject":{\#(members)}}"#))
        }
        _ = try wrapper(decode(#"{"operationType":"Alert","messageID":\#(long),"jmObject":\#(long),"jmObjectType":\#(long)}"#))
        _ = try wrapper(decode(#"{"jmObject":{"links":\#(many)},"operationType":"Alert"}"#))
        _ = try wrapper(decode(#"{"jmObject":{"links":\#(many)},"operationType":"Store","jmObject":{}}"#))
    }
}
