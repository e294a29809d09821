import HexlistModel
import Testing

@testable import HexlistStore

/// Drop tokens in the store, and hexes that they send.
@Suite(.timeLimit(.minutes(5))) struct DropTokenTests {
    private let test: TestStore
    private let token = DropToken(
        peer: PeerID(MessageID.random().uuid), name: "iPhone", sha256: Array(repeating: 7, count: 32), createdAt: start)

    init() throws { test = try TestStore() }

    private func finish(_ number: UInt64, earlier: UInt64? = nil, quotas: HeldQuotas = HeldQuotas()) throws -> DropResult {
        let sender = Sender(peer: token.peer, kind: .drop, fingerprint: nil, name: token.name, address: "192.168.1.7")
        return try test.store.finishDrop(
            as: hex(number), [], earlier: earlier.map { message($0) }, from: sender, at: start, quotas: quotas, diskReserve: 0)
    }

    @Test("tokens have different names, a limit, and survive a restart") func tokens() async throws {
        try await test.store.add(token)
        var other = token
        (other.peer, other.sha256) = (PeerID(MessageID.random().uuid), Array(repeating: 8, count: 32))
        for name in ["iPhone", "IPHONE", " iphone "] {
            other.name = name
            await #expect(throws: HexlistError.self) { try await test.store.add(other) }
        }
        for number in 1..<DropToken.limit {
            let more = DropToken(
                peer: PeerID(MessageID.random().uuid), name: "\(number)", sha256: [UInt8(number)] + Array(repeating: 9, count: 31),
                createdAt: start + Int64(number))
            try await test.store.add(more)
        }
        other.name = "one too many"
        await #expect(throws: HexlistError.self) { try await test.store.add(other) }
        try test.store.close()
        let again = try HexStore(path: test.path)
        #expect(try again.readSync { try $0.dropTokens() }.first == token)
        #expect(try again.readSync { try $0.dropTokens() }.count == DropToken.limit)
        #expect(try await again.removeDropToken(token.peer))
        #expect(try await !again.removeDropToken(token.peer))
        try again.close()
    }

    @Test("a repeated message id is stored once, also after the hex was deleted") func repeated() async throws {
        #expect(try finish(1) == .removed)
        try await test.store.add(token)
        let first = try test.nextHex()
        #expect(try finish(1) == .stored(first))
        #expect(try finish(1) == .storedBefore && finish(2, earlier: 1) == .storedBefore)
        #expect(try finish(3, earlier: 2) == .stored(first + 1))
        try test.write { _ = try $0.delete([first], at: start) }
        #expect(try finish(1) == .storedBefore && finish(4, earlier: 1) == .storedBefore)
        let listed = try test.read { try $0.hexPage().items }
        #expect(listed.map(\.id) == [first + 1] && listed[0].location == .inbox && listed[0].peerLabel?.text() == "iPhone (drop)")
        #expect(try test.read { try $0.dropTokens() }.map(\.usedAt) == [start])
        #expect(try test.countersAreRight())
    }

    @Test("a full inbox refuses for now; a removed token stores nothing, and its hexes stay") func refusals() async throws {
        try await test.store.add(token)
        _ = try finish(1)
        var quotas = HeldQuotas()
        quotas.inboxHexes = 1
        #expect { try finish(2, quotas: quotas) } throws: { ($0 as? HexlistError)?.code == .storageFull }
        #expect(try await test.store.removeDropToken(token.peer))
        #expect(try finish(3) == .removed)
        #expect(try test.read { try $0.hexPage().items }.count == 1)
        #expect(try test.countersAreRight())
    }

    @Test("trust in a token's UUID counts nothing for another kind of sender") func kinds() async throws {
        try await test.store.add(token)
        _ = try finish(1)
        let sender = Sender(peer: token.peer, fingerprint: nil, name: "x", address: "192.168.1.7")
        let results = try test.write {
            try $0.receive([hex(9)], from: sender, at: start, policy: .everyone, quotas: HeldQuotas(), diskReserve: 0)
        }
        #expect(results.map(\.isDelivered) == [false])
    }
}
