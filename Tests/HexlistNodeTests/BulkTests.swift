import TestSupport
import HexlistAPI
import HexlistDelivery
import HexlistDiscovery
import HexlistModel
import Synchronization
import Testing

@testable import HexlistNode
@testable import HexlistStore

@Suite("Bulk sends between two nodes", .serialized, .timeLimit(.minutes(5)))
struct BulkTests {
    static func hexes(_ lines: ClosedRange<Int>, from node: TestNode, key: String? = nil, text: String = "hex") async throws
        -> [PreparedHexes]
    {
        var preparer = try await node.node.outbox.preparer()
        var hexes = PreparedHexes()
        for line in lines {
            var hex = HexContent()
            hex.hexDescription = hex.add("\(text) \(line)")
            try preparer.prepare(hex, key: key.map { "\($0)\(line)" }, line: line, at: Timestamp.now.milliseconds, into: &hexes)
        }
        return [hexes]
    }

    /// Waits for the end of a bulk send, as the local API does.
    static func untilOver(_ bulk: OutgoingSend, on node: TestNode, timeout: Double = 20) async throws -> SendCounts {
        try await node.until { await $0.outbox.isOver(bulk, timeout: timeout) }
        return try await node.node.outbox.summary(of: bulk)
    }

    static func inbox(of node: TestNode) async throws -> [String] {
        var descriptions: [String] = []
        var cursor: HexCursor?
        repeat {
            let page = try await node.node.store.read { [cursor] in try $0.hexPage(HexFilter(location: .inbox), limit: 1_000, after: cursor)
            }
            descriptions += page.items.map { $0.description }
            cursor = page.next
        } while cursor != nil
        return descriptions.reversed()
    }

    @Test("many batches arrive in order, once each, and are counted")
    func order() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            let changes = Mutex(0)
            let bulk = try await one.node.outbox.beginBulk(to: [two.id], force: false) { changes.withLock { $0 += 1 } }
            await one.node.outbox.follow(bulk)
            for start in stride(from: 1, through: 3_000, by: 250) {
                let (refused, _) = try await one.node.outbox.enqueue(Self.hexes(start...start + 249, from: one), for: bulk, timeout: 5)
                #expect(refused.isEmpty)
            }
            let counts = try await Self.untilOver(bulk, on: one)
            #expect(counts.stored == 3_000)
            #expect(counts.accepted == 3_000)
            let progress = await one.node.outbox.progress(of: bulk)
            #expect(progress == counts)
            #expect(changes.withLock { $0 } > 0)
            let inbox = try await Self.inbox(of: two)
            #expect(inbox == (1...3_000).map { "hex \($0)" })
            await one.node.outbox.unfollow(bulk)
        }
    }

    @Test("single sends during a bulk are delivered, also several at once")
    func amongOthers() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for stream in 0..<2 {
                    group.addTask {
                        let bulk = try await one.node.outbox.beginBulk(to: [two.id], force: false) {}
                        await one.node.outbox.follow(bulk)
                        for start in stride(from: 1, through: 600, by: 20) {
                            let hexes = try await Self.hexes(start...start + 19, from: one, text: "stream \(stream)")
                            _ = await one.node.outbox.enqueue(hexes, for: bulk, timeout: 5)
                        }
                        let counts = try await Self.untilOver(bulk, on: one)
                        #expect(counts.stored == 600)
                    }
                }
                for number in 0..<4 {
                    group.addTask {
                        for send in 0..<50 {
                            let outcome = try await one.send(to: two, description: "single \(number) \(send)")
                            #expect(outcome.state == .stored)
                        }
                    }
                }
                try await group.waitForAll()
            }
            let inbox = try await Self.inbox(of: two)
            #expect(inbox.count == 1_400)
            for stream in 0..<2 {
                #expect(inbox.filter { $0.hasPrefix("stream \(stream)") } == (1...600).map { "stream \(stream) \($0)" })
            }
            for number in 0..<4 {
                #expect(inbox.filter { $0.hasPrefix("single \(number)") } == (0..<50).map { "single \(number) \($0)" })
            }
        }
    }

    @Test("at the outbox bound a bulk waits for deliveries, then continues in order")
    func bound() async throws {
        let link = InMemoryLink()
        let (one, two) = try await trustingNodes(on: link) { $0.outbox.rows = 60 }
        let bulk = try await one.node.outbox.beginBulk(to: [two.id], force: false) {}
        await one.node.outbox.follow(bulk)
        let (refused, _) = try await one.node.outbox.enqueue(Self.hexes(1...1_000, from: one), for: bulk, timeout: 20)
        #expect(refused.isEmpty)
        let counts = try await Self.untilOver(bulk, on: one)
        #expect(counts.stored == 1_000)
        let inbox = try await Self.inbox(of: two)
        #expect(inbox == (1...1_000).map { "hex \($0)" })
        try await one.stop()
        try await two.stop()
    }

    @Test("at the bound without deliveries a bulk is refused; accepted hexes stay")
    func nothingDrains() async throws {
        let link = InMemoryLink()
        let (one, two) = try await nodesApart(on: link) { $0.outbox.rows = 60 }
        let bulk = try await one.node.outbox.beginBulk(to: [two.id], force: false) {}
        await one.node.outbox.follow(bulk)
        let (_, failure) = try await one.node.outbox.enqueue(Self.hexes(1...100, from: one), for: bulk, timeout: 0.1)
        #expect(failure?.code == .outboxFull)
        let counts = try await one.node.outbox.summary(of: bulk)
        #expect(counts.queued == 60)
        let isOver = await one.node.outbox.isOver(bulk, timeout: 60)
        #expect(isOver)  // the peer is away: waiting cannot help
        let again = try await TestNode("two", on: link, folder: two.folder)
        try await one.until { try await $0.store.read { try $0.counts() }.outbox.stored == 60 }
        let inbox = try await Self.inbox(of: again)
        #expect(inbox == (1...60).map { "hex \($0)" })
        try await one.stop()
        try await again.stop()
    }

    @Test("a rerun with the same keys sends nothing twice; a key with other content is refused with its line")
    func keys() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            for _ in 0..<2 {
                let bulk = try await one.node.outbox.beginBulk(to: [two.id], force: false) {}
                await one.node.outbox.follow(bulk)
                let (refused, _) = try await one.node.outbox.enqueue(Self.hexes(1...200, from: one, key: "k"), for: bulk, timeout: 5)
                #expect(refused.isEmpty)
                #expect(try await Self.untilOver(bulk, on: one).stored == 200)
                await one.node.outbox.unfollow(bulk)
            }
            let bulk = try await one.node.outbox.beginBulk(to: [two.id], force: false) {}
            await one.node.outbox.follow(bulk)
            let mixed = try await Self.hexes(200...200, from: one, key: "k", text: "other") + Self.hexes(201...201, from: one, key: "k")
            let (refused, _) = await one.node.outbox.enqueue(mixed, for: bulk, timeout: 5)
            #expect(refused.map(\.line) == [200])
            #expect(refused.map(\.error.code) == [.keyConflict])
            #expect(try await Self.untilOver(bulk, on: one).stored == 1)
            let inbox = try await Self.inbox(of: two)
            #expect(inbox == (1...201).map { "hex \($0)" })
        }
    }

    @Test("refused rows are reported with their lines")
    func refusals() async throws {
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link)
        let two = try await TestNode("two", on: link)
        try await one.untilListed(two)
        try await two.untilListed(one)
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        try await two.stop(removing: false)
        try await one.until { try await !$0.peers.all().contains { $0.state == .verified } }
        let bulk = try await one.node.outbox.beginBulk(to: [two.id], force: false) {}
        await one.node.outbox.follow(bulk)
        let (refused, _) = try await one.node.outbox.enqueue(
            Self.hexes(11...13, from: one) + Self.hexes(20...20, from: one), for: bulk, timeout: 5)
        #expect(refused.isEmpty)
        // The peer blocks this machine while the two have no session.
        let store = try HexStore(path: two.folder.appending(path: "hexlist.sqlite").path)
        try store.writeSync { writer in
            _ = try writer.setTrust(one.id, .blocked, fingerprint: one.node.identity.fingerprint, name: "one", at: 1)
        }
        try store.close()
        let again = try await TestNode("two", on: link, folder: two.folder)
        try await one.until { try await $0.outbox.summary(of: bulk).rejected == 4 }
        let ends = try await one.node.outbox.takeFailures(of: bulk)
        #expect(ends.map(\.line) == [11, 12, 13, 20])
        #expect(ends.map(\.outcome.code) == Array(repeating: "blocked", count: 4))
        try await one.stop()
        try await again.stop()
    }

    @Test("with or without this machine as sender, a hex has the same body; another sender's name stays")
    func preparing() async throws {
        let one = try await TestNode("one \"quoted\" ☀", on: nil)
        var preparer = try await one.node.outbox.preparer()
        var anonymous = HexContent()
        anonymous.hexDescription = anonymous.add("d")
        var signed = anonymous
        signed.senderUUID = signed.add(one.id.description)
        signed.senderName = signed.add("one \"quoted\" ☀")
        var claimed = anonymous
        claimed.senderName = claimed.add("somebody")
        var hexes = PreparedHexes()
        for hex in [anonymous, signed] { try preparer.prepare(hex, key: "k", at: 1, into: &hexes) }
        try preparer.prepare(claimed, key: nil, at: 1, into: &hexes)
        #expect(hexes.body(0).elementsEqual(hexes.body(1)))
        #expect(hexes.messageID(0) == hexes.messageID(1))
        #expect(hexes.hasKey(0) && hexes.hasKey(1) && !hexes.hasKey(2))
        #expect(!hexes.packed.digest(at: 0).elementsEqual(hexes.packed.digest(at: 1)))
        #expect(String(decoding: hexes.body(2), as: UTF8.self).hasPrefix(#"{"senderUUID":"\#(one.id)","senderName":"somebody","#))
        try await one.stop()
    }
}
