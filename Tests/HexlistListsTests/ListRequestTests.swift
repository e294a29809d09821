import HexlistModel
import TestSupport
import Testing

@testable import HexlistLists

@Suite("Requests for lists") struct ListRequestTests {
    private static let list = "018BCFE5-6800-8100-8000-000000000001"

    @Test(
        "targets are unchanged by parsing and printing",
        arguments: [
            "/lists", "/lists/\(list)?as=00000000000000aa", "/lists/\(list)?replica=00000000000000bb&after=0&as=00000000000000aa",
            "/lists/\(list)?replica=ffffffffffffffff&after=9223372036854775807&as=ffffffffffffffff",
        ])
    func targets(text: String) throws {
        let target = try #require(ListRequestTarget(text))
        #expect(target.description == text && text.utf8.count <= ListRequestTarget.maximumBytes)
        #expect(ListRequestTarget(text.replacing(Self.list, with: Self.list.lowercased())) == target)
    }

    @Test(
        "other targets are refused",
        arguments: [
            "", "/", "/list", "/lists/", "/lists?", "/lists?as=00000000000000aa", "/LISTS", "/lists/\(list)", "/lists/\(list)?",
            "/lists/\(list)/?as=00000000000000aa", "/lists/x?as=00000000000000aa", "/lists/\(list)?as=aa", "/lists/\(list)?as=",
            "/lists/\(list)?as=00000000000000aa&", "/lists/\(list)?after=1&as=00000000000000aa",
            "/lists/\(list)?replica=00000000000000bb&as=00000000000000aa", "/lists/\(list)?replica=00000000000000bb&after=0",
            "/lists/\(list)?replica=00000000000000bb&after=-1&as=00000000000000aa",
            "/lists/\(list)?replica=00000000000000bb&after=+1&as=00000000000000aa",
            "/lists/\(list)?replica=00000000000000bb&after=01&as=00000000000000aa",
            "/lists/\(list)?replica=00000000000000bb&after=9223372036854775808&as=00000000000000aa",
            "/lists/\(list)?replica=00000000000000bb&after=0&as=00000000000000aa?",
            "/lists/\(list)?after=0&replica=00000000000000bb&as=00000000000000aa",
            "/lists/018BCFE5-6800-8200-8000-000000000001?as=00000000000000aa",  // a link
            "/lists/018BCFE5-6800-4100-8000-000000000001?as=00000000000000aa",  // no id of a node
        ])
    func otherTargets(text: String) { #expect(ListRequestTarget(text) == nil) }

    // MARK: - Overview

    private static func entry(title: UTF8Text = "My Hexlist") throws -> ListOverview.Entry {
        ListOverview.Entry(
            list: try #require(UUIDBytes(list).flatMap { ListNode.ID($0) }), role: .own, title: title, hexes: 3, links: 212,
            replica: ReplicaNumber(0xAA), sequence: 4_711, digest: ListDigest(0xBB))
    }

    @Test("an overview is encoded as in Docs/Protocol.md, and decoded again") func overview() throws {
        var overview = ListOverview(now: 1_795_615_200_123, isOwnMachine: true)
        overview.lists = [try Self.entry()]
        let json = String(decoding: overview.json, as: UTF8.self)
        #expect(
            json == #"{"now":1795615200123,"machine":"own","lists":[{"list":"\#(Self.list)","role":"own","access":"write","#
                + #""title":"My Hexlist","hexes":3,"links":212,"replica":"00000000000000aa","seq":4711,"#
                + #""digest":"00000000000000bb"}]}"#)
        #expect(try ListOverview(decoding: overview.json) == overview)
        overview.isOwnMachine = false
        overview.lists = []
        #expect(String(decoding: overview.json, as: UTF8.self) == #"{"now":1795615200123,"machine":"peer","lists":[]}"#)
        #expect(try ListOverview(decoding: overview.json) == overview)
    }

    @Test("an entry with an epoch, and one whose sharing has ended, are encoded and decoded again") func epochAndEnd() throws {
        var overview = ListOverview(now: 1, isOwnMachine: true)
        var entry = try Self.entry()
        (entry.role, entry.epoch) = (.joined, "2 x")
        let ended = ListOverview.Entry(
            list: entry.list, role: .shared, access: .ended, replica: ReplicaNumber(0), sequence: 0, digest: ListDigest())
        overview.lists = [entry, ended]
        let json = String(decoding: overview.json, as: UTF8.self)
        #expect(json.contains(#""digest":"00000000000000bb","epoch":"2 x"}"#))
        #expect(
            json.hasSuffix(
                #""role":"shared","access":"none","title":"","hexes":0,"links":0,"replica":"0000000000000000","seq":0,"#
                    + #""digest":"0000000000000000"}]}"#))
        #expect(try ListOverview(decoding: overview.json) == overview)
        for empty in [#""epoch":"""#, #""epoch":null"#] {
            let decoded = try ListOverview(decoding: Array(json.replacing(#""epoch":"2 x""#, with: empty).utf8))
            #expect(decoded.lists.first?.epoch == .empty && decoded.skipped == 0)
        }
    }

    @Test("the longest overview is within its bounds") func longest() throws {
        var overview = ListOverview(now: .max, isOwnMachine: true)
        var entry = try Self.entry(title: UTF8Text(String(repeating: "\u{1}", count: 1_000)))
        (entry.hexes, entry.links, entry.sequence) = (.max, .max, .max)
        entry.epoch = UTF8Text(String(repeating: "\u{1}\\", count: 1_000))
        overview.lists = Array(repeating: entry, count: ListLimits.overviewLists + 1)
        let json = overview.json
        #expect(json.count <= ListLimits.overviewBytes)
        let decoded = try ListOverview(decoding: json)
        #expect(decoded.lists.count == ListLimits.overviewLists && decoded.skipped == 0)
        #expect(decoded.lists.allSatisfy { $0.title.count == ListLimits.overviewTitleBytes })
        #expect(decoded.lists.allSatisfy { $0.epoch == UTF8Text(String(repeating: "\\", count: ListLimits.epochBytes)) })
    }

    @Test(
        "malformed overviews are refused",
        arguments: [
            "", "[]", "{}", #"{"now":1}"#, #"{"now":-1,"lists":[]}"#, #"{"now":"1","lists":[]}"#, #"{"now":1,"lists":{}}"#,
            #"{"now":1.5,"lists":[]}"#, #"{"now":1,"lists":[\#(String(repeating: "1,", count: 512))1]}"#,
        ])
    func malformed(json: String) {
        #expect(throws: (any Error).self) { try ListOverview(decoding: Array(json.utf8)) }
    }

    @Test(
        "entries with unknown or malformed members are left out; unknown members are ignored",
        arguments: [
            (#""role":"own""#, #""role":"new""#), (#""role":"own""#, #""role":1"#), (#""access":"write""#, #""access":"delete""#),
            (#""seq":4711"#, #""seq":-1"#), (#""seq":4711"#, #""seq":1e3"#), (#""digest":"00000000000000bb""#, #""digest":"bb""#),
            (#""replica":"00000000000000aa""#, #""replica":null"#), (#""hexes":3"#, #""hexes":-3"#),
            (#""title":"My Hexlist""#, #""title":5"#), (#""access":"write""#, #""access":"NONE""#),
            (#""hexes":3"#, #""epoch":5"#), (#""hexes":3"#, #""epoch":"é""#), (#""hexes":3"#, #""epoch":"\n""#),
            (#""hexes":3"#, #""epoch":"\#(String(repeating: "e", count: 65))""#),
            (#""links":212"#, #""links":"212""#), ("018BCFE5-6800-8100-8000", "018BCFE5-6800-8200-8000"),
        ])
    func leftOut(good: String, bad: String) throws {
        var overview = ListOverview(now: 1, isOwnMachine: true)
        overview.lists = [try Self.entry()]
        let json = String(decoding: overview.json, as: UTF8.self)
        #expect(json.contains(good))
        let decoded = try ListOverview(decoding: Array(json.replacing(good, with: bad).utf8))
        #expect(decoded.lists.isEmpty && decoded.skipped == 1)
        let more = json.replacing(#""role""#, with: #""later":{"a":[1]},"role""#)
        #expect(try ListOverview(decoding: Array(more.utf8)) == overview)
    }

    @Test("missing counts and titles have defaults") func defaults() throws {
        let json =
            #"{"now":1,"lists":[{"list":"\#(Self.list)","role":"joined","access":"read","replica":"00000000000000aa","seq":0,"#
            + #""digest":"00000000000000bb","title":null}]}"#
        let overview = try ListOverview(decoding: Array(json.utf8))
        #expect(!overview.isOwnMachine)
        let entry = try #require(overview.lists.first)
        #expect(entry.role == .joined && entry.access == .read && entry.title.isEmpty && entry.hexes == 0 && entry.links == 0)
        #expect(entry.epoch.isEmpty)
    }

    // MARK: - Pages

    @Test(
        "a page answers a request if it begins at the cursor or at 0, and leads further",
        arguments: [
            (after: 5, through: 9, isLast: true, replica: 7, answers: true),
            (after: 5, through: 5, isLast: true, replica: 7, answers: true),
            (after: 5, through: 5, isLast: false, replica: 7, answers: false),
            (after: 4, through: 9, isLast: true, replica: 7, answers: false),
            (after: 6, through: 9, isLast: true, replica: 7, answers: false),
            (after: 0, through: 9, isLast: true, replica: 8, answers: true),
            (after: 5, through: 9, isLast: true, replica: 8, answers: false),
        ] as [(after: Int64, through: Int64, isLast: Bool, replica: UInt64, answers: Bool)])
    func answers(after: Int64, through: Int64, isLast: Bool, replica: UInt64, answers: Bool) throws {
        let list = try Self.entry().list
        let request = ListPageRequest(cursor: ListCursor(replica: ReplicaNumber(7), sequence: 5), requester: ReplicaNumber(1))
        let page = ListPage(list: list, replica: ReplicaNumber(replica), after: after, through: through, isLast: isLast)
        #expect(page.answers(request, of: list) == answers)
    }

    @Test("a page with nodes that leads no further is no answer") func standstill() throws {
        let list = try Self.entry().list
        let request = ListPageRequest(cursor: nil, requester: ReplicaNumber(1))
        var page = ListPage(list: list, replica: ReplicaNumber(7), after: 0, through: 0, isLast: true)
        #expect(page.answers(request, of: list))
        page.nodes = [ListNode(id: list)]
        #expect(!page.answers(request, of: list))
        var generator = SeededGenerator(seed: 1)
        #expect(!page.answers(request, of: ListNode.ID(kind: .hex, time: 1, using: &generator)))
    }
}
