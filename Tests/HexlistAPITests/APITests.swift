import DaemonTestSupport
import Glibc
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import HexlistNode
import Testing

@testable import HexlistDaemon
@testable import HexlistStore

@Suite("The local API", .timeLimit(.minutes(5)))
struct APITests {
    @Test("status and this machine's identity")
    func status() async throws {
        try await TestDaemon.with("ada") { daemons in
            let status = try await daemons[0].client.status()
            #expect(status.name == "ada")
            #expect(status.uuid == daemons[0].uuid)
            #expect(status.pid == Int(getpid()))
            #expect(status.port > 0)
            #expect(status.outbox.count == OutboxState.allCases.count)
            #expect(status.fingerprint.peerID == status.uuid)
        }
    }

    @Test("a stranger's hex is held; trust moves it; read, show, forward, delete")
    func exchange() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            try await bob.awaitPeers(1)
            #expect(try await ada.client.peers(all: false).map(\.name) == ["bob"])

            let sent = try await ada.send(["https://example.org/1"], description: "first", to: ["bob"])
            #expect(sent.map(\.state) == [.held])
            let held = try await bob.client.hexes(.init(location: "held"), limit: 10)
            #expect(held.items.map(\.description) == ["first"])
            #expect(held.items.map(\.peerUUID?.description) == [ada.uuid])
            #expect(held.next == nil)

            #expect(try await bob.client.trust(ada.uuid, fingerprint: nil).trust == "trusted")
            #expect(try await ada.send(["https://example.org/2"], description: "second", to: [bob.uuid]).map(\.state) == [.stored])
            let inbox = try await bob.client.hexes(.init(), limit: 10)
            #expect(inbox.items.map(\.description) == ["second", "first"])
            #expect(inbox.items.map(\.unread) == [true, true])
            #expect(try await bob.client.status().unread == 2)
            #expect(try await bob.client.peer("ada").unread == 2)

            let first = try await bob.client.hexes(.init(), limit: 1)
            #expect(first.items.map(\.description) == ["second"])
            let cursor: String = try #require(first.next)
            let rest = try await bob.client.hexes(.init(), limit: 1, after: cursor)
            #expect(rest.items.map(\.description) == ["first"])
            #expect(rest.next == nil)

            let ids = inbox.items.map(\.id)
            #expect(try await bob.client.setUnread(false, .ids([ids[0]])).changed == 1)
            #expect(try await bob.client.hexes(.init(unread: true), limit: 10).items.map(\.id) == [ids[1]])
            #expect(try await bob.client.setUnread(false, .all).changed == 1)
            #expect(try await bob.client.hex(ids[0]).links?.map(\.url) == ["https://example.org/2"])

            #expect(try await ada.send(["https://example.org/3", "https://example.org/4"], to: [bob.uuid]).map(\.state) == [.stored])
            let two = try #require(try await bob.client.hexes(.init(), limit: 1).items.first)
            #expect(try await bob.client.setUnread(false, links: [.init(hex: two.id, number: 2)]).changed == 1)
            #expect(try await bob.client.hex(two.id).links?.map(\.unread) == [nil, false])
            var unread: [String] = []
            _ = try await bob.client.links(.init(unread: true), unique: false, limit: 10) { unread.append($0.url) }
            #expect(unread == ["https://example.org/3"])
            for body in [
                #"{"links":[[1,1]],"ids":[1],"unread":false}"#, #"{"links":[[1]],"unread":false}"#, #"{"links":[[1,0]],"unread":false}"#,
            ] {
                #expect(throws: JSONFault.self) { try UnreadPatch(json: JSONValue(parsing: Array(body.utf8))) }
            }
            #expect(try await bob.client.setUnread(false, links: [.init(hex: two.id, number: 1)]).changed == 1)
            #expect(try await bob.client.hex(two.id).unread == false)
            #expect(try await bob.client.delete(.ids([two.id])).changed == 1)

            let missing = try await #require(throws: HexlistError.self) { try await bob.client.delete(.ids([ids[0], 4_711])) }
            #expect(missing.code == .notFound)
            #expect(missing.message.contains("4711"))
            #expect(try await bob.client.hexes(.init(), limit: 10).items.count == 2)
            #expect(try await bob.client.delete(.ids(ids)).changed == 2)
            #expect(try await bob.client.hexes(.init(), limit: 10).items.isEmpty)
        }
    }

    @Test("unknown members are shown byte for byte, and forwarded")
    func unknownMembers() async throws {
        try await TestDaemon.with("ada", "bob", "eve") { daemons in
            let (ada, bob, eve) = (daemons[0], daemons[1], daemons[2])
            for daemon in daemons { try await daemon.awaitPeers(2) }
            _ = try await bob.client.trust(ada.uuid, fingerprint: nil)
            _ = try await eve.client.trust(bob.uuid, fingerprint: nil)
            let hex = #"{"description":"d","color":"c","x-tags": [1.0, "\u00e9"],"links":[{"url":"u1"},{"url":"u2","w":{"a" : 12e0}}]}"#
            let send = HexlistClient.Send(content: .hex(Array(hex.utf8)), peers: ["bob"], timeout: TestDaemon.patience)
            #expect(try await ada.client.send(send).map(\.state) == [.stored])
            let id = try #require(try await bob.client.hexes(.init(), limit: 1).items.first?.id)
            let extra = #"{"hex":{"x-tags": [1.0, "\u00e9"]},"links":{"1":{"w":{"a" : 12e0}}}}"#
            let shown = try await bob.client.hex(id)
            #expect(shown.description == "d" && shown.color == "c")
            #expect(shown.extra?.text == extra)

            let forward = HexlistClient.Send(content: .forward(id), peers: ["eve"], timeout: TestDaemon.patience)
            #expect(try await bob.client.send(forward).map(\.state) == [.stored])
            let there = try #require(try await eve.client.hexes(.init(), limit: 1).items.first)
            #expect(there.peerUUID == bob.uuid)
            #expect(there.senderUUID == ada.uuid && there.senderAlias == nil)
            _ = try await eve.client.trust(ada.uuid, fingerprint: nil)
            #expect(try await eve.client.hexes(.init(), limit: 1).items.first?.senderAlias == "ada")
            #expect(try await eve.client.hex(there.id).senderAlias == "ada")
            #expect(try await bob.client.hex(id).senderAlias == nil)
            #expect(try await eve.client.hex(there.id).extra?.text == extra)
        }
    }

    @Test("a reused key sends once; with other content it is refused")
    func keys() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            try await bob.awaitPeers(1)
            _ = try await bob.client.trust(ada.uuid, fingerprint: nil)
            let first = try await ada.send(["u"], to: ["bob"], key: "k")
            let again = try await ada.send(["u"], to: ["bob"], key: "k")
            #expect(first.map(\.messageID) == again.map(\.messageID))
            #expect(again.map(\.state) == [.stored])
            #expect(first.map(\.earlier) == [false] && again.map(\.earlier) == [true])
            let error = try await #require(throws: HexlistError.self) { try await ada.send(["other"], to: ["bob"], key: "k") }
            #expect(error.code == .keyConflict)
            #expect(try await bob.client.hexes(.init(), limit: 10).items.count == 1)
        }
    }

    @Test("peers: names, aliases, trust and refusals")
    func peers() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            #expect(try await ada.client.rename("bob", alias: "Größe/ 100%").alias == "Größe/ 100%")
            #expect(try await ada.client.peer("Größe/ 100%").uuid == bob.uuid)
            #expect(try await ada.client.rename(bob.uuid, alias: nil).alias == nil)

            let named = try await #require(throws: HexlistError.self) { try await ada.client.trust("bob", fingerprint: nil) }
            #expect(named.code == .badRequest)
            let wrong = try await #require(throws: HexlistError.self) {
                try await ada.client.trust(bob.uuid, fingerprint: String(repeating: "A", count: 64))
            }
            #expect(wrong.code == .badRequest)
            #expect(try await ada.client.peer("bob").trust == "stranger")
            let fingerprint = try #require(try await ada.client.peer("bob").fingerprint)
            #expect(try await ada.client.trust("bob", fingerprint: fingerprint.description).trust == "trusted")
            #expect(try await #require(throws: HexlistError.self) { try await ada.client.unblock("bob") }.code == .badRequest)
            #expect(try await ada.client.untrust("bob").trust == "stranger")
            #expect(try await ada.client.block(bob.uuid).trust == "blocked")
            #expect(try await ada.client.unblock(bob.uuid).trust == "stranger")

            for name in ["nobody", "FFFF", "\u{1B}[31m"] {
                #expect(try await #require(throws: HexlistError.self) { try await ada.client.peer(name) }.code == .notFound)
            }
        }
    }

    @Test("an absent peer's row waits, shows the reason, and can be cancelled")
    func outbox() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            _ = try await ada.client.trust(bob.uuid, fingerprint: nil)
            await bob.node.stop()
            try await ada.client.watchPeers(all: false) { !$0.isEmpty }
            let sent = try await ada.send(["u"], to: [bob.uuid])
            #expect(sent.map(\.state) == [.queued])
            let rows = try await ada.client.outbox(states: [.queued], limit: 10).items
            #expect(rows.map(\.outboxID) == sent.map(\.outboxID))
            #expect(rows.first?.waitingFor == "peer")
            let id = try #require(rows.first?.outboxID)
            #expect(try await ada.client.cancel(id).state == .cancelled)
            #expect(try await ada.client.outboxRow(id).state == .cancelled)
            #expect(try await ada.client.outbox(states: [.queued], limit: 10).items.isEmpty)
            #expect(try await #require(throws: HexlistError.self) { try await ada.client.outboxRow(4_711) }.code == .notFound)
        }
    }

    @Test("events have no gaps and can be followed; malformed queries are refused")
    func events() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            try await bob.awaitPeers(1)
            _ = try await bob.client.trust(ada.uuid, fingerprint: nil)
            async let followed: [EventJSON] = {
                var seen: [EventJSON] = []
                try await bob.client.followEvents { event in
                    seen.append(event)
                    return seen.count(where: { $0.type == "hex.received" }) < 2
                }
                return seen
            }()
            _ = try await ada.send(["1"], to: ["bob"])
            _ = try await ada.send(["2"], to: ["bob"])
            let seen = try await followed
            #expect(seen.map(\.number) == Array(Int64(1)...Int64(seen.count)))
            #expect(seen.contains { $0.type == "peer.up" && $0.peer == ada.uuid })

            var numbers: [Int64] = []
            #expect(try await bob.client.events(.after(1), limit: 1) { numbers.append($0.number) } == "2")
            #expect(numbers == [2])
            let newest = try #require(seen.last?.number)
            #expect(try await bob.client.events(.after(newest + 100), limit: 5) { numbers.append($0.number) } == nil)
            #expect(numbers == [2])
        }
    }

    @Test("1 700 ids in one request, ranges, all hexes of a peer, all hexes of a list")
    func manyHexes() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            try await bob.awaitPeers(1)
            let mine = HexContent()
            let last = try await bob.node.store.write { writer in
                for _ in 1..<3_300 { _ = try writer.insertMine(mine, at: 0) }
                return try writer.insertMine(mine, at: 0)
            }
            #expect(last == 3_300)
            #expect(try await bob.client.delete(.ids(Array(1...1_700))).changed == 1_700)
            // A range of ids deletes received hexes only, not hexes of My Hexlist.
            #expect(try await bob.client.delete(.ids([1_701], ranges: [1...1_000, 1_702...3_200])).changed == 1)
            // The deletion takes two transactions.
            #expect(try await bob.client.delete(.list(location: "mine")).changed == 1_599)
            #expect(try await bob.client.delete(.list(location: "mine")).changed == 0)

            for number in 1...4 { _ = try await ada.send(["u"], description: "\(number)", to: ["bob"]) }
            let held = try await bob.client.hexes(.init(location: "held"), limit: 10).items.map(\.id)
            #expect(try await bob.client.delete(.list(from: "ada")).changed == 0, "only the inbox, where nothing is said")
            #expect(try await bob.client.accept(.ids([], ranges: [held[3]...held[3]])).changed == 1)
            #expect(try await bob.client.accept(.list(from: "ada", newest: held[2])).changed == 1, "what came later is left out")
            // An inbox position is not an id, and held hexes have no position in the inbox.
            let elsewhere = try await #require(throws: HexlistError.self) { try await bob.client.delete(.list(newest: held[0])) }
            #expect(elsewhere.code == .badRequest)
            #expect(try await bob.client.delete(.list(location: "held", newest: held[2])).changed == 0, "accepted meanwhile")
            #expect(try await bob.client.accept(.list(from: "ada")).changed == 2)
            #expect(try await bob.client.status().inbox == 4)
            #expect(try await bob.client.hexes(.init(), limit: 10).items.map(\.description) == ["4", "3", "2", "1"])
            #expect(try await bob.client.setUnread(false, .ids([], ranges: [held[2]...held[1]])).changed == 2)
            #expect(try await bob.client.setUnread(false, .list(from: ada.uuid)).changed == 2)
            #expect(try await bob.client.status().unread == 0)
            #expect(try await bob.client.delete(.list(newest: held[1])).changed == 3)
            #expect(try await bob.client.delete(.list(from: "ada")).changed == 1)

            let tooMany = try await #require(throws: HexlistError.self) { try await bob.client.delete(.ids(Array(1...10_001))) }
            #expect(tooMany.code == .badRequest && tooMany.message.contains("the maximum is 10000"))
        }
    }

    @Test("queries for the newest events, for types, and for future events; an event of a hex has its subject")
    func newestEvents() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0]
            let peer = PeerID(UUIDBytes(high: 1, low: 2))
            let hex = try await ada.node.store.write { writer in
                var content = HexContent()
                content.links = [LinkContent(url: content.add("https://example.org/a?b"), linkDescription: .empty, service: .empty)]
                return try writer.insertMine(content, at: 0)
            }
            try await ada.node.store.write { writer in
                for type in [EventType.peerUp, .hexHeld, .hexReceived, .peerDown, .hexHeld] {
                    try writer.appendEvent(type, at: 0, peer: peer, hex: type == .hexHeld ? hex : nil)
                }
            }
            func list(_ start: HexlistClient.EventStart, _ types: [String], limit: Int = 100) async throws -> [EventJSON] {
                var events: [EventJSON] = []
                _ = try await ada.client.events(start, types: types, limit: limit) { events.append($0) }
                return events
            }
            #expect(try await list(.oldest, []).map(\.number) == [1, 2, 3, 4, 5])
            #expect(try await list(.last(2), []).map(\.number) == [4, 5])
            #expect(try await list(.last(1_000), []).map(\.number) == [1, 2, 3, 4, 5])
            #expect(try await list(.last(0), []).isEmpty)
            #expect(try await list(.after(3), ["peer"]).map(\.number) == [4])
            let held = try await list(.last(2), ["hex"])
            #expect(held.map(\.number) == [3, 5] && held.map(\.subject) == [nil, "example.org/a"])
            #expect(try await list(.oldest, ["hex.held", "peer.up"]).map(\.number) == [1, 2, 5])
            #expect(try await list(.after(2), ["peer"]).map(\.number) == [4])
            let typo = try await #require(throws: HexlistError.self) { try await list(.oldest, ["hex.recieved"]) }
            #expect(typo.code == .badRequest && typo.hint == "Did you mean `hex.received`?")

            // Events that arrive while the client follows the log. The first one shows that the client is connected.
            var numbers: [Int64] = []
            try await ada.client.followEvents(.last(1), types: ["hex.held"]) { event in
                numbers.append(event.number)
                if numbers.count == 1 {
                    try await ada.node.store.write { writer in
                        for type in [EventType.peerDown, .hexHeld] { try writer.appendEvent(type, at: 0, peer: peer) }
                    }
                }
                return numbers.count < 2
            }
            #expect(numbers == [5, 7])
        }
    }

    @Test("another user's socket is refused before any byte is sent", .enabled(if: geteuid() == 0, "only root can give a socket away"))
    func foreignSocket() async throws {
        try await TestDaemon.with("ada") { daemons in
            chown(daemons[0].socket, 4_711, 4_711)
            let error = try await #require(throws: HexlistError.self) { try await daemons[0].client.status() }
            #expect(error.code == .daemonUnreachable && error.message.contains("belongs to another user"))
            chown(daemons[0].socket, geteuid(), getegid())
            _ = try await daemons[0].client.status()
        }
    }
}
