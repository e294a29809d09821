import Crypto
import HexlistEnvelope
import HexlistModel
import HexlistStore
import HexlistWire
import TestSupport
import Testing

@testable import HexlistNode

@Suite("Cards of peers", .timeLimit(.minutes(5))) struct CardExchangeTests {
    private static func card(_ node: TestNode, of other: TestNode) async throws -> PeerCard? {
        try await node.node.store.read { [id = other.id] in try $0.peer(id)?.card }
    }

    @Test("peers that trust each other have each other's card, in either order; an end of trust removes it") func exchange() async throws {
        try await withTwoNodes { one, two in
            _ = try await one.node.peers.setTrust(two.id, .trusted)
            // The card arrives with the next Hello of one, but two does not trust one.
            try await eventually { await Self.hello(two, of: one)?.card != nil }
            #expect(try await Self.card(two, of: one) == nil)
            #expect(try await Self.card(one, of: two) == nil)
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            try await eventually { try await Self.card(one, of: two)?.bytes == two.node.envelopes.card.bytes }
            try await eventually { try await Self.card(two, of: one)?.bytes == one.node.envelopes.card.bytes }
            _ = try await one.node.peers.setTrust(two.id, .stranger)
            #expect(try await Self.card(one, of: two) == nil)
        }
    }

    private static func hello(_ node: TestNode, of other: TestNode) async -> Hello? {
        await node.node.perform { node in node.sessions(with: other.id).first?.machine.peerHello }
    }

    @Test("only a newer card of the same trusted key replaces a card") func serials() async throws {
        let one = try await TestNode("one", on: nil)
        let (key, other) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        func card(_ key: P256.Signing.PrivateKey, _ serial: UInt32) throws -> Card {
            try Card(of: IdentitySigner(key), sealingKey: SealingPrivateKey(seed: Array(repeating: 1, count: 32)), serial: serial)
        }
        let (old, new) = (try card(key, 1), try card(key, 2))
        let peer = old.fingerprint.peerID
        func stored() async throws -> UInt32? { try await one.node.store.read { try $0.peer(peer)?.card?.serial } }
        func remember(_ card: Card, as fingerprint: Fingerprint? = nil) async throws {
            await one.node.perform { $0.registry.rememberCard(card.base64, of: fingerprint ?? card.fingerprint, $0) }
            // Writes are committed in order: after this one, the card is stored too.
            try await one.node.store.setMeta(["test": nil])
            await one.node.perform { await $0.registry.reload($0) }
        }
        try await remember(old)
        #expect(try await stored() == nil, "a stranger")
        #expect(
            try await one.node.roster.add([RosterEntry(fingerprint: old.fingerprint, name: "n", trust: .trusted)]) == [.changed])
        var forged = new.bytes
        forged[1_378] ^= 1
        if let forged = Card(bytes: forged) { try await remember(forged) }
        try await remember(try card(other, 3), as: old.fingerprint)
        #expect(try await stored() == nil, "an invalid signature, and another key")
        try await remember(old)
        #expect(try await stored() == 1)
        try await remember(new)
        try await remember(old)
        #expect(try await stored() == 2)
        let entry = try #require(try await one.node.roster.entries().first)
        #expect(entry.card == PeerCard(bytes: new.bytes, serial: 2))
        #expect(try await one.node.roster.add([entry]) == [.unchanged])
        _ = try await one.node.peers.setTrust(peer, .blocked)
        #expect(try await stored() == nil)
        #expect(try await one.node.roster.add([entry]) == [.changed])
        #expect(try await stored() == 2, "imported")
        try await one.node.peers.forget(peer)
        #expect(try await stored() == nil)
        try await one.stop()
    }
}
