import TestSupport
import Foundation
import HexlistDiscovery
import HexlistModel
import HexlistStore
import Testing

@testable import HexlistNode

/// A trusted peer keeps the name it was trusted by, even if other peers use the same name.
@Suite("Names of peers over time", .timeLimit(.minutes(5)))
struct NamesTests {
    private func code(_ text: String, at node: TestNode) async throws -> HexlistError.Code? {
        do {
            _ = try await node.node.peers.resolve(text)
            return nil
        } catch let error as HexlistError {
            return error.code
        }
    }

    private func rename(_ node: TestNode, _ name: String) async {
        var configuration = await node.node.configuration
        configuration.name = name
        await node.node.reconfigure(configuration)
    }

    @Test(
        "the name a peer was trusted by finds it, whoever uses that name later; a name taken later finds no other peer, also after a restart"
    )
    func restart() async throws {
        let link = InMemoryLink()
        var one = try await TestNode("ada", on: link)
        let bob = try await TestNode("Bob", on: link)
        try await one.untilListed(bob)
        #expect(try await one.node.peers.resolve("bob").uuid == bob.id)
        #expect(await one.node.peers.labels(of: [bob.id])[bob.id]?.text() == "Bob \(bob.id.shortID) (stranger)")
        #expect(try await one.node.peers.setTrust(bob.id, .trusted).alias == "Bob")
        await rename(bob, "Robert")
        try await one.until { try await $0.peers.resolve("bob").name == "Robert" }
        try await one.until { node in try await node.store.read { try $0.peer(bob.id)?.name } == "Robert" }

        let (stranger, later) = (try await TestNode("BOB", on: link), try await TestNode("Robert", on: link))
        try await one.untilListed(stranger)
        try await one.untilListed(later)
        for isRestarted in [false, true] {
            if isRestarted {
                try await bob.stop()
                try await one.stop(removing: false)
                one = try await TestNode("ada", on: link, folder: one.folder)
                try await one.untilListed(stranger)
                try await one.untilListed(later)
            }
            let found = try await one.node.peers.resolve("Bob")
            #expect((found.uuid, found.trust, found.alias) == (bob.id, .trusted, "Bob"))
            #expect(try await code("robert", at: one) == .ambiguous)
            let labels = await one.node.peers.labels(of: [bob.id, stranger.id, one.id]).mapValues { $0.text() }
            #expect(labels == [bob.id: "Bob", stranger.id: "BOB \(stranger.id.shortID) (stranger)"])
        }
        // Two trusted peers with the same name have different aliases.
        #expect(try await one.node.peers.setTrust(stranger.id, .trusted).alias == "BOB \(stranger.id.shortID)")
        #expect(try await one.node.peers.setTrust(later.id, .trusted).alias == "Robert")
        #expect(try await one.node.peers.resolve("bob").uuid == bob.id)
        #expect(try await one.node.peers.resolve("ROBERT").uuid == later.id)
        for node in [one, stranger, later] { try await node.stop() }
    }

    @Test("blocked and formerly trusted peers are found by their old alias, and described correctly")
    func formerly() async throws {
        let link = InMemoryLink()
        let one = try await TestNode("ada", on: link)
        let (bob, other) = (try await TestNode("Bob", on: link), try await TestNode("bob", on: link))
        try await one.untilListed(bob)
        try await one.untilListed(other)
        #expect(try await code("bob", at: one) == .ambiguous)
        _ = try await one.node.peers.setTrust(bob.id, .trusted)
        #expect(try await one.node.peers.setTrust(bob.id, .blocked).alias == "Bob")
        #expect(try await one.node.peers.resolve("bob").uuid == bob.id)
        let error = await #expect(throws: HexlistError.self) { try await one.send(to: bob) }
        #expect(error?.message == "Bob is blocked here.")
        #expect(await one.node.peers.labels(of: [bob.id])[bob.id]?.text() == "Bob (blocked)")
        _ = try await one.node.peers.setTrust(bob.id, .stranger)
        #expect(try await one.node.peers.resolve("bob").uuid == bob.id)
        #expect(await one.node.peers.labels(of: [bob.id])[bob.id]?.text() == "Bob (stranger)")

        // An alias belongs to one peer, and is not a UUID.
        for alias in ["BOB", "b\u{200D}ob", "cafe", "x \(bob.id.shortID)", "x (trusted)"] {
            let refused = await #expect(throws: HexlistError.self) {
                try await one.node.peers.change(other.id, PeerChange(alias: .set(alias)))
            }
            #expect(refused?.code == .badRequest)
            #expect(refused?.hint?.contains("`hexlist peer rename ") == true, "\(refused?.hint ?? "")")
        }
        #expect(try await one.node.peers.change(bob.id, PeerChange(alias: .set("Bobby"))).alias == "Bobby")
        #expect(try await one.node.peers.change(other.id, PeerChange(alias: .set("bob"))).alias == "bob")
        try await one.node.peers.forget(bob.id)
        #expect(try await one.node.peers.resolve("bob").uuid == other.id)
        for node in [one, bob, other] { try await node.stop() }
    }

    @Test(
        "the name shown with the digits is the alias, even one invalid today, whatever name the peer uses meanwhile",
        arguments: ["Bob", ""])
    func shownName(name: String) async throws {
        let link = InMemoryLink()
        let (one, bob) = (try await TestNode("ada", on: link), try await TestNode(name, on: link))
        try await one.untilListed(bob)
        try await bob.untilListed(one)
        _ = await one.node.pairing.open()
        _ = try await bob.node.pairing.request(with: one.id)
        func digits(_ node: Node) async -> String? {
            if case .comparing(let digits)? = await node.pairing.overview().items.last?.stage { digits } else { nil }
        }
        try await one.until { await digits($0) != nil }
        try await bob.until { await digits($0) != nil }
        await rename(bob, "Carol")
        try await one.until { try await $0.peers.resolve(bob.id.description).name == "Carol" }
        #expect(await one.node.pairing.overview().items.last?.name == name)
        let shown = try #require(await digits(one.node))
        #expect(try await one.node.pairing.confirm(with: bob.id, digits: shown).name == name)
        _ = try await bob.node.pairing.confirm(with: one.id, digits: shown)
        try await one.until { try await $0.peers.resolve(bob.id.description).trust == .trusted }
        #expect(try await one.node.peers.resolve(bob.id.description).alias == (name.isEmpty ? "peer \(bob.id.shortID)" : name))
        let events = try await one.node.store.read { try $0.eventPage(since: 0, limit: 100).items }
        #expect(events.first { $0.type == .pairingRequested }?.data?.contains("\"name\":\"\(name)\"") == true)
        for node in [one, bob] { try await node.stop() }
    }

    @Test("a trusted peer was seen until its last session ended, also after a restart")
    func seen() async throws {
        let link = InMemoryLink()
        let (one, two) = try await nodesApart(on: link)
        let peer = try await one.node.peers.resolve(two.id.description)
        let seen = try #require(peer.lastSeen)
        // The time of the Hello is before that of the trust, which is before the end of the session.
        let trusted = try #require(
            try await one.node.store.read { try $0.eventPage(since: 0, limit: 100).items }.first { $0.type == .peerUp })
        try await one.until { node in try await node.store.read { try $0.peer(two.id)?.lastSeenAt ?? 0 } > trusted.at }
        let stored = try #require(try await one.node.store.read { try $0.peer(two.id) }?.lastSeenAt)
        try await one.stop(removing: false)
        let again = try await TestNode("one", on: link, folder: one.folder)
        let kept = try #require(try await again.node.peers.resolve(two.id.description).lastSeen?.milliseconds)
        #expect(abs(kept - stored) < 1_000 && kept >= seen.milliseconds)
        try await again.stop()
        try FileManager.default.removeItem(at: two.folder)
    }

    @Test("a peer trusted by pairing or roster gets an alias too")
    func others() async throws {
        try await withTwoNodes { one, two in
            _ = await two.node.pairing.open()
            _ = try await one.node.pairing.request(with: two.id)
            func digits(_ node: Node) async -> String? {
                if case .comparing(let digits)? = await node.pairing.overview().items.last?.stage { digits } else { nil }
            }
            try await one.until { await digits($0) != nil }
            try await two.until { await digits($0) != nil }
            let shown = try #require(await digits(one.node))
            // The name the user read counts, not a name the peer takes while the user reads.
            await rename(two, "Alice")
            try await one.until { try await $0.peers.resolve(two.id.description).name == "Alice" }
            _ = try await one.node.pairing.confirm(with: two.id, digits: shown)
            _ = try await two.node.pairing.confirm(with: one.id, digits: shown)
            try await one.until { try await $0.peers.resolve(two.id.description).trust == .trusted }
            #expect(try await one.node.peers.resolve("TWO").alias == "two")

            let keys = try [1, 2].map { try #require(Fingerprint(bytes: [UInt8](repeating: $0, count: 32))) }
            let entries = keys.map { RosterEntry(fingerprint: $0, name: "Two", trust: .trusted) }
            #expect(try await one.node.roster.add(entries) == [.changed, .changed])
            #expect(try await one.node.roster.add(entries) == [.unchanged, .unchanged])
            for key in keys {
                #expect(try await one.node.peers.resolve(key.peerID.description).alias == "Two \(key.peerID.shortID)")
            }
            #expect(try await one.node.peers.resolve("two").uuid == two.id)
        }
    }
}
