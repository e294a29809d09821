import HexlistDiscovery
import HexlistModel
import HexlistTransport
import TestSupport
import Testing

@testable import HexlistNode

@Suite("A node that hides (announce: false)", .serialized, .timeLimit(.minutes(5)))
struct HidingTests {
    @Test("a hidden node finds a trusted peer by announcement and exchanges hexes; the peer sees no announcement of the node")
    func trusted() async throws {
        let link = InMemoryLink()
        let (one, two) = try await trustingNodes(on: link)
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        try await one.stop(removing: false)
        try await two.until { try await $0.peers.all().allSatisfy { $0.state != .verified } }

        let hidden = try await TestNode("one", on: link, folder: one.folder) { $0.announce = false }
        try await hidden.untilListed(two)
        try await two.untilListed(hidden)
        #expect(try await !two.node.isAnnounced(one.id))
        #expect(try await hidden.send(to: two).state == .stored)
        #expect(try await two.send(to: hidden).state == .stored)
        #expect(await hidden.node.status().isAnnounced == false)
        try await hidden.stop()
        try await two.stop()
    }

    @Test("a stranger's announcement is unverified and not dialled; the stranger's dial is refused before the Hello")
    func stranger() async throws {
        let link = InMemoryLink()
        let hidden = try await TestNode("hidden name", on: link) { $0.announce = false }
        let port = await hidden.node.port
        let two = try await TestNode("two", on: link) { $0.peers = [StaticPeer(host: "127.0.0.1", port: port)] }
        // Results of configured addresses cause no event for subscribers.
        try await eventually("the session is ended as idle") {
            try await two.node.peers.all().contains { $0.why?.contains("ends the session (idle)") == true }
        }
        #expect(try await two.node.peers.all().allSatisfy { $0.name != "hidden name" && $0.state != .verified })
        try await hidden.until { try await $0.peers.all().contains { $0.uuid == two.id && $0.reason == "unverified" } }
        for node in [hidden.node, two.node] { #expect(await !node.hasSessions) }
        try await hidden.stop()
        try await two.stop()
    }

    @Test("while pairing is on a stranger may connect, and is disconnected when pairing ends")
    func pairing() async throws {
        let link = InMemoryLink()
        let hidden = try await TestNode("hidden", on: link) { $0.announce = false }
        let port = await hidden.node.port
        _ = await hidden.node.pairing.open()
        let two = try await TestNode("two", on: link) { $0.peers = [StaticPeer(host: "127.0.0.1", port: port)] }
        try await two.untilListed(hidden)
        #expect(await hidden.node.hasSessions)
        _ = await hidden.node.pairing.close()
        try await hidden.until { await !$0.hasSessions }
        try await hidden.stop()
        try await two.stop()
    }

    @Test("a peer that paired meanwhile stays, on the same session")
    func paired() async throws {
        let link = InMemoryLink()
        let hidden = try await TestNode("hidden", on: link) { $0.announce = false }
        let port = await hidden.node.port
        _ = await hidden.node.pairing.open()
        let two = try await TestNode("two", on: link) { $0.peers = [StaticPeer(host: "127.0.0.1", port: port)] }
        try await two.untilListed(hidden)
        try await hidden.untilListed(two)
        let before = await hidden.node.connections(with: two.id)
        _ = try await two.node.pairing.request(with: hidden.id)
        try await answer(hidden, two)
        #expect(await hidden.node.connections(with: two.id) == before && before.count == 1)
        #expect(try await two.send(to: hidden).state == .stored)
        try await hidden.stop()
        try await two.stop()
    }

    /// Confirms the digits for both users. Returns once the nodes trust each other.
    private func answer(_ one: TestNode, _ two: TestNode) async throws {
        for (node, other) in [(one, two), (two, one)] {
            var digits: String?
            try await node.until { node in
                if case .comparing(let shown)? = await node.pairing.overview().items.last(where: { $0.peer == other.id })?.stage {
                    digits = shown
                }
                return digits != nil
            }
            _ = try await node.node.pairing.confirm(with: other.id, digits: digits ?? "")
        }
        for (node, other) in [(one, two), (two, one)] {
            try await node.until {
                try await $0.peers.all().contains { $0.uuid == other.id && $0.trust == .trusted && $0.state == .verified }
            }
        }
    }

    @Test("a peer that a person asks to pair is dialled at its announcement, and the two pair")
    func pairPeer() async throws {
        let link = InMemoryLink()
        let two = try await TestNode("two", on: link)
        let hidden = try await TestNode("hidden", on: link) { $0.announce = false }
        try await hidden.until { try await $0.peers.all().contains { $0.uuid == two.id && $0.reason == "unverified" } }
        _ = await two.node.pairing.open()
        #expect(try await hidden.node.pairing.resolve(two.id.shortID) == two.id)
        _ = try await hidden.node.pairing.request(with: two.id)
        try await answer(hidden, two)
        #expect(try await two.send(to: hidden).state == .stored)
        try await hidden.stop()
        try await two.stop()
    }

    @Test("hiding takes effect at runtime: the announcement and strangers' sessions end, trusted ones stay; and back")
    func live() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            var configuration = await one.node.configuration
            configuration.announce = false
            await one.node.reconfigure(configuration)
            try await one.until { await !$0.hasSessions }
            try await one.until { try await $0.peers.all().contains { $0.uuid == two.id && $0.state == .away } }
            try await two.until { try await !$0.isAnnounced(one.id) }
            configuration.announce = true
            await one.node.reconfigure(configuration)
            try await one.untilListed(two)
            try await two.untilListed(one)
            _ = try await one.node.peers.setTrust(two.id, .trusted)
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            configuration.announce = false
            await one.node.reconfigure(configuration)
            #expect(try await two.send(to: one).state == .stored)
        }
    }

    @Test("doctor's test of a stranger opens a session, which stays")
    func doctor() async throws {
        let link = InMemoryLink()
        let two = try await TestNode("two", on: link)
        let hidden = try await TestNode("hidden", on: link) { $0.announce = false }
        try await hidden.until { try await $0.peers.all().contains { $0.uuid == two.id && $0.reason == "unverified" } }
        guard
            case .success = await hidden.node.diagnostics.openSession(
                with: two.id, at: "127.0.0.1", port: await two.node.port, interface: nil)
        else {
            Issue.record("not greeted")
            return
        }
        #expect(await hidden.node.hasSessions)
        try await two.until { try await $0.peers.all().contains { $0.uuid == hidden.id && $0.state == .verified } }
        // The hidden node accepts no hex from a stranger, regardless of `receiveFrom`.
        #expect(try await two.send(to: hidden, wait: .seconds(2)).message?.hasPrefix("notAccepting") == true)
        try await hidden.stop()
        try await two.stop()
    }
}

extension Node {
    fileprivate func connections(with peer: PeerID) -> [ObjectIdentifier] { links[peer]?.sessions.map { ObjectIdentifier($0) } ?? [] }

    fileprivate var hasSessions: Bool { links.values.contains { !$0.sessions.isEmpty } }

    /// Whether this node sees an announcement of the peer.
    fileprivate func isAnnounced(_ peer: PeerID) async throws -> Bool {
        try await peers.all().contains { $0.uuid == peer && $0.endpoints.contains { $0.via == "mdns" } }
    }
}
