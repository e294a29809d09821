import DaemonTestSupport
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import Testing

@testable import HexlistDaemon

/// Shared hexes over the local API: two or three daemons of different persons, with real TLS and stores.
@Suite("Shared hexes over the local API", .serialized, .timeLimit(.minutes(5)))
struct SharingAPITests {
    private static func hex(_ title: String, _ links: [String]) -> [UInt8] {
        let urls = links.map { "\"https://a.example/\($0)\"" }.joined(separator: ",")
        return Array(#"{"description":"\#(title)","links":[\#(urls)]}"#.utf8)
    }

    private static func trusting(_ one: TestDaemon, _ two: TestDaemon) async throws {
        for (here, there) in [(one, two), (two, one)] {
            try await here.awaitPeers(1)
            _ = try await here.client.trust(there.uuid, fingerprint: nil)
        }
    }

    /// Waits on the event stream until `found` returns a value.
    private static func wait<Value>(_ daemon: TestDaemon, _ found: (SharedHexes) async throws -> Value?) async throws -> Value {
        var value: Value?
        try await daemon.client.watchSharedHexes {
            value = try await found($0)
            return value == nil
        }
        return try #require(value)
    }

    private static func titles(_ daemon: TestDaemon) async throws -> [String] {
        try await daemon.client.hexes(.init(location: "mine"), limit: 20).items.map { "\($0.description) \($0.linkCount)" }.sorted()
    }

    private static func share(_ daemon: TestDaemon, _ hex: Int64, _ members: [(String, ShareAccess)]) async throws -> SharedHexView {
        try await daemon.client.shareMine(hex, ShareHexRequest(with: members.map { .init(peer: $0.0, access: $0.1) }))
    }

    private static func refuses(_ code: HexlistError.Code, _ body: () async throws -> Void) async {
        await #expect { try await body() } throws: { ($0 as? HexlistError)?.code == code }
    }

    /// Returns the first event of a type.
    private static func event(_ daemon: TestDaemon, _ type: String) async throws -> (EventJSON, (String) -> String?) {
        var found: EventJSON?
        try await daemon.client.followEvents(.oldest, types: [type]) { event in
            found = event
            return false
        }
        let event = try #require(found)
        let members = event.data?.members ?? []
        return (event, { name in members.first { $0.name == name }?.value.string })
    }

    @Test("a hex is offered, joined, changed on both sides, made read-only and no longer shared") func course() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            let outer = try await ada.client.addMine(Self.hex("Work", ["w"]), into: nil)
            let hex = try await ada.client.addMine(Self.hex("Reading", ["1", "2"]), into: outer.id).id
            await Self.refuses(.badRequest) { _ = try await Self.share(ada, hex, [("bob", .write)]) }
            try await Self.trusting(ada, bob)
            #expect(try await ada.client.sharedHexes() == SharedHexes(shared: [], offers: []))
            await Self.refuses(.badRequest) { _ = try await ada.client.sharedHex(hex) }
            await Self.refuses(.notFound) { _ = try await ada.client.sharedHex(999) }
            await Self.refuses(.notFound) { _ = try await Self.share(ada, hex, [("nobody", .read)]) }
            await Self.refuses(.badRequest) { _ = try await Self.share(ada, hex, []) }
            await Self.refuses(.badRequest) { _ = try await Self.share(ada, hex, [("bob", .read), (bob.uuid, .write)]) }
            await Self.refuses(.badRequest) { _ = try await Self.share(ada, hex, [("bob", .none)]) }
            #expect(try await ada.client.sharedHexes().shared.isEmpty)

            let shared = try await Self.share(ada, hex, [("bob", .write)])
            #expect(shared.hex == hex && shared.owned && shared.title == "Reading" && shared.links == 2)
            #expect(shared.peers.map(\.uuid) == [bob.node.id] && shared.peers[0].access.known == .write)
            #expect(shared.peers[0].state.known == .offered)
            #expect(try await ada.client.hex(hex).parent == nil)

            let offer = try await Self.wait(bob) { $0.offers.first }
            #expect(offer.title == "Reading" && offer.links == 2 && offer.access.known == .write && offer.uuid == ada.node.id)
            #expect(offer.list == shared.list && !offer.further)
            let (offered, offeredData) = try await Self.event(bob, "list.offered")
            #expect(offered.peer == ada.node.id && offeredData("offer") == "\(offer.number)" && offeredData("title") == "Reading")
            #expect(offeredData("access") == "write" && offeredData("links") == "2")
            #expect(try await Self.titles(bob).isEmpty)

            await Self.refuses(.notFound) { _ = try await bob.client.joinSharedHex(offer.number + 1) }
            let joined = try await bob.client.joinSharedHex(offer.number)
            #expect(!joined.owned && joined.access.known == .write && joined.list == shared.list && joined.peers[0].uuid == ada.node.id)
            await Self.refuses(.notFound) { _ = try await bob.client.joinSharedHex(offer.number) }
            let copy = try await Self.wait(bob) { lists in lists.shared.first.flatMap { $0.links == 2 ? $0.hex : nil } }
            #expect(try await bob.client.sharedHexes().offers.isEmpty)
            #expect(try await Self.titles(bob) == ["Reading 2"])
            #expect(try await Self.wait(ada) { $0.shared.first?.peers[0].state.known == .joined ? true : nil })

            let links = [LinkEdit(from: 1), LinkEdit(from: 2), LinkEdit(url: "https://a.example/3")]
            _ = try await bob.client.editMine(copy, MineEditRequest(description: "Reading list", links: links))
            #expect(try await Self.wait(ada) { $0.shared.first?.links == 3 ? true : nil })
            #expect(try await Self.titles(ada) == ["Reading list 3", "Work 1"])
            #expect(try await ada.client.mineLog(hex: hex, limit: 1).items.first?.by == bob.node.id)
            let (changed, changedData) = try await Self.event(ada, "list.changed")
            #expect(changed.peer == bob.node.id && changedData("hex") == "\(hex)")

            await Self.refuses(.badRequest) { _ = try await Self.share(bob, copy, [("ada", .read)]) }
            _ = try await Self.share(ada, hex, [(bob.uuid, .read)])
            let (readOnly, readOnlyData) = try await Self.event(bob, "list.ended")
            #expect(readOnly.peer == ada.node.id && readOnlyData("access") == "read" && readOnlyData("title") == "Reading list")
            #expect(readOnlyData("hex") == "\(copy)")
            await #expect { _ = try await bob.client.editMine(copy, MineEditRequest(description: "Mine")) } throws: {
                let error = $0 as? HexlistError
                return error?.code == .badRequest && error?.message.contains("belongs to ada") ?? false
            }

            let ended = try await Self.share(ada, hex, [("bob", .none)])
            #expect(ended.peers[0].access.known == ShareAccess.none)
            let last = try await Self.wait(bob) { lists in lists.shared.first { $0.access.known == ShareAccess.none } }
            #expect(last.title == "Reading list" && last.hex == copy)
            #expect(try await Self.titles(bob) == ["Reading list 3"])
        }
    }

    @Test("a hex is renewed: its member keeps the former one, joins the new one, and both exchange changes again") func renewal()
        async throws
    {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await Self.trusting(ada, bob)
            let hex = try await ada.client.addMine(Self.hex("Reading", ["1", "2", "3"]), into: nil).id
            await Self.refuses(.badRequest) { _ = try await ada.client.renewShared(hex) }
            await Self.refuses(.notFound) { _ = try await ada.client.renewShared(999) }
            let shared = try await Self.share(ada, hex, [("bob", .write)])
            _ = try await bob.client.joinSharedHex(try await Self.wait(bob) { $0.offers.first }.number)
            let former = try await Self.wait(bob) { lists in lists.shared.first.flatMap { $0.links == 3 ? $0.hex : nil } }
            await Self.refuses(.badRequest) { _ = try await bob.client.renewShared(former) }
            _ = try await ada.client.editMine(hex, MineEditRequest(links: [LinkEdit(from: 1), LinkEdit(from: 3)]))
            #expect(try await Self.wait(bob) { $0.shared.first?.links == 2 ? true : nil })

            let renewal = try await ada.client.renewShared(hex)
            #expect(renewal.removed == 1 && renewal.shared.hex == hex && renewal.shared.list != shared.list)
            #expect(renewal.shared.peers.map(\.uuid) == [bob.node.id] && renewal.shared.peers[0].state.known == .offered)
            #expect(try await ada.client.sharedHexes().shared == [renewal.shared])
            let offer = try await Self.wait(bob) { $0.offers.first }
            #expect(offer.title == "Reading" && offer.links == 2 && offer.access.known == .write && offer.list == renewal.shared.list)
            let ended = try await Self.wait(bob) { lists in lists.shared.first { $0.access.known == ShareAccess.none } }
            #expect(ended.hex == former && ended.links == 2)
            _ = try await bob.client.joinSharedHex(offer.number)
            let copy = try await Self.wait(bob) { lists in
                lists.shared.first { $0.list == offer.list && $0.links == 2 && $0.hex != nil }?.hex
            }
            #expect(copy != former)
            _ = try await bob.client.editMine(copy, MineEditRequest(description: "Books"))
            #expect(try await Self.wait(ada) { $0.shared.first?.title == "Books" ? true : nil })
            #expect(try await Self.titles(ada) == ["Books 2"])
            #expect(try await Self.titles(bob) == ["Books 2", "Reading 2"])
        }
    }

    @Test("new links are counted and marked until the hex is marked as seen; inner hexes name the shared one") func newLinks() async throws
    {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await Self.trusting(ada, bob)
            let hex = try await ada.client.addMine(Self.hex("Reading", ["1"]), into: nil).id
            let inner = try await ada.client.addMine(Self.hex("Inner", ["2"]), into: hex).id
            _ = try await Self.share(ada, hex, [("bob", .write)])
            _ = try await bob.client.joinSharedHex(try await Self.wait(bob) { $0.offers.first }.number)
            let copy = try await Self.wait(bob) { lists in lists.shared.first.flatMap { $0.links == 2 ? $0.hex : nil } }
            let before = try await bob.client.hex(copy)
            let sharing = try #require(before.shared)
            #expect(sharing.owner == ada.node.id && sharing.tag?.name == "ada" && sharing.new == 0 && sharing.hex == nil)
            #expect(before.links?.map(\.new) == [nil] && sharing.sequence != nil)
            #expect(try await ada.client.hex(hex).shared?.owner == nil)

            let innerCopy = try #require(before.children?.first?.id)
            let outer = try #require(try await bob.client.hex(innerCopy).shared)
            #expect(outer.hex == copy && outer.owner == ada.node.id && outer.access.known == .write && !outer.owned)
            #expect(try await ada.client.hex(inner).shared?.hex == hex)

            // Bob's own link is new for Ada only.
            _ = try await bob.client.editMine(copy, MineEditRequest(links: [LinkEdit(from: 1), LinkEdit(url: "https://a.example/3")]))
            #expect(try await Self.wait(ada) { $0.shared.first?.new == 1 ? true : nil })
            let item = try await ada.client.hexes(.init(location: "mine"), limit: 20).items.first
            #expect(item?.shared?.new == 1 && item?.shared?.sequence == nil)
            let shown = try await ada.client.hex(hex)
            #expect(shown.links?.map(\.new) == [nil, true] && shown.shared?.new == 1)
            #expect(try await bob.client.hex(copy).shared?.new == 0)
            #expect(try PageOverview(jsonBytes: Array(await ask(ada, request("GET /v1/web")).body.utf8)).newLinks == 1)

            // A link that arrives after the hex was read stays new.
            _ = try await bob.client.editMine(innerCopy, MineEditRequest(links: [LinkEdit(from: 1), LinkEdit(url: "https://a.example/4")]))
            #expect(try await Self.wait(ada) { $0.shared.first?.new == 2 ? true : nil })
            #expect(try await ada.client.markSeen(hex, through: shown.shared?.sequence).changed == 1)
            let rest = try await ada.client.hex(hex)
            #expect(
                rest.links?.map(\.new) == [nil, nil] && rest.children?.first?.links.map(\.new) == [nil, true] && rest.shared?.new == 1)
            #expect(try await ada.client.hex(inner).links?.map(\.new) == [nil, true])
            await Self.refuses(.badRequest) { _ = try await ada.client.markSeen(inner) }
            await Self.refuses(.notFound) { _ = try await ada.client.markSeen(999) }
            for body in [#"{"sequence":-1}"#, #"{"sequence":"x"}"#, #"{"until":1}"#] {
                #expect(try await ask(ada, request("POST /v1/mine/\(hex)/seen", body: body)).status == 400, "\(body)")
            }
            #expect(try await ada.client.markSeen(hex).changed == 1)
            #expect(try await ada.client.markSeen(hex).changed == 0)
            #expect(try await ada.client.hexes(.init(location: "mine"), limit: 20).items.first?.shared?.new == 0)
        }
    }

    @Test("a hex that is shared again with a former member goes on there, with an event") func again() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await Self.trusting(ada, bob)
            let hex = try await ada.client.addMine(Self.hex("Reading", ["1"]), into: nil).id
            _ = try await Self.share(ada, hex, [("bob", .read)])
            _ = try await bob.client.joinSharedHex(try await Self.wait(bob) { $0.offers.first }.number)
            let copy = try await Self.wait(bob) { lists in lists.shared.first.flatMap { $0.links == 1 ? $0.hex : nil } }
            _ = try await Self.share(ada, hex, [("bob", .none)])
            #expect(try await Self.wait(bob) { $0.shared.first?.access.known == ShareAccess.none ? true : nil })
            _ = try await Self.share(ada, hex, [("bob", .write)])
            let (event, data) = try await Self.event(bob, "list.resumed")
            #expect(event.peer == ada.node.id && data("hex") == "\(copy)" && data("title") == "Reading" && data("access") == "write")
            let lists = try await bob.client.sharedHexes()
            #expect(lists.offers.isEmpty && lists.shared.first?.access.known == .write)

            // A member that has deleted the hex is asked again.
            _ = try await bob.client.delete(.ids([copy]))
            #expect(try await Self.wait(ada) { $0.shared.first?.peers[0].state.known == .left ? true : nil })
            _ = try await Self.share(ada, hex, [("bob", .none)])
            // With the offer of another hex, bob also learns of the end. He is not asked if he misses it.
            let other = try await ada.client.addMine(Self.hex("Other", ["1"]), into: nil).id
            _ = try await Self.share(ada, other, [("bob", .read)])
            _ = try await Self.wait(bob) { $0.openOffers.first { $0.title == "Other" } }
            _ = try await Self.share(ada, hex, [("bob", .write)])
            let offer = try await Self.wait(bob) { $0.openOffers.first { $0.title == "Reading" } }
            #expect(offer.access.known == .write)
            let joined = try await bob.client.joinSharedHex(offer.number)
            #expect(joined.list == offer.list)
        }
    }

    @Test("a declined offer stays as declined") func declined() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await Self.trusting(ada, bob)
            let hex = try await ada.client.addMine(Self.hex("Reading", ["1"]), into: nil).id
            _ = try await Self.share(ada, hex, [("bob", .read)])
            let offer = try await Self.wait(bob) { $0.offers.first }
            #expect(offer.access.known == .read)
            var declined = offer
            declined.declined = true
            #expect(try await bob.client.declineSharedHex(offer.number) == declined)
            let lists = try await bob.client.sharedHexes()
            #expect(lists == SharedHexes(shared: [], offers: [declined]) && lists.openOffers.isEmpty)
            await Self.refuses(.notFound) { _ = try await bob.client.declineSharedHex(offer.number + 1) }
        }
    }

    @Test("an own machine, and an access that does not exist, are refused") func refused() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            try await Self.trusting(one, two)
            let hex = try await one.client.addMine(Self.hex("Reading", ["1"]), into: nil).id
            let bodies = [
                #"{"with":[{"peer":"two","access":"admin"}]}"#, #"{"with":[{"peer":"two"}]}"#, #"{"with":"two"}"#,
                #"{"with":[{"peer":"two","access":"read","until":"x"}]}"#, #"{"with":[],"mode":"read"}"#,
            ]
            for body in bodies {
                let reply = try await ask(one, request("PUT /v1/mine/\(hex)/share", body: body))
                #expect(reply.status == 400, "\(body)")
            }
            _ = try await one.client.addOwnMachine("two")
            await #expect { _ = try await Self.share(one, hex, [("two", .read)]) } throws: {
                ($0 as? HexlistError)?.message.contains("your own machines") ?? false
            }
            #expect(try await one.client.sharedHexes().shared.isEmpty)
        }
    }
}
