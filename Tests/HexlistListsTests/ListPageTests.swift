import HexlistJSON
import HexlistModel
import TestSupport
import Testing

@testable import HexlistLists

@Suite("Pages of lists") struct ListPageTests {
    private static let now: Int64 = 1_795_615_200_123
    private static let list = "018BCFE5-6800-8100-8000-000000000001"
    private static let link = "AYvP5WgAggCAAAAAAAAAAg"
    private static let hex = "AYvP5WgAgQCAAAAAAAAAAw"
    private static let sharedList = "AYvP5WgAgwCAAAAAAAAABA"
    private static let replicas = #""by":["00000000000000aa","00000000000000bb"]"#

    private func decode(_ rows: String, from sender: ListPage.Peer = .otherPerson) throws -> ListPage {
        let json =
            #"{"list":"\#(Self.list)","replica":"00000000000000aa","after":3,"through":9,"last":true,\#(Self.replicas),"#
            + #""rows":[\#(rows)]}"#
        return try ListPage(decoding: Array(json.utf8), from: sender, isShared: sender == .otherPerson, now: Self.now)
    }

    private func encode(_ page: ListPage, for receiver: ListPage.Peer = .ownMachine) -> String {
        var encoder = ListPageEncoder(list: page.list, receiver: receiver)
        for node in page.nodes {
            let isAdded = encoder.append(node)
            #expect(isAdded)
        }
        return String(
            decoding: encoder.encoded(replica: page.replica, after: page.after, through: page.through, isLast: page.isLast), as: UTF8.self)
    }

    @Test("the example of Docs/Lists.md is decoded and encoded again byte for byte") func example() throws {
        let rows = [
            #"{"n":"\#(Self.link)","v":[1795615200123,0,0],"url":"https://a.example","title":"A","in":"\#(Self.hex)","key":"AQID"}"#,
            #"{"n":"\#(Self.hex)","v":[1795615200123,7,1],"title":"H","titleAt":[1795615200000,2,0],"in":"","key":"BA","was":"\#(Self.hex)","#
                + #""inAt":[1795615200001,0,1],"r":{"done":[[1795615200123,7,1],"true"],"é":[[5,0,0],""]},"#
                + #""gone":[1795615200123,7,1],"with":"\#(Self.hex)"}"#,
        ]
        let page = try decode(rows.joined(separator: ","))
        #expect(page.skipped == 0 && page.nodes.count == 2 && page.after == 3 && page.through == 9 && page.isLast)
        let (link, hex) = (page.nodes[0], page.nodes[1])
        #expect(link.id.kind == .link && link.url == "https://a.example" && link.service.isEmpty && link.title?.value == "A")
        #expect(link.place?.key == OrderKey(bytes: [1, 2, 3]) && link.place?.parent == hex.id && link.place?.previousParent == hex.id)
        #expect(link.title?.version == ListVersion(clock: 1_795_615_200_123 << 16, replica: ReplicaNumber(0xAA)))
        #expect(hex.place?.parent == page.list && hex.place?.previousParent == hex.id)
        #expect(hex.place?.version == ListVersion(clock: 1_795_615_200_001 << 16, replica: ReplicaNumber(0xBB)))
        #expect(hex.registers["é"]?.value == "" && hex.registers["done"]?.value == "true" && hex.isMarkedDeleted)
        #expect(encode(page).contains(rows.joined(separator: ",")))
    }

    @Test("random pages are unchanged by encoding and decoding") func roundTrip() throws {
        var history = World(machines: 1, seed: 11)
        let root = history.list
        let texts: [UTF8Text] = ["", "a", "\u{0}\u{1F}\"\\/", "é", "e\u{301}", "\u{202E}x", "👩‍👧"]
        for step in 0..<300 {
            try history.change(0) { list, generator in
                let rows = list.storage.nodes().map(\.id).sorted()
                let parent = rows.filter { $0.kind == .hex }.randomElement(using: &generator) ?? root
                let text = texts.randomElement(using: &generator) ?? ""
                switch step % 5 {
                case 0, 1:
                    let key = try list.keys(at: .last, in: parent, using: &generator)[0]
                    let kind: ListNode.Kind = step % 2 == 0 ? .link : .hex
                    _ = try list.add(kind, in: parent, key: key, title: text, url: text, service: text, using: &generator)
                case 2: if let id = rows.randomElement(using: &generator) { try list.setRegister("n\(text)".utf8Text, of: id, to: text) }
                case 3: if let id = rows.randomElement(using: &generator) { try list.setRegister("read", of: id, to: text) }
                default: if let id = rows.randomElement(using: &generator) { try list.delete(id) }
                }
            }
        }
        let page = history.machines[0].page(to: ReplicaNumber(0), after: nil, limit: .max)
        let json = encode(page)
        #expect(try ListPage(decoding: Array(json.utf8), from: .ownMachine, isShared: false, now: history.now) == page)
        // Other persons get no private registers.
        let other = try ListPage(
            decoding: Array(encode(page, for: .otherPerson).utf8), from: .otherPerson, isShared: true, now: history.now)
        #expect(other.skipped == 0 && other.nodes.count == page.nodes.count)
        #expect(page.nodes.contains { $0.registers["read"] != nil } && !other.nodes.contains { $0.registers["read"] != nil })
    }

    /// Members of a link, besides its id, that are malformed or exceed a bound.
    private static let malformedMembers: [String] = [
        // Nodes without a version.
        #""x":1"#, #""title":"t""#, #""r":{"read":[[1,0,0],"x"]}"#,
        // Malformed versions.
        #""gone":1"#, #""gone":[1,0]"#, #""gone":[1.5,0,0]"#, #""gone":[-1,0,0]"#, #""gone":[0,0,0]"#, #""gone":[1,65536,0]"#,
        #""gone":[1,0,2]"#, #""gone":[1,0,-1]"#, #""gone":[9223372036854775807,0,0]"#, #""gone":[99999999999999999999,0,0]"#,
        #""gone":["1",0,0]"#,
        // Versions that are more than 12 hours ahead.
        #""gone":[1795658400124,0,0]"#, #""title":"t","v":[1795658400124,0,0]"#, #""gone":[1,0,0],"r":{"a":[[1795658400124,0,0],""]}"#,
        // Malformed places.
        #""v":[1,0,0],"in":"""#, #""v":[1,0,0],"in":"","key":"""#, #""v":[1,0,0],"in":"","key":"A""#,
        #""v":[1,0,0],"in":"","key":"A+""#, #""v":[1,0,0],"in":"x","key":"AQ""#, #""v":[1,0,0],"in":"","key":"AQ","was":"x""#,
        #""v":[1,0,0],"in":"","key":"\#(String(repeating: "A", count: 172))""#,
        // Malformed deletion marks.
        #""gone":[1,0,0],"with":"""#, #""gone":[1,0,0],"with":7"#,
        // Malformed or too long texts and registers.
        #""v":[1,0,0],"title":7"#, #""v":[1,0,0],"title":"\#(String(repeating: "x", count: 65_537))""#,
        #""v":[1,0,0],"title":"","url":["x"]"#, #""gone":[1,0,0],"r":[]"#, #""gone":[1,0,0],"r":{"":[[1,0,0],""]}"#,
        #""gone":[1,0,0],"r":{"a":[[1,0,0]]}"#, #""gone":[1,0,0],"r":{"a":[[1,0,0],null]}"#,
        #""gone":[1,0,0],"r":{"\#(String(repeating: "x", count: 65))":[[1,0,0],""]}"#,
        #""gone":[1,0,0],"r":{\#(registers(65, value: ""))}"#,
        // Texts of more than 256 KiB in all.
        #""gone":[1,0,0],"r":{\#(registers(5, value: String(repeating: "x", count: 60_000)))}"#,
    ]

    private static func registers(_ count: Int, value: String) -> String {
        (0..<count).map { #""\#($0)":[[1,0,0],"\#(value)"]"# }.joined(separator: ",")
    }

    @Test("a malformed node, or one over a bound, is left out and counted; the others stay") func malformed() throws {
        let good = #"{"n":"\#(Self.hex)","gone":[1,0,0]}"#
        let rows =
            [
                "null", "1", "[]", "{}", #"{"n":1}"#, #"{"n":""}"#, #"{"n":"AYvP5WgAggCAAAAAAAAAA","gone":[1,0,0]}"#,
                #"{"n":"AYvP5WgAcgCAAAAAAAAAAg","gone":[1,0,0]}"#,  // a UUID of version 7
                #"{"n":"\#(Self.sharedList)","gone":[1,0,0]}"#,  // accepted from own machines only
            ] + Self.malformedMembers.map { #"{"n":"\#(Self.link)",\#($0)}"# }
        for row in rows {
            let page = try decode("\(good),\(row),\(good)")
            #expect(page.skipped == 1 && page.nodes.count == 2, "\(row.prefix(200))")
        }
    }

    @Test("accepted: missing values, unknown members and kinds, and values at their bounds") func accepted() throws {
        let rows = [
            #"{"n":"\#(Self.link)","gone":[1,0,0],"title":null,"r":null,"with":null,"url":null}"#,
            #"{"n":"\#(Self.link)","gone":[1,0,0,"more"],"later":{"a":[1]},"titleAt":[1,0,0],"key":7,"was":[]}"#,
            #"{"n":"AYvP5WgAjwCAAAAAAAAAAg","v":[1,0,0],"title":"t"}"#,
            #"{"n":"\#(Self.link)","v":[1,0,0],"title":"\#(String(repeating: "x", count: 65_536))"}"#,
            #"{"n":"\#(Self.link)","gone":[1795658400123,65535,0]}"#,
            #"{"n":"\#(Self.link)","gone":[1,0,0],"r":{\#(Self.registers(64, value: ""))}}"#,
            #"{"n":"\#(Self.link)","v":[1,0,0],"in":"","key":"\#(String(repeating: "A", count: 171))"}"#,
        ]
        for row in rows {
            let page = try decode(row)
            #expect(page.skipped == 0 && page.nodes.count == 1, "\(row.prefix(200))")
            #expect(try ListPage(decoding: Array(encode(page).utf8), from: .otherPerson, isShared: true, now: Self.now).nodes == page.nodes)
        }
    }

    @Test("own machines: entries of shared lists, private registers, and clocks that are up to 100 years ahead") func ownMachines() throws {
        let latest = Self.now + ListLimits.ownClockAhead
        let page = try decode(
            #"{"n":"\#(Self.sharedList)","gone":[1795658400124,0,0]},{"n":"\#(Self.link)","gone":[\#(latest),65535,1],"#
                + #""r":{"read":[[1,0,0],"true"]}},{"n":"\#(Self.link)","gone":[105553116266496,0,1]}"#, from: .ownMachine)
        #expect(page.nodes.count == 2 && page.skipped == 1)
        #expect(page.nodes.last?.registers["read"]?.value == "true")
        #expect(try decode(#"{"n":"\#(Self.link)","gone":[1,0,0],"r":{"read":[[1,0,0],"true"]}}"#).nodes.first?.registers == [:])
        // The page is refused as a whole. A node that is left out would never be requested again.
        let later = #"{"n":"\#(Self.link)","gone":[1,0,0]},{"n":"\#(Self.link)","gone":[\#(latest + 1),0,1]}"#
        #expect(throws: ListPage.VersionAhead.self) { try decode(later, from: .ownMachine) }
        #expect(try decode(later).skipped == 1)
    }

    @Test("an entry of a shared list has up to 256 registers, other nodes up to 64") func registersOfSharedLists() throws {
        func count(_ id: String, _ registers: Int) throws -> Int? {
            let page = try decode(
                #"{"n":"\#(id)","gone":[1,0,0],"r":{"read":[[1,0,0],""],\#(Self.registers(registers, value: ""))}}"#, from: .ownMachine)
            return page.nodes.first?.registers.count
        }
        for (id, maximum) in [(Self.sharedList, 256), (Self.link, 64), (Self.hex, 64)] {
            #expect(try count(id, maximum) == maximum + 1)
            #expect(try count(id, maximum + 1) == nil)
        }
    }

    @Test(
        "a page that is malformed itself is refused",
        arguments: [
            "", "[]", "{}", #"{"list":"x"}"#, #"{"list":"018BCFE5-6800-7100-8000-000000000001"}"#, #"{"rows":{}}"#, #"{"rows":null}"#,
            #"{"by":1}"#,
            #"{"replica":"aa"}"#, #"{"after":-1}"#, #"{"after":10}"#, #"{"after":"3"}"#, #"{"through":9223372036854775808}"#,
            #"{"last":1}"#,
            #"{"rows":[\#(Array(repeating: "{}", count: 2_001).joined(separator: ","))]}"#,
        ]) func refused(members: String) throws
    {
        let valid = #"{"list":"\#(Self.list)","replica":"00000000000000aa","after":3,"through":9,"last":true,\#(Self.replicas),"rows":[]"#
        #expect(try ListPage(decoding: Array((valid + "}").utf8), from: .ownMachine, isShared: false, now: 0).nodes.isEmpty)
        // If a member occurs twice, the last one is used, so the malformed one is appended.
        let json = members.first == "{" && members.count > 2 ? valid + "," + members.dropFirst() : members
        #expect(throws: JSONFault.self) { try ListPage(decoding: Array(json.utf8), from: .ownMachine, isShared: false, now: 0) }
    }

    @Test("a page over 2 MiB is refused unread") func tooLong() {
        let bytes = Array(repeating: UInt8(ascii: " "), count: ListLimits.receivedPageBytes + 1)
        #expect(throws: JSONFault.self) { try ListPage(decoding: bytes, from: .ownMachine, isShared: false, now: 0) }
    }

    @Test("a full page ends before the node that does not fit, and a node of the maximum size is a page of its own") func bounds() throws {
        var generator = SeededGenerator(seed: 12)
        let list = ListNode.ID(kind: .hex, time: 1, using: &generator)
        let version = ListVersion(clock: 1 << 16, replica: ReplicaNumber(7))
        func node(_ bytes: Int) -> ListNode {
            var node = ListNode(id: ListNode.ID(kind: .link, time: 1, using: &generator))
            let text = UTF8Text(String(repeating: "\u{1}", count: bytes / 4))  // six bytes each in JSON
            for name in ["1", "2", "3"] { node.registers[UTF8Text(name)] = ListNode.Register(version: version, value: text) }
            node.title = ListNode.Register(version: version, value: text)
            return node
        }
        func pages(_ nodes: [ListNode]) throws -> [Int] {
            var (counts, rest) = ([Int](), nodes[...])
            while !rest.isEmpty {
                var encoder = ListPageEncoder(list: list, receiver: .ownMachine)
                var count = 0
                while let node = rest.first, encoder.append(node) {
                    rest = rest.dropFirst()
                    count += 1
                }
                let json = encoder.encoded(replica: ReplicaNumber(1), after: 0, through: 1, isLast: false)
                #expect(json.count <= ListLimits.pageBytes || count == 1)
                #expect(json.count <= ListLimits.receivedPageBytes)
                let page = try ListPage(decoding: json, from: .ownMachine, isShared: false, now: 0)
                #expect(page.skipped == 0 && page.nodes == Array(nodes.dropFirst(counts.reduce(0, +)).prefix(count)))
                counts.append(count)
            }
            return counts
        }
        let greatest = ListLimits.nodeBytes - 3
        #expect(try pages([node(greatest), node(4), node(greatest)]) == [1, 1, 1])
        #expect(try pages((0..<2_001).map { _ in node(4) }) == [2_000, 1])
        #expect(try pages((0..<100).map { _ in node(8_000) }).dropLast().allSatisfy { $0 == 21 })
    }
}

extension String {
    fileprivate var utf8Text: UTF8Text { UTF8Text(self) }
}
