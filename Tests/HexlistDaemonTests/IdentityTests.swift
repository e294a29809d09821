import DaemonTestSupport
import Foundation
import HexlistAPI
import HexlistClient
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistTransport
import Synchronization
import TestSupport
import Testing

@testable import HexlistDaemon

@Suite("This machine's identity", .timeLimit(.minutes(5)))
struct IdentityTests {
    @Test("rotation changes the UUID and nothing else")
    func rotation() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            try await bob.awaitPeers(1)
            _ = try await ada.client.trust(bob.uuid, fingerprint: nil)
            _ = try await bob.client.trust(ada.uuid, fingerprint: nil)
            _ = try await ada.client.rename(bob.uuid, alias: "b")
            #expect(try await bob.send(["https://example.org/1"], description: "first", to: ["ada"]).map(\.state) == [.stored])
            #expect(try await ada.send(["https://example.org/2"], to: ["b"], key: "k").map(\.state) == [.stored])
            let before = try await ada.client.status()
            let after = try await ada.client.rotateIdentity()
            #expect(after.uuid != before.uuid && after.fingerprint != before.fingerprint && after.name == before.name)
            #expect(after.identity?.state == .own)
            #expect(try await ada.client.status().uuid == after.uuid)
            // The store uses the new identity from now on.
            #expect(try await ada.node.store.read { try $0.meta("identity") } == ada.uuid)

            // Hexes and trust in others remain.
            #expect(try await ada.client.hexes(.init(location: "inbox"), limit: 10).items.map(\.description) == ["first"])
            try await ada.awaitPeers(1)
            let peer = try await ada.client.peer("b")
            #expect(peer.uuid == bob.uuid && peer.trust == "trusted" && peer.state == .verified)
            // The other peer lists this machine as a stranger, which can still send and receive.
            try await bob.client.watchPeers(all: false) { !$0.contains { $0.uuid == after.uuid } }
            #expect(try await bob.client.peer(after.uuid.description).trust == "stranger")
            #expect(try await bob.client.peer(before.uuid.description).trust == "trusted")
            #expect(try await ada.send(["https://example.org/3"], to: ["b"]).map(\.state) == [.held])
            #expect(try await bob.send(["https://example.org/4"], to: [after.uuid.description]).map(\.state) == [.stored])
            // An idempotency key belongs to one hex of one identity.
            #expect(try await ada.send(["https://example.org/2"], to: ["b"], key: "k").map(\.state) == [.held])
            #expect(try await ada.client.rotateIdentity().uuid != after.uuid)
        }
    }

    @Test("the reply to a rotation has the number of envelopes in folders that are sealed for the old identity")
    func formerEnvelopes() async throws {
        try await TestDaemon.with("ada") { daemons in
            try await TemporaryFolder.with { folder in
                let ada = daemons[0]
                var configuration = await ada.node.configuration
                configuration.routes.list = [RouteConfiguration(name: "home", place: .folder(folder.path))]
                await ada.supervisor.reconfigure(configuration)
                let mailbox = "\(folder.path)/\(ada.uuid)"
                try await eventually { FileManager.default.fileExists(atPath: "\(mailbox)/card.hxc") }
                // Two envelopes that cannot be opened. They stay in the mailbox for a day, because they may be incomplete.
                for number in 1...2 {
                    let file = "\(mailbox)/01A3185C5000-0\(number)112233445566778899AABBCCDDEEFF.hxe"
                    try Data(repeating: 1, count: 6_000).write(to: URL(filePath: file))
                }
                try Data("note".utf8).write(to: URL(filePath: "\(mailbox)/note.txt"))
                #expect(try await ada.client.rotateIdentity().formerEnvelopes == 2)
                #expect(try await ada.client.status().formerEnvelopes == nil)
                #expect(try await ada.client.rotateIdentity().formerEnvelopes == nil)
            }
        }
    }

    @Test("streams continue with the node of a new identity")
    func streams() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            let isRotated = Mutex(false)
            let (told, telling) = AsyncStream.makeStream(of: String.self)
            /// Whether to continue: until an event after the rotation arrives.
            let hear = { @Sendable (stream: String) -> Bool in
                telling.yield(stream)
                return isRotated.withLock { !$0 }
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await ada.client.watchPeers(all: false) { _ in hear("peers") } }
                group.addTask { try await ada.client.watchPairings { _ in hear("pairings") } }
                group.addTask { try await ada.client.followEvents(.after(0)) { _ in hear("events") } }
                var missing: Set = ["peers", "pairings", "events"]
                for await stream in told {
                    missing.remove(stream)
                    if missing.isEmpty { break }
                }
                let after = try await ada.client.rotateIdentity()
                try await ada.awaitPeers(1)
                isRotated.withLock { $0 = true }
                // Causes one event on each stream.
                _ = try await ada.client.rename(bob.uuid, alias: "b")
                _ = try await ada.client.openPairing()
                try await bob.client.watchPeers(all: false) { !$0.contains { $0.uuid == after.uuid } }
                _ = try await bob.send(["https://example.org/1"], to: [after.uuid.description])
                try await group.waitForAll()
            }
        }
    }

    @Test("queued hexes go out under the new identity, with their message ids unchanged")
    func outbox() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            _ = try await ada.client.trust(bob.uuid, fingerprint: nil)
            var configuration = await bob.node.configuration
            configuration.receiveFrom = .trusted
            await bob.node.reconfigure(configuration)
            let sent = try await ada.send(["https://example.org/1"], to: [bob.uuid])
            #expect(sent.map(\.state) == [.queued])
            let row = try #require(sent.first)
            let after = try await ada.client.rotateIdentity()
            // A new Hello makes the peer accept again, and refused hexes are resent at once.
            configuration.receiveFrom = .held
            await bob.node.reconfigure(configuration)
            try await bob.client.watchPeers(all: false) { !$0.contains { $0.uuid == after.uuid } }
            try await eventually("the row is not queued") { try await ada.client.outboxRow(row.outboxID).state != .queued }
            let there = try await bob.client.hexes(.init(location: "held"), limit: 10).items
            #expect(there.map(\.messageID) == [row.messageID] && there.map(\.peerUUID) == [after.uuid])
        }
    }

    @Test(
        "a store knows the machine it was used on",
        arguments: [
            ("3d1219c7c4c5404aaa1f6d2a48adfda4\n", [:], true), ("3d1219c7c4c5404aaa1f6d2a48adfda4", [:], true),
            ("uninitialized\n", [:], false), ("", [:], false), (nil, [:], false),
            ("3d1219c7c4c5404aaa1f6d2a48adfda4\n", ["container": "podman"], false),
        ] as [(String?, [String: String], Bool)])
    func machine(_ file: String?, _ environment: [String: String], isMarked: Bool) async throws {
        try await TemporaryFolder.with { folder in
            func mark(_ text: String?, _ environment: [String: String] = [:]) throws -> CopiedStateDetector {
                let name = text.map { "id-\($0.utf8.count)-\($0.prefix(4))" } ?? "none"
                if let text { try folder.write(text, to: name) }
                return CopiedStateDetector(path: "\(folder.path)/\(name)", environment: environment)
            }
            let store = try HexStore(path: "\(folder.path)/hexlist.sqlite")
            let here = try mark(file, environment)
            #expect((here.present != nil) == isMarked)
            #expect(here.present?.contains("3d1219c7") != true)  // the id itself is stored nowhere
            #expect(try await !here.isForeign(store))
            #expect(try await !here.isForeign(store))
            let elsewhere = try mark("00000000000000000000000000000001\n")
            #expect(try await elsewhere.isForeign(store) == isMarked)
            guard isMarked else { return try store.close() }
            #expect(try await elsewhere.isForeign(store))  // foreign until a user confirms the identity
            #expect(try await !here.isForeign(store))
            try await elsewhere.keep(store)
            #expect(try await !elsewhere.isForeign(store))
            #expect(try await here.isForeign(store))
            try store.close()
        }
    }
}
