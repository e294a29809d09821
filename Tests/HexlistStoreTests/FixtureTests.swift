import Foundation
import GRDB
import HexlistLists
import HexlistModel
import Testing

@testable import HexlistStore

/// `Fixtures` has a database of each released version. Each must open, migrate, and keep all its content.
@Suite struct FixtureTests {
    private static let making = ProcessInfo.processInfo.environment["HEXLIST_MAKE_FIXTURE"]

    /// Writes one row of each kind into a new store at that path, to be added to `Fixtures`.
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
                PeerContact(
                    peer: friend.id, fingerprint: friend.fingerprint, name: friend.name, version: "1.0.0", boot: BootNonce(9),
                    seenAt: start,
                    endpoints: [PeerEndpoint(host: "192.168.1.9", port: 24_391, interface: "eth0", via: "mdns", lastOKAt: start)]))
            for (peer, address) in [(friend, "192.168.1.9"), (stranger, "fe80::2%eth0")] {
                let sender = Sender(peer: peer.id, fingerprint: peer.fingerprint, name: peer.name, address: address)
                let hexes = [
                    IncomingHex(
                        content: content("Größe 中文 👩‍👩‍👧", links: 3, extra: "{\"kept\":true}"), messageID: message(1), weight: 700),
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
            try writer.note([FailedAttempt(id: 3, attempts: 1, failures: 1, nextAttemptAt: start + 1_000, waitingFor: "backoff")])
            try writer.appendEvent(.alertReceived, at: start, peer: enemy.id, data: "{\"message\":\"hello\"}")
        }
        try store.close()
    }

    @Test(
        "made-up rows of an earlier version do not prevent opening the store",
        arguments: ["bytes = -5", "bytes = 9223372036854775807", "messageID = x'00'", "digest = x''"])
    func madeUpRows(change: String) throws {
        let fixture = try #require(Bundle.module.path(forResource: "version-4", ofType: "sqlite", inDirectory: "Fixtures"))
        let folder = try TestStore.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/hexlist.sqlite"
        try FileManager.default.copyItem(atPath: fixture, toPath: path)
        let old = try DatabaseQueue(path: path)
        // The first hex was delivered, so only its row still has its length.
        try old.write { try $0.execute(sql: "UPDATE outbox SET \(change) WHERE id = 1") }
        try old.close()
        let store = try HexStore(path: path)
        defer { try? store.close() }
        try store.readSync { reader in
            #expect(try !reader.outboxPage().items.isEmpty)
            _ = try reader.outboxRow(1)
        }
    }

    /// A copy of a fixture in its own folder.
    private func copy(of name: String) throws -> (folder: String, path: String) {
        let fixture = try #require(Bundle.module.path(forResource: name, ofType: "sqlite", inDirectory: "Fixtures"))
        let folder = try TestStore.makeFolder()
        try FileManager.default.copyItem(atPath: fixture, toPath: folder + "/hexlist.sqlite")
        return (folder, folder + "/hexlist.sqlite")
    }

    @Test(arguments: ["version-1", "version-4", "schema-33"]) func everyReleasedVersionOpens(_ name: String) throws {
        let (folder, path) = try copy(of: name)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let old = try DatabaseQueue(path: path)
        #expect(try old.read { try StoreSchema.isWhole($0, with: "") })  // a backup of such a store can be restored
        try old.close()
        try checkOpening(path, of: name)
    }

    /// Copies the store's files right before each commit: the state after a kill.
    private final class KillImages: TransactionObserver {
        private let path: String
        private(set) var images: [String] = []

        init(of path: String) { self.path = path }

        func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
        func databaseDidChange(with event: DatabaseEvent) {}
        func databaseDidCommit(_ db: Database) {}
        func databaseDidRollback(_ db: Database) {}

        func databaseWillCommit() throws {
            let image = "\(path).killed-\(images.count)"
            for suffix in ["", "-wal"] { try FileManager.default.copyItem(atPath: path + suffix, toPath: image + suffix) }
            images.append(image)
        }
    }

    @Test("a migration interrupted at any step is resumed", arguments: ["version-1", "version-4", "schema-33"])
    func interrupted(_ name: String) throws {
        let (folder, path) = try copy(of: name)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let pool = try DatabasePool(path: path, configuration: StoreConnection.configuration)
        let before = try pool.read { try Int.fetchOne($0, sql: "PRAGMA user_version") }
        // The WAL already contains pages of the open transaction.
        try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA cache_size = 1") }
        let images = KillImages(of: path)
        pool.add(transactionObserver: images, extent: .observerLifetime)
        try StoreSchema.migrator.migrate(pool)
        try pool.close()
        var versions: Set<Int> = []
        for image in images.images {
            let killed = try DatabaseQueue(path: image)
            try versions.insert(#require(try killed.read { try Int.fetchOne($0, sql: "PRAGMA user_version") }))
            try killed.close()
            try checkOpening(image, of: name)
        }
        #expect(versions == Set(try #require(before)..<StoreSchema.version))
    }

    @Test("a store of schema 13 opens, with its row ranges")
    func schema13() throws {
        let (folder, path) = try copy(of: "version-4")
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let old = try DatabaseQueue(path: path)
        try StoreSchema.migrator.migrate(old, upTo: StoreSchema.migrator.migrations[12])
        let (friend, enemy) = (try TestPeer(1), try TestPeer(3))
        var hexes = PackedHexes()
        for number in 1...3 as ClosedRange<UInt64> {
            hexes.append(messageID: message(50 + number).uuid, digest: [], bodyBytes: 2, subject: "Run \(number)")
        }
        try old.write { [packed = Data(hexes.bytes)] db in
            let peers = try [friend, enemy].map { peer in
                try Int64.fetchOne(db, sql: "SELECT id FROM peer WHERE uuid = ?", arguments: [Data(peer.id.uuid.bytes)])
            }
            try db.execute(
                sql: "INSERT INTO outboxPack VALUES (50, 5, 3, 2, 0, ?, ?)", arguments: [packed, Data("{}[]{}".utf8)])
            for (first, last, peer, state) in [(5, 5, peers[0], "stored"), (6, 7, peers[0], "queued"), (8, 10, peers[1], "queued")] {
                try db.execute(
                    sql: "INSERT INTO outbox (id, last, peer, pack, state, createdAt, dueAt) VALUES (?, ?, ?, 50, ?, ?, ?)",
                    arguments: [first, last, peer, state, start, start + 30 * day])
            }
            try db.execute(
                sql: """
                    UPDATE tally SET nextOutbox = 11, outQueued = outQueued + 5, outStored = outStored + 1, outboxBytes = outboxBytes + 6;
                    UPDATE peer SET queued = queued + 2 WHERE id = \(peers[0] ?? 0);
                    UPDATE peer SET queued = queued + 3 WHERE id = \(peers[1] ?? 0);
                    """)
        }
        try old.close()
        let store = try HexStore(path: path)
        defer { try? store.close() }
        try store.readSync { reader in
            #expect(try String.fetchOne(reader.db, sql: "PRAGMA integrity_check") == "ok")
            #expect(try Int.fetchOne(reader.db, sql: "PRAGMA user_version") == StoreSchema.version)
            let rows = try reader.outboxRows(Array(5...10))
            #expect(rows.map(\.subject) == ["Run 1", "Run 2", "Run 3", "Run 1", "Run 2", "Run 3"])
            #expect(rows.map(\.state) == [.stored, .queued, .queued, .queued, .queued, .queued])
            #expect(try String.fetchAll(reader.db, sql: "SELECT description FROM outbox_rows WHERE id > 4") == rows.compactMap(\.subject))
            let batch = try reader.outboxBatch(friend.id, after: 5, limit: 9, maxBytes: 999).items
            #expect(batch.map(\.id) == [6, 7] && batch.map { Array($0.body) } == [Array("[]".utf8), Array("{}".utf8)])
        }
        let moves = try store.writeSync { try $0.settle([Settlement(id: 6, state: .stored)], of: friend.id, at: start) }
        #expect(moves == [OutboxStateChange(ids: 6...6, peer: friend.id, from: .queued, to: .stored)])
    }

    /// Opens a migrated copy of a fixture and checks all its content.
    private func checkOpening(_ path: String, of name: String) throws {
        if name == "schema-33" { return try checkOpeningLists(path) }
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
            #expect(try reader.hexPage().items.map(\.id) == [2, 1])
            #expect(try reader.hexPage(HexFilter(location: .held, peer: stranger.id)).items.map(\.id) == [6, 5, 4])
            #expect(try reader.hexPage(HexFilter(location: .mine)).items.map(\.description) == ["Mine"])
            let detail = try #require(try reader.hex(1))
            #expect(detail.content.texts == content("Größe 中文 👩‍👩‍👧", links: 3, extra: "{\"kept\":true}").texts)
            #expect(detail.summary.messageID == message(1) && !detail.summary.unread && detail.summary.peer == friend.id)
            #expect(try reader.outboxRows([1, 2, 3, 4]).map(\.state) == [.stored, .rejected, .queued, .queued])
            #expect(try reader.outboxBatch(friend.id, after: 0, limit: 9, maxBytes: 999).items.map(\.id) == [3, 4])
            #expect(try reader.outboxRow(3)?.waitingFor == "backoff")
            // Rows have a subject since version 4.
            #expect(try reader.outboxRow(3)?.subject == (name == "version-1" ? nil : "Subject 3"))
            #expect(try reader.counts().mine == 1 && reader.counts().inbox == 2)
            let events = try reader.eventPage(since: 0, limit: 100).items
            let eventBytes = try Int64.fetchOne(reader.db, sql: "SELECT sum(64 + coalesce(length(CAST(data AS BLOB)), 0)) FROM event")
            #expect(try StoreCounters(on: reader.db).eventBytes == eventBytes)
            #expect(events.map(\.number) == Array(1...9))
            #expect(events.last == EventRow(number: 9, at: start, type: .alertReceived, peer: enemy.id, data: "{\"message\":\"hello\"}"))
        }
        // The store is usable: deleted hexes are still known, and ids continue.
        let sender = Sender(peer: friend.id, fingerprint: friend.fingerprint, name: friend.name, address: "192.168.1.9")
        let outcomes = try store.writeSync {
            try $0.receive([hex(3), hex(9)], from: sender, at: start, policy: .held, quotas: HeldQuotas(), diskReserve: 0)
        }
        #expect(outcomes == [.duplicate(of: .stored), .stored])
        var tree = hex(10)
        tree.content.add(child: ChildContent(parent: nil))
        let whole = tree
        let kept = try store.writeSync {
            try $0.receive([whole], from: sender, at: start, policy: .held, quotas: HeldQuotas(), diskReserve: 0)
        }
        #expect(kept == [.stored])
    }

    /// Opens a migrated copy of the store of schema 33 and checks its lists. Its daemon had another machine of the user, shared hex 3 with
    /// another person, who added a link, and deleted a hex and two links.
    private func checkOpeningLists(_ path: String) throws {
        let store = try HexStore(path: path)
        defer { try? store.close() }
        try store.readSync { reader in
            #expect(try String.fetchOne(reader.db, sql: "PRAGMA integrity_check") == "ok")
            #expect(try Int.fetchOne(reader.db, sql: "PRAGMA user_version") == StoreSchema.version)
            #expect(try reader.hexPage(HexFilter(location: .mine)).items.map(\.subject) == ["Last", "Reading", "Größe 中文"])
            #expect(try urls(reader.hex(1)) == ["https://a.example/", "https://b.example/"])
            #expect(try urls(reader.hex(2)) == ["https://c.example/"])
            #expect(try urls(reader.hex(3)) == ["https://d.example/", "https://f.example/", "https://bob.example/"])
            #expect(try urls(reader.hex(5)) == ["https://i.example/", "https://k.example/"])
            #expect(try reader.trashPage(limit: 10, before: nil).items.map(\.number) == [9, 8, 7])
            #expect(try Int.fetchAll(reader.db, sql: "SELECT number FROM mineChange ORDER BY number") == Array(1...10))
            let shared = try #require(try reader.sharedHexes().first)
            #expect(shared.hex == 3 && shared.isOwned && shared.peers.map(\.access) == [.write] && shared.peers.map(\.state) == [.joined])
            for row in try reader.all("SELECT id FROM list", read: { $0.int64(0) }) {
                let list = try ListRecord(on: reader, row: row)
                var digest = ListDigest()
                for node in try SQLListStorage(list, on: reader).nodes() { digest.toggle(node, in: list.id) }
                #expect(list.digest == digest)
            }
        }
        #expect(try MyHexlistNodeTests().rowsShowTheNodes(store))
        // The store is usable: links are restored, also in the shared hex, and new ids continue.
        let restored = try store.writeSync { try $0.restoreMine(numbers: [7, 9], at: start) }
        #expect(restored.map(\.hex) == [4, 3] && restored.map(\.link) == [nil, 1])
        #expect(try store.writeSync { try $0.insertMine(content("New"), at: start) } == 6)
        #expect(try MyHexlistNodeTests().rowsShowTheNodes(store))
    }

    private func urls(_ hex: HexDetail?) throws -> [String] {
        let content = try #require(hex).content
        return content.links.map { String(decoding: content.bytes($0.url), as: UTF8.self) }
    }

    /// A store of version 1 whose peers have changed their names.
    @Test func peersOfVersion1GetTheirAliases() throws {
        let fixture = try #require(Bundle.module.path(forResource: "version-1", ofType: "sqlite", inDirectory: "Fixtures"))
        let folder = try TestStore.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/hexlist.sqlite"
        try FileManager.default.copyItem(atPath: fixture, toPath: path)
        // number, current name, alias, trust, names while trusted (newest last)
        let peers: [(UInt8, String, String?, Trust, [String])] = [
            (11, "Bob", nil, .trusted, ["Bob"]), (12, "BOB", nil, .trusted, ["BOB"]),
            (13, "Robert now", nil, .stranger, ["Rob", "Robert"]),  // formerly trusted, with another name since
            (14, "pest now", nil, .blocked, ["pest"]), (15, "never trusted", nil, .stranger, []),
            (16, "blocked at once", nil, .blocked, []),
            (17, "x", "DESK", .stranger, []),  // `desk` belongs to the friend, which is older
            (18, "cafe", nil, .trusted, ["cafe"]), (19, "y", "beef", .trusted, ["y"]), (20, "Robert", nil, .trusted, ["Robert"]),
            (21, "", nil, .trusted, []),
        ]
        let ids = try peers.map { try TestPeer($0.0).id }
        let old = try DatabaseQueue(path: path)
        try old.write { db in
            for (peer, id) in zip(peers, ids) {
                try db.execute(
                    sql: "INSERT INTO peer (id, uuid, fingerprint, name, alias, trust) VALUES (?, ?, ?, ?, ?, ?)",
                    arguments: [
                        Int64(peer.0) + 100, Data(id.uuid.bytes), Data([UInt8](repeating: peer.0, count: 32)), peer.1, peer.2,
                        peer.3.rawValue,
                    ])
                for (at, name) in peer.4.enumerated() {
                    try db.execute(
                        sql: "INSERT INTO trustedName (peer, name, seenAt) VALUES (?, ?, ?)", arguments: [Int64(peer.0) + 100, name, at])
                }
            }
        }
        try old.close()
        let store = try HexStore(path: path)
        defer { try? store.close() }
        let found = try store.readSync { reader in
            #expect(try String.fetchOne(reader.db, sql: "PRAGMA integrity_check") == "ok")
            #expect(try Int.fetchOne(reader.db, sql: "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'trustedName%'") == 0)
            #expect(try reader.peer(try TestPeer(1).id)?.alias == "desk")
            return try ids.map { try reader.peer($0)?.alias }
        }
        let short = ids.map(\.shortID)
        #expect(
            found == [
                "Bob", "BOB \(short[1])", "Robert \(short[2])", "pest", nil, nil, "DESK \(short[6])", "cafe \(short[7])", "beef", "Robert",
                "peer \(short[10])",
            ])
        // A second start changes nothing.
        try store.close()
        let again = try HexStore(path: path)
        defer { try? again.close() }
        #expect(try again.readSync { reader in try ids.map { try reader.peer($0)?.alias } } == found)
    }
}
