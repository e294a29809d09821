import TestSupport
import HexlistDiscovery
import HexlistModel
import HexlistTransport
import HexlistWire
import Logging
import NIOCore
import Testing

@testable import HexlistDelivery
@testable import HexlistNode
@testable import HexlistStore

extension Node {
    var linkCount: Int { links.count }
    var sessionCount: Int { sessions.values.count }
    func setSlots(_ slots: SendSlots) { deliver { deliveries, _ in deliveries.slots = slots } }
    var fingerprintCount: Int { registry.keys.count }
    var isWaitingToDrain: Bool { deliver { deliveries, _ in deliveries.isWaitingToDrain } }
}

@Suite("Delivery faults", .serialized, .timeLimit(.minutes(5)))
struct DeliveryFaultTests {
    private static func descriptions(_ node: TestNode) async throws -> [String] {
        try await node.node.store.read { try $0.hexPage(HexFilter(location: .inbox), limit: 1_000, after: nil) }.items.map(\.description)
            .reversed()
    }

    @Test("if a key is reused after its row was cancelled, the row is delivered although the session has passed it")
    func requeuedKey() async throws {
        let link = InMemoryLink()
        let (one, two) = try await nodesApart(on: link)
        let first = try await one.send(to: two, description: "taken back", key: "k")
        _ = try await one.node.outbox.cancel(first.outboxID)

        let back = try await TestNode("two", on: link, folder: two.folder)
        try await one.untilListed(back)
        #expect(try await one.send(to: back, description: "between").state == .stored)
        #expect(try await one.send(to: back, description: "taken back", key: "k").state == .stored)
        #expect(try await Self.descriptions(back) == ["between", "taken back"])
        try await one.stop()
        try await back.stop()
    }

    @Test("a peer that left without queued rows is forgotten; one with rows is not")
    func linksAreForgotten() async throws {
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link)
        let two = try await TestNode("two", on: link)
        try await one.untilListed(two)
        #expect(try await one.send(to: two).state == .held)
        #expect(await one.node.linkCount == 1)
        try await two.stop(removing: false)
        try await eventually { await one.node.linkCount == 0 }

        let back = try await TestNode("two", on: link, folder: two.folder)
        try await one.untilListed(back)
        #expect(try await one.send(to: back, description: "back").state == .held)
        try await one.stop()
        try await back.stop()
    }

    @Test("receipts whose commit fails are requested again, and the hex is stored once")
    func unwrittenReceipts() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            try await one.node.store.write {
                _ = try $0.run(
                    """
                    CREATE TRIGGER broken BEFORE UPDATE OF state ON outbox WHEN NEW.state = 'stored'
                    BEGIN SELECT RAISE(ABORT, 'broken'); END
                    """)
            }
            // The waiting caller is notified by the receipt: the peer has the hex.
            let stuck = try await one.send(to: two, description: "a", wait: .milliseconds(500))
            #expect(stuck.state == .stored)
            try await eventually { try await two.node.store.read { try $0.counts() }.inbox == 1 }
            let row = try await one.node.outbox.row(stuck.outboxID)
            #expect(row.state == .queued || row.state == .sending)
            try await one.node.store.write { _ = try $0.run("DROP TRIGGER broken") }
            // The row is delivered without a retry by the user.
            #expect(try await one.ends(of: [stuck.outboxID]) == [.stored])
            #expect(try await one.send(to: two, description: "b").state == .stored)
            #expect(try await Self.descriptions(two) == ["a", "b"])
        }
    }

    @Test("with one slot for two peers, they alternate in shares of 8 MiB, and each gets everything in order")
    func oneTurnForTwo() async throws {
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link) { $0.send.concurrentTransfers = 1 }
        let two = try await TestNode("two", on: link)
        let three = try await TestNode("three", on: link)
        for other in [two, three] {
            try await one.untilListed(other)
            try await other.untilListed(one)
            _ = try await other.node.peers.setTrust(one.id, .trusted)
        }
        var rows: [Int64] = []
        for number in 1...14 {
            var hex = HexContent()
            hex.hexDescription = hex.add("\(number)")
            for _ in 0..<14 {
                let url = hex.add("https://example.org/" + String(repeating: "x", count: 60_000))
                hex.links.append(LinkContent(url: url, linkDescription: .empty, service: hex.add("Unknown")))
            }
            rows += try await one.node.outbox.send(SendRequest(content: .hex(hex), peers: [two.id, three.id])).map(\.outboxID)
        }
        #expect(try await one.ends(of: rows).allSatisfy { $0 == .stored })
        for other in [two, three] { #expect(try await Self.descriptions(other) == (1...14).map { "\($0)" }) }
        for node in [one, two, three] { try await node.stop() }
    }

    // MARK: A peer of raw frames

    /// A peer that has only a key and a connection.
    private final class Stranger: PeerConnectionDelegate, @unchecked Sendable {
        func received(frame: [UInt8], on connection: PeerConnection) {}
        func readCompleted(on connection: PeerConnection) {}
        func frameFault(_ length: UInt32, on connection: PeerConnection) {}
        func writabilityChanged(on connection: PeerConnection) {}
        func closed(on connection: PeerConnection, error: (any Error)?) {}
    }

    @Test("a stranger that sends more than is read at once and leaves: frames before its end count, and its session ends")
    func endWhileReadingIsPaused() async throws {
        let one = try await TestNode("one", on: nil) {
            $0.limits.heldHexesPerPeer = 1_000
            $0.limits.heldHexes = 1_000  // the hexes of one address may be a quarter of this
        }
        let identity = try Identity.ephemeral()
        let transport = try PeerTransport(identity: identity, eventLoop: one.group.next(), logger: Logger(label: "stranger"))
        let port = UInt16(await one.node.status().port)
        let report = try await transport.dial([DialTarget(host: "127.0.0.1", port: port)], expecting: one.id).report.get()
        let connection = try #require(report.connection)
        let count = 60
        try await connection.eventLoop.submit {
            connection.delegate = Stranger()
            connection.write { WrapperEncoder.hello(Hello(uuid: identity.peerID, name: "s", boot: BootNonce(7)), into: &$0) }
            for number in 1...count {
                connection.write {
                    WrapperEncoder.store(
                        hexJSON: Array(#"{"hexDescription":"\#(number)"}"#.utf8),
                        messageID: MessageID(UUIDBytes(high: UInt64(number), low: 9)),
                        sequence: Int64(number), into: &$0)
                }
            }
            connection.close()
        }.get()
        // The node reads 20 frames a second from a stranger, so the stranger disconnects long before all frames are read.
        try await eventually { try await one.node.store.read { try $0.counts() }.held == count }
        try await eventually { await one.node.sessionCount == 0 }
        await transport.shutdown()
        try await one.stop()
    }
}
