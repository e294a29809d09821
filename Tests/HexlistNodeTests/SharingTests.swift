import Foundation
import HexlistAPI
import HexlistModel
import HexlistStore
import TestSupport
import Testing

@testable import HexlistNode

/// A hex shared between two persons: real TLS over loopback, real SQLite.
@Suite("Sharing", .serialized, .timeLimit(.minutes(5))) struct NodeSharingTests {
    private func add(_ title: String, links: Int, to node: TestNode) async throws -> Int64 {
        var hex = HexContent()
        hex.hexDescription = hex.add(title)
        for number in 0..<links {
            hex.links.append(
                LinkContent(url: hex.add("https://example.org/\(number)"), linkDescription: .empty, service: hex.add("Unknown")))
        }
        return try await node.node.store.addMine(hex, at: node.node.clocks.milliseconds)
    }

    private func titles(_ node: Node) async throws -> [String] {
        try await node.store.read { try $0.hexPage(HexFilter(location: .mine)).items.map { "\($0.description) \($0.linkCount)" } }.sorted()
    }

    private func hex(_ title: String, _ node: Node) async throws -> Int64 {
        try #require(try await node.store.read { try $0.hexPage(HexFilter(location: .mine)).items.first { $0.description == title } }).id
    }

    private func edit(_ hex: Int64, _ title: String, on node: Node) async throws {
        _ = try await node.store.editMine(hex, MineEdit(description: title), at: node.clocks.milliseconds)
    }

    private func events(_ type: EventType, of node: Node) async throws -> [EventRow] {
        try await node.store.read { try $0.eventPage(since: 1, limit: 10, of: [type]).items }
    }

    @Test("a hex is offered, joined, changed by both, made read-only, and ended") func sharing() async throws {
        try await withTwoNodes { ada, bob in
            _ = try await ada.node.peers.setTrust(bob.id, .trusted)
            _ = try await bob.node.peers.setTrust(ada.id, .trusted)
            let reading = try await add("Reading", links: 3, to: ada)
            _ = try await add("Private", links: 1, to: ada)
            let shared = try await ada.node.sharing.share(reading, with: [bob.id: .write])
            #expect(shared.hex == reading && shared.peers.map(\.uuid) == [bob.id])
            try await bob.until { try await $0.sharing.all().offers.count == 1 }
            let offer = try #require(try await bob.node.sharing.all().offers.first)
            #expect(offer.title == "Reading" && offer.links == 3 && offer.access.known == .write && offer.uuid == ada.id)
            #expect(try await titles(bob.node).isEmpty)  // nothing is fetched before the answer
            try await bob.until { try await events(.listOffered, of: $0).count == 1 }

            _ = try await bob.node.sharing.join(offer.number)
            try await bob.until { try await titles($0) == ["Reading 3"] }
            try await ada.until { try await $0.sharing.hex(reading).peers.map(\.state.known) == [.joined] }
            let copy = try await hex("Reading", bob.node)
            try await edit(copy, "Books", on: bob.node)
            try await ada.until { try await titles($0) == ["Books 3", "Private 1"] }
            let change = try #require(try await ada.node.store.read { try $0.mineChanges(limit: 1, before: nil) }.items.first)
            #expect(change.author == bob.id && change.hex == reading)
            try await edit(reading, "Papers", on: ada.node)
            try await bob.until { try await titles($0) == ["Papers 3"] }

            _ = try await ada.node.sharing.share(reading, with: [bob.id: .read])
            try await bob.until { try await $0.sharing.hex(copy).access.known == .read }
            await #expect(throws: HexlistError.self) { try await edit(copy, "Mine", on: bob.node) }
            _ = try await ada.node.sharing.share(reading, with: [bob.id: .none])
            try await bob.until { try await events(.listEnded, of: $0).count == 2 }
            try await edit(reading, "Secret", on: ada.node)
            #expect(try await titles(bob.node) == ["Papers 3"])
            #expect(try await bob.node.sharing.all().offers.isEmpty)
        }
    }

    @Test("a peer that is not trusted, and an own machine, cannot be members") func members() async throws {
        try await withTwoNodes { ada, bob in
            let reading = try await add("Reading", links: 1, to: ada)
            await #expect(throws: HexlistError.self) { try await ada.node.sharing.share(reading, with: [bob.id: .read]) }
            _ = try await ada.node.peers.setTrust(bob.id, .trusted)
            _ = try await ada.node.ownMachines.add(bob.id)
            await #expect(throws: HexlistError.self) { try await ada.node.sharing.share(reading, with: [bob.id: .read]) }
            await #expect(throws: HexlistError.self) { try await ada.node.sharing.hex(reading) }
        }
    }
}
