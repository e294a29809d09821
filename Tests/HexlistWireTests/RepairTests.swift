import HexlistWire
import Testing

/// Each repair is reported with its place and its rule.
struct RepairTests {
    @Test(
        "repairs",
        arguments: [
            (
                #"""
                {"versionID":"1","operationType":"Store","jmObjectType":"Hex","jmObject":{"senderUUID":"",\#
                "senderName":"","hexDescription":"","hexColor":"","links":[{"url":"u","linkDescription":"",\#
                "service":"Box"}]}}
                """#,
                []
            ),
            (#"{"operationType":"ping"}"#, ["T2 versionID", "T8 operationType"]),
            (
                #"{"versionID":"1","operationType":"Ping","message":null,"sequence":0,"messageID":"x"}"#,
                ["T2 message", "T21 messageID", "T21 sequence"]
            ),
            (
                #"{"versionID":"1","jmObject":{"senderUUID":"","senderName":7,"hexDescription":[],"hexColor":"\u0000","links":[]}}"#,
                ["T20 hexColor", "T3 senderName", "T4 hexDescription", "T6 operationType", "T7 jmObjectType"]
            ),
            (#"{"version":"1","operationType":"Bye","x":1,"x":2}"#, ["T1 x", "T11 versionID", "T19 x"]),
            (
                #"{"links":[{"url":"u"},"",null,"v",{"fileName":"f","type":"BOX","url":"w","y":1}]}"#,
                [
                    "T1 links[4].y", "T12 links[4].linkDescription", "T12 links[4].service", "T13 links[4].service", "T14 ", "T15 links[3]",
                    "T16 links[1]", "T16 links[2]",
                    "T2 hexColor", "T2 hexDescription", "T2 links[0].linkDescription", "T2 links[0].service", "T2 senderName",
                    "T2 senderUUID",
                ]
            ),
            (
                #"""
                {"versionID":"1","operationType":"Store","jmObjectType":"Hex","jmObject":{"senderUUID":"","senderName":"","hexDescription":"",\#
                "hexColor":"","links":[],"children":[7,{"senderUUID":"","senderName":"","hexDescription":"","hexColor":"","links":["u"],"x":1,\#
                "children":[{"senderUUID":"","senderName":"","hexDescription":"","hexColor":7,"links":[],"children":null}]}],"children":[]}}
                """#,
                ["T19 children"]
            ),
            (
                #"""
                {"versionID":"1","operationType":"Store","jmObjectType":"Hex","jmObject":{"senderUUID":"","senderName":"","hexDescription":"",\#
                "hexColor":"","links":[],"children":[7,{"senderUUID":"","senderName":"","hexDescription":"","hexColor":"","links":["u"],"x":1,\#
                "children":[{"senderUUID":"","senderName":"","hexDescription":"","hexColor":7,"links":[],"children":null}]}]}}
                """#,
                [
                    "T1 children[1].x", "T15 children[1].links[0]", "T16 children[0]", "T2 children[1].children[0].children",
                    "T3 children[1].children[0].hexColor",
                ]
            ),
            // Repairs inside an overridden member are not reported, only the override.
            (
                #"""
                {"versionID":"1","operationType":"Store","jmObjectType":"Hex","jmObject":{"links":[null]},\#
                "jmObject":{"senderUUID":"","senderName":"","hexDescription":"","hexColor":"","links":["u"],\#
                "links":[]}}
                """#,
                ["T19 jmObject", "T19 links"]
            ),
            (
                #"""
                {"versionID":"1","operationType":"Store","jmObjectType":"Hex","jmObject":"{\"senderUUID\":\"\",\#
                \"senderName\":\"\",\"hexDescription\":\"\",\"hexColor\":\"\",\"links\":\"[{}]\"}"}
                """#,
                ["T18 links", "T2 links[0].linkDescription", "T2 links[0].service", "T2 links[0].url", "T5 jmObject"]
            ),
            (
                #"""
                {"versionID":"1","operationType":"Store","jmObjectType":"Hex","jmObject":{"senderUUID":"",\#
                "senderName":"","hexDescription":"","hexColor":"","links":"[{},x"}}
                """#,
                ["T18 links"]
            ),
        ] as [(String, [String])]) func repairs(_ input: String, _ expected: [String]) throws
    {
        let found = try wrapper(decode(input, repairs: true)).repairs
        #expect(found.map { "\($0.rule) \($0.path)" }.sorted() == expected.sorted())
        #expect(try wrapper(decode(input)).repairs.isEmpty)
        let json = try described(decode(input, repairs: true), repairs: true)["repairs"] as? [[String: String]]
        #expect(json?.count == expected.count && json?.allSatisfy { $0.count == 2 && $0["path"] != nil && $0["rule"] != nil } == true)
    }
}
