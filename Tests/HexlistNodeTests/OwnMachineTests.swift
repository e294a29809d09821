import Foundation
import HexlistLists
import HexlistModel
import HexlistStore
import TestSupport
import Testing

@testable import HexlistNode

/// My Hexlist on two machines of one user: real TLS over loopback, real SQLite.
@Suite("Own machines", .serialized, .timeLimit(.minutes(5))) struct OwnMachineTests {
    private func add(_ title: String, links: Int = 1, to node: TestNode) async throws {
        var hex = HexContent()
        hex.hexDescription = hex.add(title)
        for number in 0..<links {
            hex.links.append(
                LinkContent(url: hex.add("https://example.org/\(number)"), linkDescription: .empty, service: hex.add("Unknown")))
        }
        _ = try await node.node.store.addMine(hex, at: node.node.clocks.milliseconds)
    }

    /// The titles of the hexes at the top level, each with its number of links.
    private func titles(_ node: Node) async throws -> [String] {
        try await node.store.read { try $0.hexPage(HexFilter(location: .mine)).items.map { "\($0.description) \($0.linkCount)" } }.sorted()
    }

    private func makeOwn(_ one: TestNode, _ two: TestNode) async throws {
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        _ = try await one.node.store.addOwnMachine(two.id, at: one.node.clocks.milliseconds)
    }

    private func events(_ type: EventType, of node: Node) async throws -> [EventRow] {
        try await node.store.read { try $0.eventPage(since: 1, limit: 10, of: [type]).items }
    }

    private func backups(of node: TestNode) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: node.folder.path).filter { $0.hasPrefix("before-join-") }
    }

    @Test("two collections become one, and later changes arrive") func exchange() async throws {
        try await withTwoNodes { one, two in
            try await add("Reading", links: 3, to: one)
            try await add("Reading", links: 4, to: two)
            try await add("Only two", to: two)
            try await makeOwn(one, two)
            try await makeOwn(two, one)
            for node in [one, two] { try await node.until { try await titles($0) == ["Only two 1", "Reading 4"] } }
            let files = try (backups(of: one) + backups(of: two))
            #expect(files.count == 2)  // each machine writes its hexes before the merge
            try await add("Later", links: 150, to: one)
            try await two.until { try await titles($0) == ["Later 150", "Only two 1", "Reading 4"] }
            let later = try await two.node.store.read { try $0.hexPage(HexFilter(location: .mine)).items.first { $0.linkCount == 150 } }
            _ = try await two.node.store.change([#require(later).id], .delete, at: two.node.clocks.milliseconds)
            try await one.until { try await titles($0) == ["Only two 1", "Reading 4"] }
            try await one.until { try await events(.listDeleted, of: $0).count == 1 }
            let deletion = try #require(try await events(.listDeleted, of: one.node).first)
            let change = try #require(try await one.node.store.read { try $0.mineChanges(limit: 1, before: nil) }.items.first)
            #expect(change.author == two.id && change.links.deleted == 150)
            #expect(deletion.peer == two.id && deletion.data == #"{"changes":"\#(change.number)","links":"150","of":"155"}"#)
            #expect(try await events(.listChanged, of: one.node).count <= 1)  // further ones follow after a minute
            _ = try await one.node.store.undoMine([change.number], at: one.node.clocks.milliseconds)
            try await two.until { try await titles($0) == ["Later 150", "Only two 1", "Reading 4"] }
        }
    }

    @Test("nothing is exchanged unless both users added the other machine") func unconfirmed() async throws {
        try await withTwoNodes { one, two in
            try await add("One", to: one)
            try await makeOwn(one, two)
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            try await one.until { await $0.listStatus(of: two.id) == .unconfirmed }
            #expect(try await titles(two.node).isEmpty)
            try await makeOwn(two, one)
            try await two.until { try await titles($0) == ["One 1"] }
            try await one.until { await $0.listStatus(of: two.id) == .received }

            _ = try await one.node.store.removeOwnMachine(two.id)
            try await add("Two", to: two)
            try await two.until { await $0.listStatus(of: one.id) == .unconfirmed }
            #expect(try await titles(one.node) == ["One 1"])
        }
    }

    @Test("changes of a time without connection arrive afterwards") func apart() async throws {
        let link = InMemoryLink()
        let (one, first) = try await trustingNodes(on: link)
        try await makeOwn(one, first)
        try await makeOwn(first, one)
        try await add("Before", to: one)
        try await first.until { try await titles($0) == ["Before 1"] }
        try await first.stop(removing: false)
        try await add("Meanwhile", to: one)
        let two = try await TestNode("two", on: link, folder: first.folder)
        try await two.until { try await titles($0) == ["Before 1", "Meanwhile 1"] }
        try await add("Back", to: two)
        try await one.until { try await titles($0) == ["Back 1", "Before 1", "Meanwhile 1"] }
        try await one.stop()
        try await two.stop()
    }
}

extension Node {
    /// The status of the exchange with an own machine; `nil` if there is no session with it, or no answer yet.
    fileprivate func listStatus(of peer: PeerID) -> ListExchange.Status? { lists.status(of: peer) }
}
