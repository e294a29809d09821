import Foundation
import GRDB
import HexlistModel
import Synchronization
import Testing

@testable import HexlistStore

/// A machine whose wall clock can be set to any time, between the runs of a store and during one. Only the monotonic clock is reliable.
private final class Machine {
    let folder: String
    let peer: TestPeer
    let stranger: TestPeer
    /// Milliseconds since 1970.
    var wall = start
    private(set) var store: HexStore
    private var path: String
    private let steady = Steady()

    private final class Steady: Sendable {
        let now = Mutex(ContinuousClock.now)
    }

    init() throws {
        folder = try TestStore.makeFolder()
        path = folder + "/0.sqlite"
        (peer, stranger) = (try TestPeer(1), try TestPeer(2))
        store = try HexStore(path: path, steady: { [steady] in steady.now.withLock { $0 } })
    }

    deinit {
        try? store.close()
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Lets time pass while the daemon runs.
    func live(_ milliseconds: Int64) {
        wall &+= milliseconds
        steady.now.withLock { $0 += .milliseconds(milliseconds) }
    }

    /// Restarts the daemon, as after a reboot: the wall clock is set to `wall`, and the monotonic clock starts again.
    func restart(wall: Int64) throws {
        try store.close()
        try reopen(path, wall: wall)
    }

    /// Starts the daemon on the files that a killed one left.
    func kill(wall: Int64) throws {
        let left = folder + "/\(UUID().uuidString).sqlite"
        for end in ["", "-wal"] where FileManager.default.fileExists(atPath: path + end) {
            try FileManager.default.copyItem(atPath: path + end, toPath: left + end)
        }
        try store.close()
        try reopen(left, wall: wall)
    }

    private func reopen(_ path: String, wall: Int64) throws {
        (self.path, self.wall) = (path, wall)
        steady.now.withLock { $0 -= .seconds(5_000_000) }
        store = try HexStore(path: path, steady: { [steady] in steady.now.withLock { $0 } })
    }

    /// Stores one row of each kind that has an age: a queued hex, a held one, the id of a deleted one, events, an offer, a cached file, a
    /// transfer.
    func fill() async throws {
        let (peer, stranger, wall) = (peer, stranger, wall)
        try store.writeSync { writer in
            _ = try writer.setTrust(peer.id, .trusted, fingerprint: peer.fingerprint, name: peer.name, at: wall)
            for (sender, policy) in [(peer, StrangerHexPolicy.trusted), (stranger, .held)] {
                _ = try writer.receive(
                    [hex(1)], from: Sender(peer: sender.id, fingerprint: sender.fingerprint, name: "", address: "10.0.0.1"), at: wall,
                    policy: policy, quotas: HeldQuotas(), diskReserve: 0)
            }
            try writer.delete([1], at: start)
            let terms = EnqueueOptions(
                recipients: [
                    PeerContact(peer: peer.id, fingerprint: peer.fingerprint, name: "", version: nil, boot: nil, seenAt: wall)
                ], now: wall, lifetime: 30 * day)
            _ = try writer.enqueue([PreparedHexes([outgoing(1, to: peer).hex])], terms)
        }
        let offer = OfferRow(
            id: Array(repeating: 1, count: 16), path: "/o", identity: "1", name: "o", size: 1, sha256: Array(repeating: 1, count: 32),
            mediaType: nil, modified: wall, ends: store.clock.now + OfferRow.waitingTime)
        try await store.offer([offer], to: [peer.id])
        var row = TransferRow(
            hex: nil, url: "hexlist://p/f", peer: peer.id, folder: "/f", mask: 0, name: "f", part: "1", size: 1,
            sha256: Array(repeating: 2, count: 32), modified: nil, createdAt: wall)
        row.place = .pool
        var added = try await store.addTransfers([row])[0]
        (added.state, added.endedAt, added.finalName, added.identity) = (.done, wall, "f", "1")
        let ended = added
        try store.writeSync { try $0.updateTransfers([ended]) }
    }

    /// The parts of `fill` that are left after a round of maintenance.
    func remaining() throws -> Set<String> {
        let wall = wall
        while try store.writeSync({ try $0.maintain(now: wall) }).isPartial {}
        let (peer, stranger) = (peer, stranger)
        return try store.readSync { reader in
            var found: Set<String> = []
            if try reader.outboxRow(1)?.state == .queued { found.insert("queued") }
            if try reader.hex(2) != nil { found.insert("held") }
            if try Int.fetchOne(reader.db, sql: "SELECT count(*) FROM tombstone") == 1 { found.insert("deleted") }
            if try reader.eventPage(since: 0, limit: 1).items.first?.number == 1 { found.insert("events") }
            if try reader.offer(Array(repeating: 1, count: 16), to: peer.id) != nil { found.insert("offer") }
            if try reader.leastUsedPooled(unusedFor: 30, limit: 1).isEmpty { found.insert("cached") }
            if try !reader.transfers([1]).isEmpty { found.insert("transfer") }
            if try reader.peer(stranger.id) != nil { found.insert("stranger") }
            return found
        }
    }

    static let all: Set<String> = ["queued", "held", "deleted", "events", "offer", "cached", "transfer", "stranger"]
}

private let hour: Int64 = 3_600_000

@Suite(.timeLimit(.minutes(5))) struct LivedClockTests {
    /// Wall times, as offsets from the first.
    static let jumps: [(name: String, wall: [Int64])] = [
        ("61 days ahead", [start + 61 * day]), ("60 days back", [start - 60 * day]), ("ahead for one run", [start + 61 * day, start]),
        ("back for one run", [start - 60 * day, start]), ("before 1970", [-5 * day]), ("the beginning of 1970", [0]),
        ("2038", [2_147_483_648_000]), ("9999", [253_402_300_799_000, start]), ("switched off for a year", [start + 365 * day]),
        ("to and fro", (0..<12).map { start + ($0 % 2 == 0 ? 1 : -1) * $0 * 40 * day }),
    ]

    @Test("a wall clock that was set between two runs changes no age", arguments: jumps.indices, [false, true])
    func acrossRestarts(jump: Int, isKilled: Bool) async throws {
        let machine = try Machine()
        try await machine.fill()
        for wall in Self.jumps[jump].wall {
            try isKilled ? machine.kill(wall: wall) : machine.restart(wall: wall)
            #expect(try machine.remaining() == Machine.all, "\(Self.jumps[jump].name), at \(wall)")
        }
    }

    @Test("a wall clock that is set during a run changes no age", arguments: jumps.indices)
    func duringARun(jump: Int) async throws {
        let machine = try Machine()
        try await machine.fill()
        for wall in Self.jumps[jump].wall {
            machine.wall = wall
            machine.live(hour)
            #expect(try machine.remaining() == Machine.all)
        }
    }

    @Test("ages count lived days, in one run or in many", arguments: [1, 4])
    func ages(runsADay: Int) async throws {
        let machine = try Machine()
        try await machine.fill()
        var gone: [String: Int64] = [:]
        for number in 0..<62 {
            for run in 0..<runsADay {
                // The wall clock is wrong at each start.
                if runsADay > 1 { try machine.restart(wall: start + Int64((number + run) % 7 - 3) * 50 * day) }
                machine.live(day / Int64(runsADay))
            }
            for thing in Machine.all.subtracting(try machine.remaining()) where gone[thing] == nil { gone[thing] = Int64(number) + 1 }
        }
        #expect(
            gone == [
                "queued": 30, "held": 7, "deleted": 60, "events": 30, "offer": 60, "cached": 31, "transfer": 30, "stranger": 7,
            ])
    }

    @Test("a kill loses the time since the last maintenance, at most an hour")
    func kills() async throws {
        let machine = try Machine()
        let before = machine.store.clock.now
        for _ in 0..<10 {
            for _ in 0..<3 {
                machine.live(hour)
                _ = try machine.remaining()
            }
            machine.live(hour / 2)
            try machine.kill(wall: start)
        }
        #expect(machine.store.clock.now - before == 30 * hour)
    }

    @Test("a deleted hex is not stored again after a start with a wrong clock")
    func deletedUnderAWrongClock() throws {
        let machine = try Machine()
        let sender = Sender(peer: machine.peer.id, fingerprint: machine.peer.fingerprint, name: "", address: "10.0.0.1")
        func receive() throws -> [DeliveryResult] {
            try machine.store.writeSync { [wall = machine.wall, peer = machine.peer] writer in
                _ = try writer.setTrust(peer.id, .trusted, fingerprint: peer.fingerprint, name: peer.name, at: wall)
                return try writer.receive([hex(1)], from: sender, at: wall, policy: .held, quotas: HeldQuotas(), diskReserve: 0)
            }
        }
        #expect(try receive() == [.stored])
        // The time for which the id is remembered begins with the deletion, although the wall clock was different when the hex arrived.
        try machine.restart(wall: start + 61 * day)
        try machine.store.writeSync { _ = try $0.delete([1], at: start) }
        _ = try machine.remaining()
        try machine.restart(wall: start)
        #expect(try receive() == [.duplicate(of: .stored)])
    }

    @Test("the address that answered last is tried first and kept, whatever the wall clock was then")
    func addresses() throws {
        let machine = try Machine()
        func remember(_ hosts: [String]) throws {
            let endpoints = hosts.map { PeerEndpoint(host: $0, port: 1, interface: nil, via: "mdns", lastOKAt: machine.wall) }
            let contact = PeerContact(
                peer: machine.peer.id, fingerprint: machine.peer.fingerprint, name: "", version: nil, boot: nil, seenAt: machine.wall,
                endpoints: endpoints)
            _ = try machine.store.writeSync { try $0.upsertPeer(contact, creating: true) }
        }
        machine.wall = start + 61 * day
        try remember((1...PeerRecord.endpointLimit).map { "10.0.0.\($0)" })
        try machine.restart(wall: start)
        machine.live(1_000)
        try remember(["10.0.1.1"])
        let peer = machine.peer.id
        let found = try machine.store.readSync { try $0.peer(peer) }
        let record = try #require(found)
        #expect(record.endpoints.first?.host == "10.0.1.1" && record.endpoints.first?.lastOKAt == start + 1_000)
        #expect(record.endpoints.count == PeerRecord.endpointLimit)
    }

    @Test("an offer's end is displayed as a wall time")
    func shownEnd() throws {
        let machine = try Machine()
        machine.live(hour)
        let ends = machine.store.clock.now + 2 * day
        #expect(machine.store.clock.instant(of: ends) - machine.store.clock.instant(of: machine.store.clock.now) == .seconds(2 * 86_400))
    }

    @Test("a store of an earlier version without recent events continues from its newest row")
    func migrationWithoutEvents() throws {
        let fixture = try #require(Bundle.module.path(forResource: "version-4", ofType: "sqlite", inDirectory: "Fixtures"))
        for change in ["DELETE FROM event", "UPDATE event SET at = 5"] {
            let folder = try TestStore.makeFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            try FileManager.default.copyItem(atPath: fixture, toPath: folder + "/hexlist.sqlite")
            let old = try DatabaseQueue(path: folder + "/hexlist.sqlite")
            try old.write { try $0.execute(sql: change) }
            try old.close()
            let store = try HexStore(path: folder + "/hexlist.sqlite")
            defer { try? store.close() }
            #expect((0..<60_000).contains(store.clock.now - start), "\(change)")
        }
    }

    @Test("rows of a store of an earlier version continue from its last event", arguments: ["version-1", "version-4"])
    func migration(name: String) throws {
        let fixture = try #require(Bundle.module.path(forResource: name, ofType: "sqlite", inDirectory: "Fixtures"))
        let folder = try TestStore.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.copyItem(atPath: fixture, toPath: folder + "/hexlist.sqlite")
        let store = try HexStore(path: folder + "/hexlist.sqlite")
        defer { try? store.close() }
        #expect((0..<60_000).contains(store.clock.now - start))
        // Nothing is due after a change of the wall clock by years, or a day before the deadlines.
        for days: Int64 in [0, 6] {
            let report = try store.writeSync { writer in
                writer.lived = start + days * day
                return try writer.maintain(now: start + 1_000 * day)
            }
            #expect(report == MaintenanceReport())
        }
        let later = try store.writeSync { writer in
            writer.lived = start + 61 * day
            return try writer.maintain(now: start)
        }
        #expect(later.expired == 2 && later.heldDropped == 3 && later.idsForgotten == 1 && later.eventsDropped > 0)
    }
}
