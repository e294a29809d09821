import HexlistModel
import Testing

@testable import HexlistNode

@Suite("The scheduler of deliveries", .timeLimit(.minutes(5)))
struct DeliverySchedulerTests {
    private static let peers = (1...2).map { PeerID(UUIDBytes(high: $0, low: 0)) }
    private static let row = PeerDeliveryTests.row(1)

    @Test("what a row waits for, and whether that is worth waiting for", arguments: ["conflict", "draining", "away", "here"])
    func waiting(situation: String) async throws {
        try await StandIn.with { host in
            let (reason, isWorthIt) = await host.run { host in
                let peer = Self.peers[0]
                if situation != "away" { host.here = [peer] }
                if situation == "conflict" { host.inConflict = [peer] }
                if situation == "draining" { host.deliveries.drain {} }
                host.deliveries.queued([peer: [Self.row]], again: [], isDurable: true, host)
                return (
                    host.deliveries.wait(of: peer, bytes: 10, host).reason,
                    host.deliveries.isWorthWaiting(for: peer, bytes: 10, until: .now + .seconds(9), host)
                )
            }
            let expected: [String: OutboxWait] = ["conflict": .conflict, "draining": .conflict, "away": .peer, "here": .session]
            #expect(reason == expected[situation])
            #expect(isWorthIt == (situation == "here"))
            #expect(await host.dialled == (situation == "here" ? [Self.peers[0]] : []))
        }
    }

    @Test("a peer is dialled once for all its rows; after a failure not before the pause is over, unless a person asks")
    func failures() async throws {
        try await StandIn.with { host in
            let peer = Self.peers[0]
            await host.run { host in
                host.here = Set(Self.peers)
                for _ in 0..<3 { host.deliveries.queued([peer: [Self.row]], again: [], isDurable: true, host) }
            }
            #expect(await host.dialled == [peer])
            // In one turn of the loop, which no pause ends.
            let (wait, dialled) = await host.run { host in
                host.failDials()
                host.deliveries.queued([peer: [Self.row]], again: [peer], isDurable: true, host)
                return (host.deliveries.wait(of: peer, bytes: 10, host), host.dialled)
            }
            #expect(wait.0 == .retry && wait.1 != nil)
            #expect(dialled == [peer])
            await host.run { $0.deliveries.retryNow([peer], $0) }
            #expect(await host.dialled == [peer, peer])
        }
    }

    @Test("while it drains nobody is dialled; afterwards everyone rows wait for is")
    func draining() async throws {
        try await StandIn.with { host in
            let isDrained = await host.run { host in
                host.here = Set(Self.peers)
                nonisolated(unsafe) var isDrained = false
                host.deliveries.drain { isDrained = true }
                host.deliveries.queued([Self.peers[0]: [Self.row], Self.peers[1]: [Self.row]], again: [], isDurable: true, host)
                return isDrained
            }
            #expect(isDrained)  // nothing was on its way
            #expect(await host.dialled.isEmpty)
            await host.run { $0.deliveries.resume($0) }
            #expect(await Set(host.dialled) == Set(Self.peers))
        }
    }
}
