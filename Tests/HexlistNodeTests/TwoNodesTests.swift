import TestSupport
import Foundation
import HexlistDiscovery
import HexlistModel
import HexlistTransport
import Testing

@testable import HexlistDelivery
@testable import HexlistNode
@testable import HexlistStore

@Suite("Two nodes over loopback", .serialized, .timeLimit(.minutes(5)))
struct TwoNodesTests {
    @Test("each lists exactly the other, regardless of interfaces and IP versions")
    func discovery() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            let (here, there) = (try await one.verified(), try await two.verified())
            #expect(here == [two.id])
            #expect(there == [one.id])
        }
    }

    @Test("a stranger's hex is held, trust moves it to the inbox, and a trusted peer's goes there directly")
    func trust() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            #expect(try await one.send(to: two, description: "first").state == .held)
            #expect(try await two.node.store.read { try $0.counts() }.held == 1)

            #expect(try await two.node.peers.setTrust(one.id, .trusted).trust == .trusted)
            let counts = try await two.node.store.read { try $0.counts() }
            #expect(counts.held == 0)
            #expect(counts.unread == 1)
            #expect(try await one.send(to: two, description: "second").state == .stored)
            #expect(try await two.send(to: one, description: "back").state == .held)
        }
    }

    @Test("a reused key is one hex, however often it is sent")
    func key() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            let first = try await one.send(to: two, key: "k")
            let again = try await one.send(to: two, key: "k")
            #expect(first.messageID == again.messageID)
            #expect(again.state == .stored)
            #expect(try await two.node.store.read { try $0.counts() }.inbox == 1)
            await #expect { try await one.send(to: two, description: "other", key: "k") } throws: {
                ($0 as? HexlistError)?.code == .keyConflict
            }
        }
    }

    @Test("a blocked peer is notified, and rows queued for it are rejected")
    func blocked() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await two.node.peers.setTrust(one.id, .blocked)
            try await one.until { node in
                try await node.store.read { try $0.eventPage(since: 0, limit: 100).items }
                    .contains { $0.type == .alertReceived && $0.data?.contains("two blocked you.") == true }
            }
            await #expect { try await two.send(to: one) } throws: { ($0 as? HexlistError)?.code == .badRequest }
            // The alert is repeated on each session and recorded once.
            for _ in 1...3 {
                #expect(try await one.node.dials(two.id))
                try await eventually { await one.node.hasNoSession }
            }
            try await one.node.store.write { _ in }
            let alerts = try await one.node.store.read { try $0.eventPage(since: 0, limit: 100).items }.filter { $0.type == .alertReceived }
            #expect(alerts.count == 1)
        }
    }

    @Test("a stopped peer is away at once; queued hexes arrive in order when it returns")
    func away() async throws {
        let link = InMemoryLink()
        let (one, two) = try await nodesApart(on: link)

        var rows: [Int64] = []
        for number in 1...5 {
            let outcome = try await one.send(to: two, description: "hex \(number)")
            #expect(outcome.state == .queued)
            rows.append(outcome.outboxID)
        }
        #expect(try await one.node.outbox.row(rows[0]).waitingFor?.known == .peer)
        // The row waits for the peer, not for the end of the pause after the failed transfer: the next attempt is made when the peer
        // returns.
        await one.node.pause(for: two.id)
        let waiting = try await one.node.outbox.row(rows[0])
        #expect(waiting.waitingFor?.known == .peer && waiting.nextAttemptAt == nil)

        let back = try await TestNode("two", on: link, folder: two.folder)
        try await one.untilListed(back)
        #expect(try await one.ends(of: rows) == Array(repeating: .stored, count: 5))
        let page = try await back.node.store.read { try $0.hexPage(HexFilter(location: .inbox), limit: 20, after: nil) }
        #expect(page.items.map(\.description) == (1...5).reversed().map { "hex \($0)" })
        try await one.stop()
        try await back.stop()
    }

    @Test("many hexes arrive in order, once each, through window and back-pressure")
    func many() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            var rows: [Int64] = []
            for number in 1...3_000 {
                var hex = HexContent()
                hex.hexDescription = hex.add("\(number)")
                rows += try await one.node.outbox.send(SendRequest(content: .hex(hex), peers: [two.id])).map(\.outboxID)
            }
            let ends = Dictionary(grouping: try await one.ends(of: rows), by: \.self).mapValues(\.count)
            #expect(ends == [.stored: 3_000])
            #expect(try await two.node.store.read { try $0.counts() }.inbox == 3_000)
            let page = try await two.node.store.read { try $0.hexPage(HexFilter(location: .inbox), limit: 3_000, after: nil) }
            #expect(page.items.map(\.description) == (1...3_000).reversed().map { "\($0)" })
        }
    }

    @Test("static peers need no discovery")
    func staticPeers() async throws {
        let one = try await TestNode("one", on: nil)
        let port = await one.node.status().port
        let two = try await TestNode("two", on: nil) { $0.peers = [StaticPeer(host: "127.0.0.1", port: port)] }
        try await two.untilListed(one)
        try await one.untilListed(two)
        try await one.stop()
        try await two.stop()
    }

    @Test("a name change is announced on the open session")
    func rename() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            var configuration = await two.node.configuration
            configuration.name = "zwei"
            await two.node.reconfigure(configuration)
            try await one.until { try await $0.peers.all().contains { $0.uuid == two.id && $0.name == "zwei" } }
        }
    }

    @Test("sends to oneself and to unknown peers are refused")
    func wrongTargets() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            await #expect { try await one.send(to: one) } throws: { ($0 as? HexlistError)?.code == .badRequest }
            await #expect { try await one.node.peers.resolve("nobody") } throws: { ($0 as? HexlistError)?.code == .notFound }
            #expect(try await one.node.peers.resolve("two").uuid == two.id)
            #expect(try await one.node.peers.resolve(String(two.id.description.prefix(6))).uuid == two.id)
        }
    }
}

extension Node {
    fileprivate var hasNoSession: Bool { sessions.values.isEmpty }

    /// Pauses the delivery, as after a failed transfer.
    fileprivate func pause(for peer: PeerID) {
        deliver { deliveries, _ in deliveries.link(to: peer).delivery.pause(until: .now + .seconds(300)) }
    }
}
