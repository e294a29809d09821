import TestSupport
import Dispatch
import HexlistDiscovery
import HexlistModel
import Testing

@testable import HexlistNode
@testable import HexlistStore

struct InboundRoomTests {
    private static let peers = (1...6).map { InboundRoom.Owner.peer(PeerID(UUIDBytes(high: UInt64($0), low: 0))) }
    private static let limits = InboundRoom.Limits(all: 64, strangers: 16, peer: 2)

    @Test("all together: at the bound nobody is read, until a quarter is free again; but of each trusted peer a little is")
    func all() {
        var room = InboundRoom(limits: Self.limits)
        for peer in Self.peers.prefix(4) {
            #expect(room.mayRead(peer))
            _ = room.change(peer, by: 15)
        }
        #expect(room.mayRead(.strangers))
        let becameFull = room.change(Self.peers[0], by: 4)
        #expect(becameFull && room.all == 64)
        #expect(!room.mayRead(Self.peers[0]) && !room.mayRead(Self.peers[3]) && !room.mayRead(.strangers))
        // The fifth, that has nothing waiting: until it has its little.
        #expect(room.mayRead(Self.peers[4]))
        let changedByALittle = room.change(Self.peers[4], by: 1)
        #expect(!changedByALittle)
        #expect(room.mayRead(Self.peers[4]))
        _ = room.change(Self.peers[4], by: 1)
        #expect(!room.mayRead(Self.peers[4]) && room.mayRead(Self.peers[5]))
        // With every batch a little becomes free: nobody is let go for that.
        let changedByABatch = room.change(Self.peers[0], by: -10)
        #expect(!changedByABatch)
        #expect(!room.mayRead(Self.peers[0]))
        let becameFree = room.change(Self.peers[0], by: -9)
        #expect(becameFree && room.all == 47)
        #expect(room.mayRead(Self.peers[0]) && room.mayRead(.strangers))
    }

    @Test("strangers have one part together, and take nothing from trusted peers")
    func strangers() {
        var room = InboundRoom(limits: Self.limits)
        let becameFull = room.change(.strangers, by: 16)
        #expect(becameFull)
        #expect(!room.mayRead(.strangers) && room.mayRead(Self.peers[0]))
        let changedByAQuarter = room.change(.strangers, by: -4)
        #expect(!changedByAQuarter)
        let becameFree = room.change(.strangers, by: -1)
        #expect(becameFree && room.mayRead(.strangers))
    }

    @Test("who has nothing waiting is not remembered")
    func forgets() {
        var room = InboundRoom(limits: Self.limits)
        for peer in Self.peers {
            _ = room.change(peer, by: 5)
            _ = room.change(peer, by: -5)
        }
        #expect(room.weights.isEmpty && room.all == 0)
    }
}

@Suite("Weight of what waits, on real sessions", .timeLimit(.minutes(5)))
struct InboundWeightTests {
    @Test("what a session left behind counts until the store has answered, and is given back then", arguments: [true, false])
    func givenBack(endsFirst: Bool) async throws {
        let (one, two) = try await trustingNodes(on: InMemoryLink())
        let gate = DispatchSemaphore(value: 0)
        defer { gate.signal() }  // the store's writer goes on, however the test ends
        two.node.store.submit({ _ in try gate.take() }, completion: { _ in })
        func send() async throws { _ = try await one.node.outbox.send(SendRequest(content: .hex(HexContent()), peers: [two.id])) }
        try await send()
        try await eventually("the first hex waits for the store") { await two.node.waiting.all > 0 }
        // The others weigh as much, or a byte more where their number has two digits.
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
        #expect(try await two.node.store.read { try $0.counts() }.inbox == 20)
        if !endsFirst { try await one.stop() }
        try await two.stop()
    }

    @Test("while the others have all there is waiting, a trusted peer with nothing waiting is read; who is held goes on after it")
    func fairness() async throws {
        let (one, two) = try await trustingNodes(on: InMemoryLink())
        let other = InboundRoom.Owner.peer(PeerID(UUIDBytes(high: 7, low: 7)))
        await two.node.change(other, by: 64 << 20)
        #expect(try await one.send(to: two).state == .stored)
        // As much as its own part: it is held back, until there is room again.
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
    fileprivate var waiting: InboundRoom { sessions.room }
    fileprivate var hasSessions: Bool { !sessions.values.isEmpty }
    fileprivate var isReadingAll: Bool { sessions.values.allSatisfy(\.connection.isReading) }
    /// As a session of that owner would.
    fileprivate func change(_ owner: InboundRoom.Owner, by weight: Int) {
        sessions.waitingChanged(from: (owner, 0), to: (owner, weight))
    }
}
