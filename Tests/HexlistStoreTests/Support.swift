import Dispatch
import Foundation
import GRDB
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

/// Keeps the writer busy until `release`, so that requests submitted meanwhile form one batch.
final class Gate: Sendable {
    private let open = DispatchSemaphore(value: 0)
    private let entered = DispatchSemaphore(value: 0)

    init(_ store: HexStore) throws {
        store.submit(
            { [open, entered] _ in
                entered.signal()
                try open.take()
            }, completion: { _ in })
        try entered.take()
    }

    func release() { open.signal() }
}

/// A store in its own folder. Both are removed at the end.
final class TestStore {
    let folder: String
    let path: String
    let store: HexStore

    /// - Parameter image: the file of a store to copy; `nil` for an empty store.
    init(copyOf image: String? = nil) throws {
        folder = try TestStore.makeFolder()
        path = folder + "/hexlist.sqlite"
        if let image { try FileManager.default.copyItem(atPath: image, toPath: path) }
        store = try HexStore(path: path)
    }

    deinit {
        try? store.close()
        try? FileManager.default.removeItem(atPath: folder)
    }

    static func makeFolder() throws -> String {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hexlist-store-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder
    }

    /// - Parameter lived: the time by `StoreOpenTimeClock`; by default the wall time.
    func write<Value: Sendable>(
        lived: Int64 = start, _ work: @escaping @Sendable (StoreWriter) throws -> Value
    ) throws -> Value {
        try store.writeSync { writer in
            writer.lived = lived
            return try work(writer)
        }
    }

    /// - Parameter lived: the time by `StoreOpenTimeClock`; by default the wall time.
    func read<Value>(lived: Int64 = start, _ work: (StoreReader) throws -> Value) throws -> Value {
        try store.readSync { reader in
            reader.lived = lived
            return try work(reader)
        }
    }

    /// Stores hexes of a sender as a session would.
    @discardableResult
    func receive(
        _ hexes: [IncomingHex], from peer: TestPeer, at now: Int64 = start, address: String = "192.168.1.7",
        policy: StrangerHexPolicy = .held, quotas: HeldQuotas = HeldQuotas(), diskReserve: Int64 = 0, isProven: Bool = true
    ) throws -> [DeliveryResult] {
        let sender = Sender(peer: peer.id, fingerprint: isProven ? peer.fingerprint : nil, name: peer.name, address: address)
        return try write(lived: now) {
            try $0.receive(hexes, from: sender, at: now, policy: policy, quotas: quotas, diskReserve: diskReserve)
        }
    }

    func nextHex() throws -> Int64 { try read { try StoreCounters(on: $0.db).nextHex } }

    func trust(_ peer: TestPeer, _ trust: Trust = .trusted, at now: Int64 = start) throws -> TrustChange {
        try write(lived: now) { try $0.setTrust(peer.id, trust, fingerprint: peer.fingerprint, name: peer.name, at: now) }
    }

    /// Counts all rows and compares with the stored counters.
    func countersAreRight() throws -> Bool {
        try read { reader in
            func number(_ sql: String) throws -> Int64 { try Int64.fetchOne(reader.db, sql: sql) ?? -1 }
            var counts = StoreCounts(
                inbox: try number("SELECT count(*) FROM hex WHERE location = 'inbox'"),
                unread: try number("SELECT count(*) FROM hex WHERE location = 'inbox' AND unread = 1"),
                held: try number("SELECT count(*) FROM hex WHERE location = 'held'"),
                heldBytes: try number("SELECT coalesce(sum(byteCount), 0) FROM hex WHERE location = 'held'"),
                mine: try number("SELECT count(*) FROM hex WHERE location = 'mine'"), outbox: OutboxCounts(),
                outboxBytes: try number("SELECT coalesce(sum(length(bodies)), 0) FROM outboxPack"),
                lastEvent: try number("SELECT coalesce(max(number + count) - 1, 0) FROM event"))
            for state in OutboxState.allCases {
                counts.outbox[state] = try number("SELECT coalesce(sum(last - id + 1), 0) FROM outbox WHERE state = '\(state.rawValue)'")
            }
            var kept = try reader.counts()
            kept.unindexed = 0
            if counts.lastEvent == 0 { kept.lastEvent = 0 }  // all events may have been deleted
            let strays = try number(
                """
                SELECT count(*) FROM peer WHERE
                    hexes <> (SELECT count(*) FROM hex WHERE hex.peer = peer.id) OR
                    unread <> (SELECT count(*) FROM hex WHERE hex.peer = peer.id AND unread = 1 AND location = 'inbox') OR
                    held <> (SELECT count(*) FROM hex WHERE hex.peer = peer.id AND location = 'held') OR
                    heldBytes <> (SELECT coalesce(sum(byteCount), 0) FROM hex WHERE hex.peer = peer.id AND location = 'held') OR
                    queued <> (SELECT coalesce(sum(last - outbox.id + 1), 0) FROM outbox WHERE outbox.peer = peer.id AND state = 'queued')
                """)
            let links = try number("SELECT (SELECT count(*) FROM link) - (SELECT coalesce(sum(linkCount), 0) FROM hex)")
            // Ranges whose bodies are missing, unused bodies in packs, packs without rows, keys without packs.
            let bodies = try number(
                """
                SELECT (SELECT count(*) FROM outbox LEFT JOIN outboxPack ON outboxPack.id = pack
                        WHERE outboxPack.id IS NULL OR (state IN ('queued', 'rejected', 'failed') AND bodies IS NULL))
                    + (SELECT count(*) FROM outboxPack WHERE bodies IS NOT NULL
                        AND NOT EXISTS (SELECT 1 FROM outbox WHERE pack = outboxPack.id AND state IN ('queued', 'rejected', 'failed')))
                    + (SELECT count(*) FROM outboxPack WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE pack = outboxPack.id))
                    + (SELECT count(*) FROM outboxKey WHERE pack NOT IN (SELECT id FROM outboxPack))
                """)
            let events = try number("SELECT coalesce(sum(64 + coalesce(length(CAST(data AS BLOB)), 0)), 0) FROM event")
            let eventBytes = try StoreCounters(on: reader.db).eventBytes
            if kept != counts { print("kept \(kept)\nare  \(counts)") }
            return kept == counts && strays == 0 && links == 0 && bodies == 0 && eventBytes == events
        }
    }
}

/// 2023-11-14 22:13:20 UTC.
let start: Int64 = 1_700_000_000_000
let day: Int64 = 86_400_000

struct TestPeer: Sendable {
    let fingerprint: Fingerprint
    let name: String
    var id: PeerID { fingerprint.peerID }

    init(_ number: UInt8, name: String = "") throws {
        guard let fingerprint = Fingerprint(bytes: [UInt8](repeating: number, count: 32)) else { throw CancellationError() }
        self.fingerprint = fingerprint
        self.name = name.isEmpty ? "Peer \(number)" : name
    }
}

func message(_ number: UInt64) -> MessageID { MessageID(UUIDBytes(high: 0x0192_0000_0000_7000, low: 0x8000_0000_0000_0000 | number)) }

func content(_ description: String = "A hex", links: Int = 2, extra: String = "") -> HexContent {
    var content = HexContent()
    content.senderUUID = content.add("SENDER")
    content.senderName = content.add("Sender")
    content.hexDescription = content.add(description)
    content.hexColor = content.add("#ff8800")
    content.extra = content.add(extra)
    content.links = (0..<links).map { number in
        LinkContent(
            url: content.add("https://example.com/\(number)"), linkDescription: content.add("Link \(number)"),
            service: content.add("Dropbox"),
            extra: content.add(number == 0 ? extra : ""))
    }
    return content
}

func hex(_ number: UInt64, _ description: String = "A hex", bytes: Int = 500) -> IncomingHex {
    IncomingHex(content: content(description), messageID: message(number), weight: bytes)
}

struct PreparedHex: Sendable {
    var messageID: MessageID
    var hasKey: Bool
    var body: [UInt8]
    var digest = [UInt8](repeating: 7, count: 32)
    var subject = ""
}

extension PreparedHexes {
    init(_ hexes: some Sequence<PreparedHex>) {
        self.init()
        for hex in hexes {
            bodies += hex.body
            add(messageID: hex.messageID, digest: hex.hasKey ? hex.digest : nil, subject: hex.subject)
        }
    }
}

extension EnqueueReport {
    /// The rows of each hex, or the reason why it has none.
    var results: [Result<[EnqueuedRow], HexlistError>] {
        parts.flatMap { part -> [Result<[EnqueuedRow], HexlistError>] in
            switch part {
            case .new(let hexes, let first): (0..<hexes).map { hex in .success(first.map { .new($0 + Int64(hex)) }) }
            case .again(let rows): [.success(rows)]
            case .refused(let error): [.failure(error)]
            }
        }
    }
}

/// A hex for one peer, with a key.
struct Outgoing: Sendable {
    var peer: TestPeer
    var hex: PreparedHex
    var createdAt: Int64
}

func outgoing(_ number: UInt64, to peer: TestPeer, body: String = "{}", createdAt: Int64 = start) -> Outgoing {
    Outgoing(
        peer: peer,
        hex: PreparedHex(
            messageID: message(number), hasKey: true, body: Array(body.utf8),
            digest: Array((Array(body.utf8) + [UInt8](repeating: 0, count: 32)).prefix(32))),
        createdAt: createdAt)
}

extension StoreWriter {
    /// Queues hexes for one peer each.
    /// - Returns: the row of each hex, or the reason why it has none.
    func enqueue(_ batch: [Outgoing], bounds: OutboxBounds = OutboxBounds()) throws -> [Result<EnqueuedRow, HexlistError>] {
        var full: HexlistError?
        return try batch.map { outgoing in
            if let full { return .failure(full) }
            lived = outgoing.createdAt
            let recipient = PeerContact(
                peer: outgoing.peer.id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: outgoing.createdAt)
            let report = try enqueue(
                [PreparedHexes([outgoing.hex])],
                EnqueueOptions(
                    recipients: [recipient], now: outgoing.createdAt, lifetime: 30 * day, bounds: bounds))
            full = report.full
            guard let result = report.results.first else { return .failure(try #require(report.full)) }
            return result.map { $0[0] }
        }
    }

    func enqueue(_ batch: [PreparedHexes], _ terms: EnqueueOptions) throws -> EnqueueReport {
        try enqueue(batch, terms, ids: counters.nextOutbox)
    }

    func enqueue(_ outgoing: Outgoing, bounds: OutboxBounds = OutboxBounds()) throws -> EnqueuedRow {
        try enqueue([outgoing], bounds: bounds)[0].get()
    }
}

extension StoreWriter {
    /// Runs maintenance at the given time of both clocks.
    func maintain(
        at time: Int64, limits: RetentionLimits = RetentionLimits(), chunk: Int = 2_000
    ) throws -> MaintenanceReport {
        lived = time
        return try maintain(now: time, limits: limits, chunk: chunk)
    }
}

extension HexContent {
    /// All texts, for comparing contents with different buffers.
    var texts: [String] {
        [senderUUID, senderName, hexDescription, hexColor, extra].map(string)
            + links.flatMap { [$0.url, $0.linkDescription, $0.service, $0.extra].map(string) }
    }
}

extension Result<EnqueuedRow, HexlistError> {
    var id: Int64? { (try? get())?.id }
}

/// The hexes of an import that are in memory.
struct HexArray: ImportSource {
    private let hexes: [HexContent]
    let entries: [ImportEntry]

    init(_ hexes: [HexContent]) {
        self.hexes = hexes
        entries = hexes.map(ImportEntry.init)
    }

    func hex(_ index: Int) -> HexContent { hexes[index] }
}
