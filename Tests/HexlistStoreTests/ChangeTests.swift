import HexlistModel
import Synchronization
import Testing

@testable import HexlistStore

/// Changes that the store reports to its observer after commits.
@Suite(.timeLimit(.minutes(5))) struct ChangeTests {
    /// The changes reported while `work` runs, one per commit with changes.
    private func told(by test: TestStore, _ work: () async throws -> Void) async throws -> [StoreChange] {
        let told = Mutex<[StoreChange]>([])
        test.store.observe { change in told.withLock { $0.append(change) } }
        try await work()
        try test.write { _ in }  // earlier changes are reported before this returns
        test.store.observe(nil)
        return told.withLock { $0 }
    }

    @Test func whoeverChangesTheStoreItIsTold() async throws {
        let test = try TestStore()
        let (friend, stranger) = (try TestPeer(1), try TestPeer(2))
        let (store, now) = (test.store, start)
        #expect(try await told(by: test) { _ = try test.trust(friend) } == [.peers])
        #expect(try await told(by: test) { try test.receive([hex(1), hex(2)], from: friend) } == [[.events, .inbox]])
        #expect(try await told(by: test) { try test.receive([hex(1)], from: friend) } == [], "a duplicate")
        #expect(try await told(by: test) { try test.receive([hex(1), hex(2), hex(3)], from: stranger) } == [[.events, .peers]])
        #expect(try await told(by: test) { _ = try await store.change([1], .read(true), at: now) } == [.peers])
        #expect(try await told(by: test) { _ = try await store.change([1], .read(true), at: now) } == [])
        #expect(try await told(by: test) { _ = try await store.change([3], .accept, at: now) } == [[.events, .inbox, .peers, .room]])
        #expect(try await told(by: test) { _ = try await store.change([1, 4], .delete, at: now) } == [[.peers, .room]])
        #expect(try await told(by: test) { _ = try await store.change(.ids(1...9, in: .mine), .delete, at: now) } == [])
        #expect(try await told(by: test) { _ = try await store.appendEvent(.peerUp, at: now) } == [.events])
        #expect(try await told(by: test) { try await store.setMeta(["a": "b"]) } == [])
        #expect(try await told(by: test) { try await store.forgetPeer(stranger.id) } == [.peers])
        #expect(try await told(by: test) { _ = try test.write { try $0.enqueue(outgoing(1, to: friend)) } } == [])
        #expect(
            try await told(by: test) { _ = try test.write { try $0.maintain(at: now + 7 * day) } } == [[.peers, .room]], "one was held")
    }

    @Test func whatFailsIsNotTold() async throws {
        let test = try TestStore()
        let told = try await told(by: test) {
            #expect(throws: CancellationError.self) {
                try test.write { writer in
                    try writer.appendEvent(.peerUp, at: start)
                    throw CancellationError()
                }
            }
            await #expect(throws: HexlistError.self) { try await test.store.change([7], .delete, at: start) }
        }
        #expect(told == [])
    }
}
