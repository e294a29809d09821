import Foundation
import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

/// A database of every released version stays in `Fixtures`, and opens, migrated, with everything in it.
@Suite struct FixtureTests {
    private static let making = ProcessInfo.processInfo.environment["HEXLIST_MAKE_FIXTURE"]

    /// Writes one row of every kind into a new store at that path, which is then added to `Fixtures` once and for all.
    @Test(.enabled(if: making != nil, "makes a fixture where HEXLIST_MAKE_FIXTURE names it")) func makeAFixture() throws {
        let path = try #require(Self.making)
        let store = try HexStore(path: path)
        let (friend, stranger, enemy) = (try TestPeer(1, name: "Friend"), try TestPeer(2, name: "Stranger"), try TestPeer(3))
        try store.writeSync { writer in
            try writer.setMeta("port", "24391")
            _ = try writer.setTrust(friend.id, .trusted, fingerprint: friend.fingerprint, name: friend.name, at: start)
            try writer.setAlias(friend.id, "desk")
            _ = try writer.setTrust(enemy.id, .blocked, fingerprint: enemy.fingerprint, name: enemy.name, at: start)
            try writer.upsertPeer(
                PeerSighting(
                    peer: friend.id, fingerprint: friend.fingerprint, name: friend.name, version: "1.0.0", boot: BootNonce(9),
                    seenAt: start,
                    endpoints: [PeerEndpoint(host: "192.168.1.9", port: 24_391, interface: "eth0", via: "mdns", lastOKAt: start)]))
            for (peer, address) in [(friend, "192.168.1.9"), (stranger, "fe80::2%eth0")] {
                let sender = Sender(peer: peer.id, fingerprint: peer.fingerprint, name: peer.name, address: address)
                let hexes = [
                    IncomingHex(
                        content: content("Größe 中文 👩‍👩‍👧", links: 3, extra: "{\"kept\":true}"), messageID: message(1), byteCount: 700),
                    hex(2), hex(3),
                ]
                _ = try writer.receive(hexes, from: sender, at: start, policy: .held, quotas: HeldQuotas(), diskReserve: 0)
            }
            try writer.setRead([1])
            try writer.delete([3], at: start)
            _ = try writer.insertMine(content("Mine"), at: start)
            _ = try writer.enqueue((1...4).map { outgoing($0, to: friend, body: "{\"hexDescription\":\"\($0)\"}") })
            try writer.settle(
                [Settlement(id: 1, state: .stored), Settlement(id: 2, state: .rejected, code: "tooLarge", message: "no")],
                of: friend.id, at: start)
            try writer.note([AttemptNote(id: 3, attempts: 1, failures: 1, nextAttemptAt: start + 1_000, waitingFor: "backoff")])
            try writer.appendEvent(.alertReceived, at: start, peer: enemy.id, data: "{\"message\":\"hello\"}")
        }
        try store.close()
    }

    @Test(arguments: ["version-1"]) func everyReleasedVersionOpens(_ name: String) throws {
        let fixture = try #require(Bundle.module.path(forResource: name, ofType: "sqlite", inDirectory: "Fixtures"))
        let folder = try TestStore.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/hexlist.sqlite"
        try FileManager.default.copyItem(atPath: fixture, toPath: path)
        let store = try HexStore(path: path)
        defer { try? store.close() }
        let (friend, stranger, enemy) = (try TestPeer(1), try TestPeer(2), try TestPeer(3))
        try store.readSync { reader in
            #expect(try String.fetchOne(reader.db, sql: "PRAGMA integrity_check") == "ok")
            #expect(try Int.fetchOne(reader.db, sql: "PRAGMA user_version") == StoreSchema.version)
            #expect(try reader.meta("port") == "24391")
            #expect(try reader.peers().map(\.trust) == [.trusted, .blocked, .stranger])
            let record = try #require(try reader.peer(friend.id))
            #expect(record.alias == "desk" && record.fingerprint == friend.fingerprint && record.endpoints.first?.host == "192.168.1.9")
            #expect(record.boot == BootNonce(9) && record.hexes == 2 && record.unread == 1 && record.queued == 2)
            #expect(try reader.wasNameTrusted("Friend"))
            #expect(try reader.hexPage().items.map(\.id) == [2, 1])
            #expect(try reader.hexPage(HexFilter(location: .held, peer: stranger.id)).items.map(\.id) == [6, 5, 4])
            #expect(try reader.hexPage(HexFilter(location: .mine)).items.map(\.description) == ["Mine"])
            let detail = try #require(try reader.hex(1))
            #expect(detail.content.texts == content("Größe 中文 👩‍👩‍👧", links: 3, extra: "{\"kept\":true}").texts)
            #expect(detail.summary.messageID == message(1) && !detail.summary.unread && detail.summary.peer == friend.id)
            #expect(try reader.outboxRows([1, 2, 3, 4]).map(\.state) == [.stored, .rejected, .queued, .queued])
            #expect(try reader.outboxBatch(friend.id, after: 0, limit: 9, maxBytes: 999).items.map(\.id) == [3, 4])
            #expect(try reader.outboxRow(3)?.waitingFor == "backoff")
            let events = try reader.events(since: 0, limit: 100)
            #expect(events.map(\.number) == Array(1...9))
            #expect(events.last == EventRow(number: 9, at: start, type: .alertReceived, peer: enemy.id, data: "{\"message\":\"hello\"}"))
        }
        // And it goes on: what was deleted is still known, numbers count on.
        let sender = Sender(peer: friend.id, fingerprint: friend.fingerprint, name: friend.name, address: "192.168.1.9")
        let outcomes = try store.writeSync {
            try $0.receive([hex(3), hex(9)], from: sender, at: start, policy: .held, quotas: HeldQuotas(), diskReserve: 0)
        }
        #expect(outcomes == [.duplicate(of: .stored), .stored(8)])
    }
}
