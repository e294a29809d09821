import DaemonTestSupport
import HexlistAPI
import HexlistClient
import HexlistModel
import Testing

@testable import HexlistDaemon

@Suite("Groups and policies in the local API", .timeLimit(.minutes(5)))
struct GroupTests {
    @Test("a hex sent to a group and to single peers reaches each peer once")
    func send() async throws {
        try await TestDaemon.with("ada", "bob", "eve") { daemons in
            let (ada, bob, eve) = (daemons[0], daemons[1], daemons[2])
            for daemon in daemons { try await daemon.awaitPeers(2) }
            for (one, other) in [(ada, bob), (ada, eve), (bob, ada), (eve, ada)] {
                _ = try await one.client.trust(other.uuid, fingerprint: nil)
            }
            let group = try await ada.client.addToGroup("@Team", ["bob", eve.uuid])
            #expect(group.name == "Team" && group.peers.map { $0.tag?.alias } == ["bob", "eve"])
            #expect(try await ada.client.groups() == [group])
            #expect(try await ada.client.peer("bob").groups == ["Team"])

            let sent = try await ada.send(["https://example.org"], to: ["eve", "@TEAM", "bob"])
            #expect(sent.map(\.peer.description) == [eve.uuid, bob.uuid] && sent.allSatisfy { $0.state == .stored })

            // An unknown recipient is reported, and nothing is sent.
            for (name, code) in [("@taem", HexlistError.Code.notFound), ("@", .notFound), ("@bob", .notFound)] {
                await #expect { try await ada.send(["https://example.org"], to: [name]) } throws: { ($0 as? HexlistError)?.code == code }
            }
            let unmarked = await #expect(throws: HexlistError.self) { try await ada.send(["https://example.org"], to: ["team"]) }
            #expect(unmarked?.code == .notFound && unmarked?.hint == "Did you mean the group @Team?")
            _ = try await ada.client.block(eve.uuid)
            let blocked = await #expect(throws: HexlistError.self) { try await ada.send(["https://example.org"], to: ["@team"]) }
            #expect(blocked?.code == .badRequest && blocked?.message.contains("eve, of @Team, is blocked") == true)
            _ = try await ada.client.removeFromGroup("team", ["eve", "bob"])
            let empty = await #expect(throws: HexlistError.self) { try await ada.send(["https://example.org"], to: ["@team"]) }
            #expect(empty?.message == "@Team is empty.")

            // An alias that looks like a group still names its peer unless a group has that name.
            _ = try await ada.client.rename("bob", alias: "@team")
            await #expect { try await ada.send(["https://example.org"], to: ["@team"]) } throws: {
                ($0 as? HexlistError)?.code == .ambiguous
            }
            #expect(try await ada.client.deleteGroup("team").peers.isEmpty)
            #expect(try await ada.send(["https://example.org"], to: ["@team"]).map(\.peer.description) == [bob.uuid])
            for peers in [[], ["nobody"]] as [[String]] {
                await #expect(throws: HexlistError.self) { try await ada.client.addToGroup("x", peers) }
            }
            #expect(try await ada.client.groups().isEmpty)
        }
    }

    @Test("a peer's own name never shadows a group")
    func strangersName() async throws {
        try await TestDaemon.with("ada", "@team") { daemons in
            let ada = daemons[0]
            try await ada.awaitPeers(1)
            await #expect { try await ada.send(["https://example.org"], to: ["@team"]) } throws: {
                ($0 as? HexlistError)?.code == .notFound
            }
        }
    }

    @Test("rosters contain groups")
    func roster() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0].client, daemons[1].client)
            let peer = try #require(Fingerprint(bytes: [UInt8](repeating: 7, count: 32)))
            let entry = RosterPeer(
                uuid: peer.peerID.description, fingerprint: peer.description, name: "n", trust: "trusted", groups: ["team", "Home"])
            #expect(try await ada.importRoster(entry.lineBytes) == RosterImportResult(changed: 1))
            #expect(try await ada.importRoster(entry.lineBytes) == RosterImportResult(unchanged: 1))
            let exported = try await ada.exportRoster()
            #expect(try RosterPeer(jsonBytes: exported).groups == ["Home", "team"])
            #expect(try await bob.importRoster(exported).changed == 1)
            #expect(try await bob.groups().map(\.name) == ["Home", "team"])
            var wrong = entry
            wrong.groups = ["a\u{202E}b"]
            #expect(try await ada.importRoster(wrong.lineBytes).refused.map(\.code) == ["malformed"])
        }
    }

    @Test("hexes of a trusted peer are held or refused as its policy says, then accepted again")
    func policy() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            for daemon in daemons { try await daemon.awaitPeers(1) }
            _ = try await ada.client.trust(bob.uuid, fingerprint: nil)
            _ = try await bob.client.trust(ada.uuid, fingerprint: nil)
            let set = try await bob.client.setPeer("ada", receive: .held, notify: false)
            #expect(set.receive?.known == .held && set.notify == false)
            #expect(try await ada.send(["https://example.org"], to: ["bob"]).map(\.state) == [.held])
            #expect(try await bob.client.setPeer("ada", receive: .nothing, notify: nil).notify == false)
            let refused = try await ada.send(["https://example.org/2"], to: ["bob"])
            #expect(refused.map(\.state) == [.queued])
            // The refusal is temporary. Accepting again makes the peer retry and moves held hexes to the inbox.
            let row = try await ada.client.outboxRow(refused[0].outboxID)
            #expect(row.lastError?.contains("This peer accepts no hexes from you for now.") == true)
            let taken = try await bob.client.setPeer("ada", receive: .inbox, notify: true)
            #expect(taken.receive == nil && taken.notify == nil)
            var arrived = 0
            try await bob.client.followEvents(types: ["hex.received"]) { _ in
                arrived += 1
                return arrived < 2
            }
            #expect(try await bob.client.hexes(.init(), limit: 9).items.count == 2)
        }
    }
}
