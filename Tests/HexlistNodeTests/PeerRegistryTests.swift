import HexlistModel
import HexlistTransport
import NIOPosix
import Testing

@testable import HexlistNode
@testable import HexlistStore

@Suite("Peer registry")
struct PeerRegistryTests {
    private let friend: Fingerprint
    private let known = PeerRegistry(on: MultiThreadedEventLoopGroup.singleton.any(), .system)

    init() throws {
        friend = try Identity.ephemeral().fingerprint
        known.set([Self.record(friend, alias: "Anna")])
    }

    private static func record(_ key: Fingerprint, alias: String?) -> PeerRecord {
        PeerRecord(
            peer: key.peerID, fingerprint: key, name: "laptop", alias: alias, trust: .trusted, version: nil, boot: nil, lastSeenAt: nil,
            hexes: 0, unread: 0, held: 0, heldBytes: 0, queued: 0, endpoints: [])
    }

    @Test("a record belongs to one key: another key with the same UUID is a stranger without alias")
    func keys() throws {
        let peer = friend.peerID
        let other = try Identity.ephemeral().fingerprint
        #expect(known.trust(of: friend) == .trusted)
        #expect(known.trust(of: nil) == .stranger)
        #expect(known.record(of: peer, key: nil)?.trust == .trusted)
        #expect(known.record(of: peer, key: other) == nil)
        #expect(known.label(of: peer, name: nil).alias == "Anna")

        known.proved(peer, other, listed: [])
        #expect(known.record(of: peer) == nil)
        #expect(known.label(of: peer, name: "laptop").alias == nil)
        #expect(known.isTrusted(peer), "by its UUID alone")

        known.forgetKey(of: peer)
        #expect(known.record(of: peer)?.alias == "Anna")
        #expect(known.trust(of: other) == .stranger)
    }

    @Test("the number of stranger keys is bounded: listed ones stay")
    func bound() {
        var ids: [PeerID] = []
        for number in 0..<2 * 8_192 as Range<UInt64> {
            let id = PeerID(UUIDBytes(high: 1, low: number))
            known.proved(id, friend, listed: [])
            ids.append(id)
        }
        #expect(known.keys.count == 2 * 8_192)
        known.proved(friend.peerID, friend, listed: Set(ids.prefix(3)))
        #expect(Set(known.keys.keys) == Set(ids.prefix(3) + [friend.peerID]))
    }
}
