import Dispatch
import HexlistDiscovery
import HexlistModel
import TestSupport
import Testing

@testable import HexlistNode
@testable import HexlistSession
@testable import HexlistStore

@Suite("Memory limits of received hexes on real sessions", .timeLimit(.minutes(5)))
struct InboundWeightTests {
    @Test("hexes of an ended session count until the store has answered, and are released then", arguments: [true, false])
    func givenBack(endsFirst: Bool) async throws {
        let (one, two) = try await trustingNodes(on: InMemoryLink())
        // Both nodes may have dialled. Hexes on a session that is replaced would wait for receipts, which the store withholds here.
        #expect(try await one.send(to: two).state == .stored)
        for test in [one, two] { try await eventually("one session is left") { await test.node.sessionCount == 1 } }
        let gate = DispatchSemaphore(value: 0)
        defer { gate.signal() }  // the store's writer continues however the test ends
        two.node.store.submit({ _ in try gate.take() }, completion: { _ in })
        func send() async throws { _ = try await one.node.outbox.send(SendRequest(content: .hex(HexContent()), peers: [two.id])) }
        try await send()
        try await eventually("the first hex waits for the store") { await two.node.waiting.all > 0 }
        // Each further hex weighs as much as the first one, or a byte more if its number has two digits.
        let each = await two.node.waiting.all
        for _ in 2...20 { try await send() }
        try await eventually("20 hexes wait") { await two.node.waiting.all >= 20 * each }
        #expect(await two.node.waiting.weights.keys.map { $0 } == [.peer(one.id)])
        if endsFirst {
            try await one.stop()
            try await eventually("the session has ended") { await !two.node.hasSessions }
            #expect(await two.node.waiting.all >= 20 * each)
        }
        gate.signal()
        try await eventually("the store has answered") { await two.node.waiting.all == 0 }
        #expect(await two.node.waiting.weights.isEmpty)
        #expect(try await two.node.store.read { try $0.counts() }.inbox == 21)
        if !endsFirst { try await one.stop() }
        try await two.stop()
    }

    @Test("while other peers use all memory, a trusted peer without waiting hexes is still read; paused peers resume later")
    func fairness() async throws {
        let (one, two) = try await trustingNodes(on: InMemoryLink())
        let other = InboundMemoryLimit.Owner.peer(PeerID(UUIDBytes(high: 7, low: 7)))
        await two.node.change(other, by: 64 << 20)
        #expect(try await one.send(to: two).state == .stored)
        // The weight of the peer's waiting hexes equals the share of one peer, so reading from it is paused until memory is free.
        await two.node.change(.peer(one.id), by: 256 << 10)
        async let late = one.send(to: two, description: "late")
        try await eventually("one is not read") { await !two.node.isReadingAll }
        #expect(await two.node.waiting.isFull)
        await two.node.change(other, by: -(64 << 20))
        #expect(try await late.state == .stored)
        await two.node.change(.peer(one.id), by: -(256 << 10))
        #expect(await two.node.waiting.all == 0)
        try await one.stop()
        try await two.stop()
    }
}

extension Node {
    fileprivate var waiting: InboundMemoryLimit { sessions.room }
    fileprivate var hasSessions: Bool { sessionCount > 0 }
    fileprivate var isReadingAll: Bool { sessions.values.allSatisfy(\.connection.isReading) }
    /// Changes the weight of an owner's waiting hexes, as a session would.
    fileprivate func change(_ owner: InboundMemoryLimit.Owner, by weight: Int) {
        sessions.waitingChanged(from: (owner, 0), to: (owner, weight))
    }
}
