import DaemonTestSupport
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import Testing

@testable import HexlistDaemon

/// Inner hexes and My Hexlist, over the local API and between daemons.
@Suite("My Hexlist over the local API", .timeLimit(.minutes(5)))
struct MineTests {
    /// A hex of eight levels with the maximum number of links in the innermost.
    private static let deep: String = {
        let links = (0..<5_000).map { "\"https://example.org/\($0)\"" }.joined(separator: ",")
        return (1..<8).reversed().reduce(#"{"description":"8","links":[\#(links)]}"#) {
            #"{"description":"\#($1)","x":\#($1),"children":[\#($0)]}"#
        }
    }()

    @Test("the largest tree is created, sent, saved and forwarded unchanged")
    func wholeWay() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            try await bob.awaitPeers(1)
            _ = try await bob.client.trust(ada.uuid, fingerprint: nil)
            _ = try await ada.client.trust(bob.uuid, fingerprint: nil)
            let made = try await ada.client.addMine(Array(Self.deep.utf8), into: nil)
            #expect(made.location == "mine" && made.hexesInside == 7 && made.linksInside == 5_000 && made.description == "1")
            let sent = try await ada.client.send(.init(content: .forward(made.id), peers: [bob.uuid], timeout: TestDaemon.patience))
            #expect(sent.map(\.state) == [.stored])
            let listed = try await bob.client.hexes(.init(), limit: 10).items
            #expect(listed.count == 1 && listed[0].senderName == "ada" && listed[0].hexesInside == 7)
            let received = try await bob.client.hex(listed[0].id)
            #expect(Self.same(received, made))
            let saved = try await bob.client.saveMine([received.id], into: nil)
            #expect(saved.hexes == 8 && saved.links == 5_000)
            // The tree is forwarded back to its creator, unchanged.
            #expect(
                try await bob.client.send(.init(content: .forward(saved.ids[0]), peers: [ada.uuid], timeout: TestDaemon.patience)).map(
                    \.state) == [.stored])
            let back = try #require(try await ada.client.hexes(.init(), limit: 10).items.first)
            let whole = try await ada.client.hex(back.id)
            #expect(Self.same(whole, made) && whole.senderName == "ada")
            #expect(whole.extra == received.extra)
        }
    }

    @Test("a change of links is refused if others have added, removed or moved some since") func version() async throws {
        try await TestDaemon.with("ada") { daemons in
            let client = daemons[0].client
            let made = try await client.addMine(Array(#"{"links":["https://a.example","https://b.example"]}"#.utf8), into: nil)
            let hex = try await client.hex(made.id)
            #expect(hex.version?.count == 16 && Set((hex.links ?? []).compactMap(\.node)).count == 2)
            // Values of a link are no other links.
            let titled = [LinkEdit(from: 1, linkDescription: "A"), LinkEdit(from: 2)]
            #expect(try await client.editMine(made.id, MineEditRequest(links: titled, version: hex.version)).version == hex.version)
            let added = [LinkEdit(from: 1), LinkEdit(from: 2), LinkEdit(url: "https://c.example", title: false)]
            let changed = try await client.editMine(made.id, MineEditRequest(links: added, version: hex.version))
            #expect(changed.links?.count == 3 && changed.version != hex.version)
            let error = await #expect(throws: HexlistError.self) {
                try await client.editMine(made.id, MineEditRequest(links: [LinkEdit(from: 2)], version: hex.version))
            }
            #expect(error?.code == .changed)
            #expect(try await client.hex(made.id).links?.count == 3)
            #expect(try await client.hexes(.init(location: "mine"), limit: 1).items.first?.version == nil)
        }
    }

    @Test("changes name links by their nodes, so links that others add meanwhile stay") func byNode() async throws {
        try await TestDaemon.with("ada") { daemons in
            let client = daemons[0].client
            let made = try await client.addMine(
                Array(#"{"links":["https://a.example","https://b.example","https://c.example"]}"#.utf8), into: nil)
            let hex = try await client.hex(made.id)
            let (node, links) = (try #require(hex.node), (hex.links ?? []).compactMap(\.node))
            #expect(links.count == 3 && Set(links + [node]).count == 4)
            _ = try await client.editMine(
                made.id, MineEditRequest(changes: [MineNodeChange(add: MineNewLink(url: "https://x.example", readTitle: false))]))
            let changes = [
                MineNodeChange(node: links[0], url: "https://a2.example", title: "A", tags: ["t"], note: "n"),
                MineNodeChange(remove: links[1]), MineNodeChange(move: links[2], after: node),
                MineNodeChange(
                    add: MineNewLink(url: "https://d.example", title: "D", service: "s", tags: ["u"], note: "m", readTitle: false)),
                MineNodeChange(node: node, title: "Reading", color: "#112233", note: "N"),
            ]
            let stale = MineEditRequest(changes: changes, version: hex.version)
            #expect(try await Self.error { try await client.editMine(made.id, stale) }?.code == .changed)
            let twice = MineEditRequest(color: "#445566", changes: changes)
            #expect(try await Self.error { try await client.editMine(made.id, twice) }?.message.contains("given twice") == true)
            let edited = try await client.editMine(made.id, MineEditRequest(changes: changes))
            #expect(edited.links?.map(\.url) == ["https://c.example", "https://a2.example", "https://x.example", "https://d.example"])
            #expect(edited.links?.map(\.linkDescription) == ["", "A", "", "D"] && edited.links?[3].service == "s")
            #expect(edited.links?.map(\.tags) == [nil, ["t"], nil, ["u"]] && edited.links?.map(\.note) == [nil, "n", nil, "m"])
            #expect(edited.description == "Reading" && edited.note == "N" && edited.color == "#112233" && edited.node == node)
            let change = try #require(edited.change)
            let undone = try await client.undoMine([change])
            #expect(undone.undone == [change] && undone.keptCount == 0)
            #expect(
                try await client.hex(made.id).links?.map(\.url)
                    == ["https://a.example", "https://b.example", "https://c.example", "https://x.example"])
            #expect(try await client.hexes(.init(location: "mine"), limit: 1).items.first?.node == nil)
        }
    }

    @Test("changes that are not valid are refused with a reason") func invalidChanges() async throws {
        try await TestDaemon.with("ada") { daemons in
            let client = daemons[0].client
            let made = try await client.addMine(Array(#"{"links":["https://a.example"]}"#.utf8), into: nil)
            let hex = try await client.hex(made.id)
            let (node, link) = (try #require(hex.node), try #require(hex.links?.first?.node))
            let forms = "has not exactly one of the forms of a change."
            for (changes, message) in [
                (#"[{"node":"x","title":"t"}]"#, "`changes[0].node`: `x` is not the id of a link or hex."),
                (
                    #"[{"remove":"\#(link)"},{"remove":"\u001b[31m"}]"#,
                    "`changes[1].remove`: `\u{FFFD}[31m` is not the id of a link or hex."
                ),
                (#"[{"move":"\#(link)","after":""}]"#, "`changes[0].after`: `` is not the id of a link or hex."),
                ("[]", "There are no changes."), ("[{}]", "`changes[0]` \(forms)"),
                (#"[{"remove":"\#(link)","title":"t"}]"#, "`changes[0]` \(forms)"),
                (#"[{"node":"\#(link)","title":"t","after":"\#(node)"}]"#, "`changes[0]` \(forms)"),
                (#"[{"remove":"\#(link)","move":"\#(link)"}]"#, "`changes[0]` \(forms)"),
                (#"[{"add":{"url":"a:b"},"title":"t"}]"#, "`changes[0]` \(forms)"),
                (#"[{"add":{}}]"#, "`url` is missing"), (#"[{"rename":"x"}]"#, "`rename` is not known here"),
                (#"[{"node":"\#(link)","color":"red"}]"#, "A link has no `color`."),
                (#"[{"remove":"\#(node)"}]"#, "`\(node)` is not a link of this hex."),
            ] as [(String, String)] {
                let reply = try await ask(
                    daemons[0], request("PATCH /v1/mine/\(made.id)", body: #"{"changes":\#(changes)}"#))
                let error = try #require(try JSONObject(JSONValue(parsing: reply.body))["error"])
                let text = try #require(try JSONObject(error)["message"]?.string)
                #expect(reply.status == 400 && text.contains(message), "\(changes): \(text)")
            }
            let both = MineEditRequest(links: [LinkEdit(from: 1)], changes: [MineNodeChange(remove: link)])
            #expect(
                try await Self.error { try await client.editMine(made.id, both) }?.message == "`links` and `changes` do not go together.")
            let other = String(link.dropLast()) + (link.hasSuffix("A") ? "Q" : "A")
            let unknown = MineEditRequest(changes: [MineNodeChange(remove: link), MineNodeChange(node: other, title: "t")])
            #expect(try await Self.error { try await client.editMine(made.id, unknown) }?.code == .notFound)
            #expect(try await client.hex(made.id) == hex)
        }
    }

    private static func error(_ body: () async throws -> HexJSON) async throws -> HexlistError? {
        await #expect(throws: HexlistError.self) { _ = try await body() }
    }

    @Test("a dry run of a deletion counts each inner hex once and deletes nothing")
    func dryRun() async throws {
        try await TestDaemon.with("ada") { daemons in
            let client = daemons[0].client
            let made = try await client.addMine(Array(Self.deep.utf8), into: nil)
            let plain = try await client.addMine(Array(#"{"links":["a:b"]}"#.utf8), into: nil)
            let inner = try #require(made.children?.first?.children?.first?.id)
            for (ids, expected) in [
                ([made.id], ChangeCountJSON(changed: 1, hexesInside: 7, linksInside: 5_000)),
                ([made.id, inner, plain.id], ChangeCountJSON(changed: 3, links: 1, hexesInside: 6, linksInside: 5_000)),
                ([inner], ChangeCountJSON(changed: 1, hexesInside: 5, linksInside: 5_000)),
                ([plain.id], ChangeCountJSON(changed: 1, links: 1)),
            ] {
                #expect(try await client.deletion(.ids(ids)) == expected)
            }
            // A range of ids selects received hexes only, and this daemon has none.
            #expect(try await client.deletion(.ids([], ranges: [1...9_999])) == ChangeCountJSON(changed: 0))
            #expect(try await client.delete(.ids([], ranges: [1...9_999])) == ChangeCountJSON(changed: 0))
            #expect(
                try await client.deletion(.list(location: "mine"))
                    == ChangeCountJSON(changed: 2, links: 1, hexesInside: 7, linksInside: 5_000))
            await #expect { try await client.deletion(.ids([9_999])) } throws: { ($0 as? HexlistError)?.code == .notFound }
            #expect(try await client.hexes(.init(location: "mine"), limit: 9).items.count == 2)
            #expect(try await client.delete(.ids([made.id])) == ChangeCountJSON(changed: 1))
        }
    }

    @Test("hexes are added, edited, moved and deleted; impossible changes are refused with a reason")
    func changes() async throws {
        try await TestDaemon.with("ada") { daemons in
            let client = daemons[0].client
            let folder = try await client.addMine(Array(#"{"description":"folder"}"#.utf8), into: nil)
            let hex = try await client.addMine(
                Array(#"{"links":["https://a.example","https://b.example"],"key":"k"}"#.utf8), into: folder.id)
            #expect(hex.parent == folder.id && hex.linkCount == 2 && hex.location == "mine")
            let edited = try await client.editMine(
                hex.id, MineEditRequest(color: "#112233", links: [LinkEdit(from: 2), LinkEdit(url: "c")]))
            #expect(edited.links?.map(\.url) == ["https://b.example", "c"] && edited.color == "#112233")
            let alone = try await client.moveMine(hex.id, MineMoveRequest(into: nil))
            func tops() async throws -> [Int64] { try await client.hexes(.init(location: "mine"), limit: 100).items.map(\.id) }
            let order = try await tops()
            let last = try #require(order.last)
            #expect(order.count > 1 && last != order[0])
            _ = try await client.moveMine(order[0], MineMoveRequest(into: nil, after: last))
            #expect(try await tops() == Array(order.dropFirst()) + [order[0]])
            _ = try await client.moveMine(order[0], MineMoveRequest(into: nil, before: order[1]))
            let first = try await client.hexes(.init(location: "mine"), limit: 1)
            #expect(try await tops() == order && first.items.map(\.id) == [order[0]] && first.next?.hasPrefix("\(order[0])-") == true)
            for cursor in [first.next, "\(order[0])"] {
                #expect(
                    try await client.hexes(.init(location: "mine"), limit: 100, after: cursor).items.map(\.id) == Array(order.dropFirst()))
            }
            let both = await #expect(throws: HexlistError.self) {
                _ = try await client.moveMine(hex.id, MineMoveRequest(into: nil, before: last, after: last))
            }
            #expect(both?.message == "`before` and `after` do not go together.")
            #expect(alone.parent == nil)
            #expect(try await client.hexes(.init(location: "mine"), limit: 9).items.map(\.id) == [hex.id, folder.id])
            _ = try await client.moveMine(hex.id, MineMoveRequest(into: folder.id))
            let cycle = await #expect(throws: HexlistError.self) { _ = try await client.moveMine(folder.id, MineMoveRequest(into: hex.id)) }
            #expect(cycle?.code == .badRequest && cycle?.message.contains("which is inside it") == true)
            let missing = await #expect(throws: HexlistError.self) { _ = try await client.addMine(Array("{}".utf8), into: 999) }
            #expect(missing?.code == .notFound)
            let empty = await #expect(throws: HexlistError.self) { _ = try await client.saveMine([], into: nil) }
            #expect(empty?.code == .badRequest)
            let deep = await #expect(throws: HexlistError.self) { _ = try await client.addMine(Array(Self.deep.utf8), into: folder.id) }
            #expect(deep?.message.contains("8 levels") == true)
            #expect(try await client.delete(.ids([folder.id])).changed == 1)
            #expect(try await client.hexes(.init(location: "mine"), limit: 9).items.isEmpty)
        }
    }

    /// Whether two hexes have the same texts and links at every level.
    private static func same(_ left: HexJSON, _ right: HexJSON) -> Bool {
        func texts(_ child: InnerHexJSON) -> [String] {
            [child.description, child.color] + child.links.map(\.url) + (child.children ?? []).flatMap(texts)
        }
        return left.description == right.description && left.links?.map(\.url) == right.links?.map(\.url)
            && (left.children ?? []).flatMap(texts) == (right.children ?? []).flatMap(texts)
    }
}
