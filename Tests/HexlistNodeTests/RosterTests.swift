import TestSupport
import HexlistDiscovery
import HexlistModel
import HexlistStore
import HexlistTransport
import Testing

@testable import HexlistNode

@Suite("Roster", .timeLimit(.minutes(5)))
struct RosterTests {
    @Test("an imported key is trusted before the first contact, and found at its address")
    func beforeMeeting() async throws {
        let key = try Identity.ephemeral()
        let two = try await TestNode("two", on: nil, identity: key)
        let one = try await TestNode("one", on: nil)
        let place = RosterAddress(host: "127.0.0.1", port: await two.node.port)
        let entry = RosterEntry(fingerprint: key.fingerprint, name: "two", alias: "bob", trust: .trusted, addresses: [place])
        #expect(try await one.node.roster.add([entry]) == [.changed])
        #expect(try await one.node.roster.add([entry]) == [.unchanged])
        try await one.untilListed(two)
        let view = try await one.node.peers.resolve("bob")
        #expect((view.trust, view.fingerprint) == (.trusted, key.fingerprint))
        try await two.until { try await !$0.peers.all().isEmpty }
        #expect(try await two.send(to: one).state == .stored)
        #expect(try await one.node.roster.entries() == [entry])
        try await one.stop()
        try await two.stop()
    }

    @Test("an alias that is no longer valid is replaced by rule; its trust is imported")
    func oldAliases() async throws {
        let one = try await TestNode("one", on: nil)
        let keys = try [1, 2].map { try #require(Fingerprint(bytes: [UInt8](repeating: $0, count: 32))) }
        let entries = zip(keys, ["cafe", "Bob 7AF30000"]).map { RosterEntry(fingerprint: $0, name: "n", alias: $1, trust: .trusted) }
        #expect(try await one.node.roster.add(entries) == [.changed, .changed])
        #expect(try await one.node.roster.add(entries) == [.unchanged, .unchanged])
        for (key, alias) in zip(keys, ["cafe", "Bob 7AF30000"]) {
            let view = try await one.node.peers.resolve(key.peerID.description)
            #expect((view.alias, view.trust) == ("\(alias) \(key.peerID.shortID)", .trusted))
        }
        try await one.stop()
    }

    @Test("another key with an imported peer's UUID is not trusted")
    func anotherKey() async throws {
        let key = try Identity.ephemeral()
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link)
        // Another key with the same UUID, which is derived from the first half of the key's fingerprint.
        let other = try #require(Fingerprint(bytes: key.fingerprint.bytes.dropLast() + [key.fingerprint.bytes[31] ^ 1]))
        #expect(other.peerID == key.fingerprint.peerID)
        #expect(try await one.node.roster.add([RosterEntry(fingerprint: other, name: "two", trust: .trusted)]) == [.changed])
        let two = try await TestNode("two", on: link, identity: key)
        try await one.untilListed(two)
        try await two.untilListed(one)
        let view = try await one.node.peers.resolve(two.id.description)
        #expect((view.trust, view.fingerprint) == (.stranger, key.fingerprint))
        // The store admits no second key for a UUID.
        #expect(try await two.send(to: one).state == .queued)
        let counts = try await one.node.store.read { try $0.counts() }
        #expect((counts.held, counts.unread) == (0, 0))
        // The stored data of the first key is not overwritten.
        let real = RosterEntry(fingerprint: key.fingerprint, name: "two", trust: .trusted)
        #expect(try await one.node.roster.add([real]) == [.anotherKey])
        try await one.stop()
        try await two.stop()
    }

    @Test("imported trust accepts held hexes, a block refuses them, and `stranger` changes neither")
    func openSessions() async throws {
        try await withTwoNodes { one, two in
            let key = two.node.identity.fingerprint
            #expect(try await two.send(to: one).state == .held)
            let other = try #require(Fingerprint(bytes: key.bytes.dropLast() + [key.bytes[31] ^ 1]))
            #expect(try await one.node.roster.add([RosterEntry(fingerprint: other, name: "", trust: .trusted)]) == [.anotherKey])
            #expect(try await one.node.roster.add([RosterEntry(fingerprint: key, name: "", trust: .stranger)]) == [.unchanged])
            #expect(try await one.node.roster.add([RosterEntry(fingerprint: key, name: "", trust: .trusted)]) == [.changed])
            let counts = try await one.node.store.read { try $0.counts() }
            #expect((counts.held, counts.unread) == (0, 1))
            #expect(try await two.send(to: one).state == .stored)
            #expect(try await one.node.roster.add([RosterEntry(fingerprint: key, name: "", trust: .stranger)]) == [.unchanged])
            #expect(try await one.node.peers.resolve(two.id.description).trust == .trusted)
            #expect(try await one.node.roster.add([RosterEntry(fingerprint: key, name: "", trust: .blocked)]) == [.changed])
            #expect(try await two.send(to: one).state == .rejected)
        }
    }
}
