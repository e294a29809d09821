import HexlistModel
import Testing

@testable import HexlistSession

struct InboundMemoryLimitTests {
    private static let peers = (1...6).map { InboundMemoryLimit.Owner.peer(PeerID(UUIDBytes(high: UInt64($0), low: 0))) }
    private static let limits = InboundMemoryLimit.Limits(all: 64, strangers: 16, peer: 2)

    @Test("at the common bound reading stops until a quarter is free, except for a small share of each trusted peer")
    func all() {
        var room = InboundMemoryLimit(limits: Self.limits)
        for peer in Self.peers.prefix(4) {
            #expect(room.mayRead(peer))
            _ = room.change(peer, by: 15)
        }
        #expect(room.mayRead(.strangers))
        let becameFull = room.change(Self.peers[0], by: 4)
        #expect(becameFull && room.all == 64)
        #expect(!room.mayRead(Self.peers[0]) && !room.mayRead(Self.peers[3]) && !room.mayRead(.strangers))
        // The fifth peer has nothing waiting, so it may use its own share.
        #expect(room.mayRead(Self.peers[4]))
        let changedByALittle = room.change(Self.peers[4], by: 1)
        #expect(!changedByALittle)
        #expect(room.mayRead(Self.peers[4]))
        _ = room.change(Self.peers[4], by: 1)
        #expect(!room.mayRead(Self.peers[4]) && room.mayRead(Self.peers[5]))
        // Each batch frees a small share, which resumes no peer.
        let changedByABatch = room.change(Self.peers[0], by: -10)
        #expect(!changedByABatch)
        #expect(!room.mayRead(Self.peers[0]))
        let becameFree = room.change(Self.peers[0], by: -9)
        #expect(becameFree && room.all == 47)
        #expect(room.mayRead(Self.peers[0]) && room.mayRead(.strangers))
    }

    @Test("strangers have one common share, and take nothing from trusted peers")
    func strangers() {
        var room = InboundMemoryLimit(limits: Self.limits)
        let becameFull = room.change(.strangers, by: 16)
        #expect(becameFull)
        #expect(!room.mayRead(.strangers) && room.mayRead(Self.peers[0]))
        let changedByAQuarter = room.change(.strangers, by: -4)
        #expect(!changedByAQuarter)
        let becameFree = room.change(.strangers, by: -1)
        #expect(becameFree && room.mayRead(.strangers))
    }

    @Test("a peer without waiting hexes uses no memory")
    func forgets() {
        var room = InboundMemoryLimit(limits: Self.limits)
        for peer in Self.peers {
            _ = room.change(peer, by: 5)
            _ = room.change(peer, by: -5)
        }
        #expect(room.weights.isEmpty && room.all == 0)
    }
}
