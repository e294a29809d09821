import HexlistModel
import Testing

@testable import HexlistDelivery

@Suite("Delivery scheduler", .timeLimit(.minutes(5)))
struct DeliverySchedulerTests {
    private static let peers = (1...2).map { PeerID(UUIDBytes(high: $0, low: 0)) }
    private static let row = PeerDeliveryTests.row(1)

    @Test("the reason why a row waits, and whether waiting can help", arguments: ["conflict", "draining", "away", "here"])
    func waiting(situation: String) async throws {
        try await TestHost.with { host in
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
            let expected: [String: OutboxWaitReason] = ["conflict": .conflict, "draining": .conflict, "away": .peer, "here": .session]
            #expect(reason == expected[situation])
            #expect(isWorthIt == (situation == "here"))
            #expect(await host.reached == (situation == "here" ? [Self.peers[0]] : []))
        }
    }

    @Test("a peer is dialled once for all its rows; after a failure not before the pause ends, unless a person asks")
    func failures() async throws {
        try await TestHost.with { host in
            let peer = Self.peers[0]
            await host.run { host in
                host.here = Set(Self.peers)
                for _ in 0..<3 { host.deliveries.queued([peer: [Self.row]], again: [], isDurable: true, host) }
            }
            #expect(await host.reached == [peer])
            // The failure and the addition of rows happen in one loop tick.
            let (wait, dialled) = await host.run { host in
                host.failAttempts()
                host.deliveries.queued([peer: [Self.row]], again: [peer], isDurable: true, host)
                return (host.deliveries.wait(of: peer, bytes: 10, host), host.reached)
            }
            #expect(wait.0 == .retry && wait.1 != nil)
            #expect(dialled == [peer])
            await host.run { $0.deliveries.retryNow([peer], $0) }
            #expect(await host.reached == [peer, peer])
        }
    }

    @Test("while draining no peer is dialled; afterwards each peer with rows is")
    func draining() async throws {
        try await TestHost.with { host in
            let isDrained = await host.run { host in
                host.here = Set(Self.peers)
                nonisolated(unsafe) var isDrained = false
                host.deliveries.drain { isDrained = true }
                host.deliveries.queued([Self.peers[0]: [Self.row], Self.peers[1]: [Self.row]], again: [], isDurable: true, host)
                return isDrained
            }
            #expect(isDrained)  // nothing was in flight
            #expect(await host.reached.isEmpty)
            await host.run { $0.deliveries.resume($0) }
            #expect(await Set(host.reached) == Set(Self.peers))
        }
    }

    // MARK: Couriers

    private static func connect(_ courier: InMemoryCourier, to peer: PeerID, rows: ClosedRange<Int64>, _ host: isolated TestHost) {
        host.memory.add(rows.map { PeerDeliveryTests.row($0) }, for: peer)
        host.deliveries.connected(courier, to: peer, start: BootNonce.random)
        host.deliveries.pump(courier, to: peer, host)
    }

    private static func settle(
        _ rows: [Int64], as result: DeliveryResult = .stored, by courier: InMemoryCourier, of peer: PeerID, _ host: isolated TestHost
    ) {
        courier.answered(rows)
        host.deliveries.settled(rows.map { RowResult(id: $0, result) }, by: courier, to: peer, host)
    }

    @Test("a courier gets batches within its capacity, in order, each row once; its results are recorded")
    func capacity() async throws {
        try await TestHost.with { host in
            let (peer, courier) = (Self.peers[0], InMemoryCourier())
            await host.run { host in
                courier.most = 3
                Self.connect(courier, to: peer, rows: 1...5, host)
            }
            await host.settle()
            #expect(await host.run { _ in courier.batches.map { $0.map(\.id) } } == [[1, 2, 3]])
            await host.run { Self.settle([1, 2], by: courier, of: peer, $0) }
            await host.settle()
            #expect(await host.run { _ in courier.sent } == [1, 2, 3, 4, 5])
            await host.run { host in Self.settle([3, 4, 5], as: .held, by: courier, of: peer, host) }
            await host.settle()
            #expect((1...5).map { host.memory.state(of: $0) } == [.stored, .stored, .held, .held, .held])
        }
    }

    @Test("a courier's end passes its rows without result to the next courier; answered rows are not resent")
    func endedCourier() async throws {
        try await TestHost.with { host in
            let (peer, first, second) = (Self.peers[0], InMemoryCourier(), InMemoryCourier())
            await host.run { Self.connect(first, to: peer, rows: 1...3, $0) }
            await host.settle()
            await host.run { host in
                Self.settle([1], by: first, of: peer, host)
                host.deliveries.ended(first, to: peer, CourierEnd(.lost, "gone"), host)
            }
            await host.settle()
            let attempts = host.memory.content.withLock { $0.attempts.map { ($0.row, $0.counts) } }
            #expect(attempts.count == 1 && attempts[0] == (2, false))
            await host.run { host in
                host.deliveries.peerIsBack(peer)
                Self.connect(second, to: peer, rows: 4...4, host)
            }
            await host.settle()
            // After a failure one row is in flight, then two.
            #expect(await host.run { _ in second.sent } == [2])
            await host.run { Self.settle([2], by: second, of: peer, $0) }
            await host.settle()
            #expect(await host.run { _ in second.sent } == [2, 3, 4])
        }
    }

    @Test("of two couriers the newer one is used; its end falls back to the older one")
    func fallback() async throws {
        try await TestHost.with { host in
            let (peer, older, newer) = (Self.peers[0], InMemoryCourier(), InMemoryCourier())
            await host.run { host in
                host.deliveries.connected(older, to: peer, start: BootNonce.random)
                Self.connect(newer, to: peer, rows: 1...1, host)
            }
            await host.settle()
            #expect(await host.run { _ in (older.sent, newer.sent) } == ([], [1]))
            await host.run { host in
                Self.settle([1], by: newer, of: peer, host)
                host.memory.add([PeerDeliveryTests.row(2)], for: peer)
                host.deliveries.ended(newer, to: peer, CourierEnd(.lost, "gone"), host)
                host.deliveries.queued([peer: [PeerDeliveryTests.row(2)]], again: [], isDurable: true, host)
            }
            await host.settle()
            #expect(await host.run { _ in older.sent } == [2])
        }
    }

    @Test("at most as many peers as slots are served; a released slot goes to the next peer")
    func slots() async throws {
        try await TestHost.with(peers: 1) { host in
            let couriers = [InMemoryCourier(), InMemoryCourier()]
            await host.run { host in
                for (peer, courier) in zip(Self.peers, couriers) {
                    let row: Int64 = peer == Self.peers[0] ? 1 : 2
                    Self.connect(courier, to: peer, rows: row...row, host)
                }
            }
            await host.settle()
            #expect(await host.run { _ in couriers.map(\.sent) } == [[1], []])
            await host.run { Self.settle([1], by: couriers[0], of: Self.peers[0], $0) }
            await host.settle()
            #expect(await host.run { _ in couriers.map(\.sent) } == [[1], [2]])
        }
    }

    @Test("a courier without a slot sends beside those with one; its wait is that of its rows, and cancelled rows are withdrawn")
    func withoutSlot() async throws {
        try await TestHost.with(peers: 1) { host in
            let (session, device) = (InMemoryCourier(), InMemoryCourier(guarantee: .delivered))
            let peer = Self.peers[1]
            await host.run { host in
                device.takesSlot = false
                Self.connect(session, to: Self.peers[0], rows: 1...1, host)
                Self.connect(device, to: peer, rows: 2...2, host)
            }
            await host.settle()
            #expect(await host.run { _ in [session.sent, device.sent] } == [[1], [2]])
            await host.run { host in
                #expect(host.deliveries.rowsInFlight == [1, 2])
                device.wait = CourierWait(.pin)
                #expect(host.deliveries.rowsInFlight == [1])
                #expect(host.deliveries.wait(of: peer, bytes: 10, host).reason == .pin)
                let withPIN = host.deliveries.isWorthWaiting(for: peer, bytes: 10, until: .now + .seconds(9), host)
                device.wait = CourierWait(.answer)
                let withAnswer = host.deliveries.isWorthWaiting(for: peer, bytes: 10, until: .now + .seconds(9), host)
                #expect(!withPIN && withAnswer)
                host.deliveries.cancelled([OutboxStateChange(id: 2, peer: peer, from: .queued, to: .cancelled)])
                #expect(device.withdrawn == [2] && session.withdrawn.isEmpty)
            }
        }
    }

    @Test("all rows of a peer that blocked this machine are rejected")
    func blocked() async throws {
        try await TestHost.with { host in
            let (peer, courier) = (Self.peers[0], InMemoryCourier())
            await host.run { Self.connect(courier, to: peer, rows: 1...5, $0) }
            await host.settle()
            await host.run { $0.deliveries.ended(courier, to: peer, CourierEnd(.blocked, "blocked"), $0) }
            for _ in 0..<4 { await host.settle() }
            #expect((1...5).allSatisfy { host.memory.state(of: $0) == .rejected })
        }
    }

    @Test("a courier that ends before it is connected affects no rows")
    func endedBeforeConnected() async throws {
        try await TestHost.with { host in
            let (peer, other) = (Self.peers[0], Self.peers[1])
            await host.run { host in
                host.deliveries.queued([peer: [Self.row]], again: [], isDurable: true, host)
                for peer in [peer, other] {
                    host.deliveries.ended(InMemoryCourier(), to: peer, CourierEnd(.lost, "not wanted"), host)
                }
            }
            #expect(await host.run { ($0.forgotten, $0.deliveries.knows(peer)) } == ([other], true))
        }
    }

    @Test("a peer without courier, rows and pause is forgotten")
    func forgotten() async throws {
        try await TestHost.with { host in
            let (peer, courier) = (Self.peers[0], InMemoryCourier())
            await host.run { Self.connect(courier, to: peer, rows: 1...1, $0) }
            await host.settle()
            await host.run { Self.settle([1], by: courier, of: peer, $0) }
            await host.settle()
            await host.run { $0.deliveries.ended(courier, to: peer, CourierEnd(.lost, "gone"), $0) }
            await host.settle()
            #expect(await host.run { ($0.forgotten, $0.deliveries.knows(peer)) } == ([peer], false))
        }
    }
}
