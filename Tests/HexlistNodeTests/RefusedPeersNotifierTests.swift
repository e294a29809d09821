import HexlistModel
import HexlistTransport
import Testing

@testable import HexlistNode
@testable import HexlistStore

@Suite("Peers to notify that hexes are accepted again", .timeLimit(.minutes(5)))
struct CapacityNotifierTests {
    private static let strangers = (1...100).map { PeerID(UUIDBytes(high: 0x8000, low: $0)) }
    private let friend: PeerRecord

    init() throws {
        let key = try Identity.ephemeral().fingerprint
        friend = PeerRecord(
            peer: key.peerID, fingerprint: key, name: "laptop", alias: nil, trust: .trusted, version: nil, boot: nil, lastSeenAt: nil,
            hexes: 0,
            unread: 0, held: 0, heldBytes: 0, queued: 0, endpoints: [])
    }

    @Test("online peers are dialled, eight at once, trusted ones first; none is notified twice")
    func here() async throws {
        try await StandIn.with { host in
            await host.run { host in
                host.registry.set([friend])
                host.here = Set(Self.strangers).union([friend.peer])
                host.refusedPeersNotifier.refused = Set(Self.strangers.prefix(10)).union([friend.peer])
                host.refusedPeersNotifier.mayAcceptMore(host)
                host.refusedPeersNotifier.mayAcceptMore(host)
            }
            #expect(await host.dialled.count == CapacityNoticeDialSlots.atOnce)
            #expect(await host.dialled.first == friend.peer)
            #expect(await host.run { $0.refusedPeersNotifier.capacityEpoch } == 2)
        }
    }

    @Test("a peer that is away, unreachable or leaves is notified once, by its next Hello")
    func later() async throws {
        try await StandIn.with { host in
            let (here, away) = (Self.strangers[0], Self.strangers[1])
            await host.run { host in
                host.here = [here]
                host.refusedPeersNotifier.refused = [here, away]
                host.refusedPeersNotifier.mayAcceptMore(host)
            }
            #expect(await host.dialled == [here])
            #expect(await host.run { $0.refusedPeersNotifier.pending } == [here: .now, away: .later])
            await host.failDials()
            #expect(await host.run { $0.refusedPeersNotifier.pending } == [here: .later, away: .later])
            #expect(await host.run { host in (0..<2).map { _ in host.refusedPeersNotifier.take(here) } } == [true, false])
            await host.run { $0.refusedPeersNotifier.forget(away) }
            #expect(await host.run { $0.refusedPeersNotifier.take(away) } == false)
        }
    }

    @Test("of absent strangers the newest 64 are remembered, and each trusted peer")
    func bound() async throws {
        try await StandIn.with { host in
            let pending = await host.run { host in
                host.registry.set([friend])
                host.refusedPeersNotifier.notifyLater(friend.peer, host)
                for peer in Self.strangers { host.refusedPeersNotifier.notifyLater(peer, host) }
                return Set(host.refusedPeersNotifier.pending.keys)
            }
            #expect(pending.count == RefusedPeersNotifier.strangerLimit + 1)
            #expect(pending.isSuperset(of: [friend.peer, Self.strangers[99]]))
        }
    }

    @Test("a peer in conflict, or blocked, is not notified")
    func nobody() async throws {
        try await StandIn.with { host in
            var blocked = friend
            blocked.trust = .blocked
            let pending = await host.run { [blocked] host in
                host.registry.set([blocked])
                host.here = [blocked.peer, Self.strangers[0]]
                host.inConflict = [Self.strangers[0]]
                host.refusedPeersNotifier.refused = host.here
                host.refusedPeersNotifier.mayAcceptMore(host)
                return host.refusedPeersNotifier.pending
            }
            #expect(pending.isEmpty)
            #expect(await host.dialled.isEmpty)
        }
    }
}
