import CSQLite
import Foundation
import GRDB
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

/// The view `outbox_rows`, read with the `sqlite3` program and with SQLite, compared with the store's own result.
@Suite struct OutboxRowsViewTests {
    /// A row of the view.
    private struct Line: Decodable, Equatable {
        var id: Int64
        var peer: String
        var state: String
        var attempts: Int
        var reason: String?
        var description: String?
    }

    private static let program: String? = ["/usr/bin/sqlite3", "/usr/local/bin/sqlite3"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    private let test: TestStore
    private let peers: [TestPeer]

    init() throws {
        test = try TestStore()
        peers = [try TestPeer(1), try TestPeer(2)]
    }

    private func enqueue(_ subjects: [String?], for peers: [TestPeer], firstMessage: UInt64 = 1) throws {
        var hexes = PreparedHexes()
        for (index, subject) in subjects.enumerated() {
            hexes.bodies += Array("{}".utf8)
            hexes.add(messageID: message(firstMessage + UInt64(index)), digest: nil, subject: subject ?? "")
        }
        let terms = EnqueueOptions(
            recipients: peers.map { PeerContact(peer: $0.id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: start) },
            now: start, lifetime: 30 * day)
        _ = try test.write { [hexes] in try $0.enqueue([hexes], terms) }
    }

    /// All rows of the view, read with the program and with SQLite.
    private func lines() throws -> [Line] {
        let rows = try test.read { reader in
            try reader.all("SELECT id, peer, state, attempts, reason, description FROM outbox_rows") { row in
                Line(
                    id: row.int64(0), peer: row.text(1), state: row.text(2), attempts: row.int(3), reason: row.optionalText(4),
                    description: row.optionalText(5))
            }
        }
        if let program = Self.program {
            let (said, status) = try ChildProcess.answer(program, ["-readonly", "-json", test.path, "SELECT * FROM outbox_rows"])
            #expect(status == 0, "\(said)")
            #expect(try said.isEmpty ? rows.isEmpty : JSONDecoder().decode([Line].self, from: Data(said.utf8)) == rows)
        }
        return rows
    }

    private func expected() throws -> [Line] {
        try test.read { try $0.outboxPage(limit: 10_000) }.items.map { row in
            let code = [row.code, row.message ?? (row.code == nil ? nil : row.lastError)].compactMap(\.self)
            let waiting = row.lastError ?? row.waitingFor.map { "waits for \($0)" }
            let isByDevice = row.code == "delivered"
            let reason = isByDevice ? row.message : row.state.isDelivered ? nil : code.isEmpty ? waiting : code.joined(separator: ": ")
            return Line(
                id: row.id, peer: row.peer.description, state: isByDevice ? "delivered" : row.state.rawValue, attempts: row.attempts,
                reason: reason, description: row.subject)
        }
    }

    @Test(.enabled(if: program != nil, "sqlite3 is not installed")) func theProgramReadsALine() throws {
        try enqueue(["Größe 中文"], for: [peers[0]])
        let program = try #require(Self.program)
        for isRunning in [true, false] {
            if !isRunning { try test.store.close() }
            let (said, _) = try ChildProcess.answer(program, ["-readonly", test.path, "SELECT * FROM outbox_rows"])
            #expect(said == "1|\(peers[0].id)|queued|0||Größe 中文\n")
        }
    }

    @Test func anEmptyOutboxHasNone() throws { #expect(try lines().isEmpty) }

    @Test func eachRowOfARunIsALine() throws {
        try enqueue((1...1_000).map { "Hex \($0)" }, for: peers)
        let lines = try lines()
        #expect(try lines == expected() && lines.count == 2_000)
        #expect(Set(lines.prefix(512).map(\.peer)) == [peers[0].id.description])
        #expect(try test.read { try Int.fetchOne($0.db, sql: "SELECT count(*) FROM outbox") } == 4)
    }

    @Test("results of devices: the code `delivered`, and final failures") func devices() throws {
        try enqueue((1...5).map { "Hex \($0)" }, for: [peers[0]])
        let peer = peers[0].id
        let results = [
            RowResult(id: 1, .delivered(note: nil)), RowResult(id: 2, .delivered(note: "2 of 3 files accepted")),
            RowResult(id: 3, .undelivered(.rejected, code: "declined", message: "")),
            RowResult(id: 4, .undelivered(.failed, code: "device", message: "a.jpg has changed.")),
        ]
        try test.write { _ = try $0.settle(results.compactMap(Settlement.init), of: peer, at: start) }
        let rows = try test.read { try $0.outboxPage(limit: 10) }.items
        #expect(rows.map(\.state) == [.stored, .stored, .rejected, .failed, .queued])
        #expect(rows.map(\.code) == ["delivered", "delivered", "declined", "device", nil])
        let lines = try lines()
        #expect(lines.map(\.state) == ["delivered", "delivered", "rejected", "failed", "queued"])
        #expect(lines.map(\.reason) == [nil, "2 of 3 files accepted", "declined", "device: a.jpg has changed.", nil])
    }

    @Test func runsThatWereCutAreInOrder() throws {
        try enqueue((1...40).map { String(repeating: "é", count: $0 * 7) }, for: peers)
        try enqueue((1...5).map { "Other \($0)" }, for: [peers[1]], firstMessage: 100)
        let (one, other) = (peers[0].id, peers[1].id)
        try test.write { writer in
            _ = try writer.settle([3, 7, 8, 9, 40].map { Settlement(id: $0, state: .stored) }, of: one, at: start)
            _ = try writer.settle([Settlement(id: 12, state: .rejected, code: "tooLarge", message: "no")], of: one, at: start)
            _ = try writer.settle([Settlement(id: 14, state: .failed, code: "retryLimit")], of: one, at: start)
            _ = try writer.settle([Settlement(id: 50, state: .held)], of: other, at: start)
            try writer.note([
                FailedAttempt(id: 20, attempts: 2, failures: 1, nextAttemptAt: start + 1_000, waitingFor: "retry", lastError: "no route"),
                FailedAttempt(id: 22, attempts: 1, waitingFor: "peer"),
            ])
            _ = try writer.cancel([30, 31], at: start)
        }
        let lines = try lines()
        #expect(try lines == expected() && lines.count == 85)
        let reasons = Dictionary(uniqueKeysWithValues: lines.map { ($0.id, $0.reason) })
        #expect(reasons[12] == "tooLarge: no" && reasons[14] == "retryLimit" && reasons[20] == "no route")
        #expect(reasons[22] == "waits for peer" && reasons[3] == .some(nil) && reasons[50] == .some(nil))
        // Delivered and cancelled rows are forgotten, and leave gaps.
        try test.write { writer in while try writer.maintain(at: start + 8 * day).isPartial {} }
        let left = try self.lines()
        #expect(try left == expected() && left.map(\.id) == lines.filter { ![3, 7, 8, 9, 30, 31, 40, 50].contains($0.id) }.map(\.id))
    }

    @Test func deliveredRowsHaveNoReason() throws {
        try enqueue(["One", "Two"], for: [peers[0]])
        try test.write { [peer = peers[0].id] writer in
            try writer.note([FailedAttempt(id: 1, attempts: 3, lastError: "no route")])
            _ = try writer.settle([Settlement(id: 1, state: .stored), Settlement(id: 2, state: .stored)], of: peer, at: start)
        }
        let lines = try lines()
        #expect(try lines == expected() && lines.map(\.state) == ["stored", "stored"] && lines.map(\.attempts) == [3, 0])
    }

    @Test func textsAreSafeForATerminal() throws {
        let texts = [
            ("\u{1B}]0;title\u{07}", "\u{FFFD}]0;title\u{FFFD}"), ("a\nb\r\tc", "a b  c"),
            ("\u{202E}moc.elpmaxe\u{2069}", "\u{FFFD}moc.elpmaxe\u{FFFD}"), ("\u{9B}31m\u{7F}", "\u{FFFD}31m\u{FFFD}"),
            ("end\0\u{1B}[31m", "end"), ("\0", ""), ("'; DROP TABLE outbox; --", "'; DROP TABLE outbox; --"), ("[*?]^", "[*?]^"),
            ("👩‍👩‍👧 é", "👩‍👩‍👧 é"), ("", ""), (String(repeating: "\u{1B}", count: 500), String(repeating: "\u{FFFD}", count: 500)),
        ]
        try enqueue(texts.map { $0.0 }, for: [peers[0]])
        try test.write { [peer = peers[0].id] writer in
            for (index, text) in texts.enumerated() {
                _ = try writer.settle(
                    [Settlement(id: Int64(index + 1), state: .rejected, code: "x", message: text.0)], of: peer, at: start)
            }
        }
        let lines = try lines()
        #expect(lines.map(\.description) == texts.map { $0.1 })
        #expect(lines.map(\.reason) == texts.map { "x: \($0.1)" })
    }

    @Test func aRowWithoutASubjectHasNoDescription() throws {
        try enqueue(["One", "Two"], for: [peers[0]])
        var hexes = PackedHexes()
        hexes.append(messageID: message(1).uuid, digest: [], bodyBytes: 2, subject: nil)
        hexes.append(messageID: message(2).uuid, digest: [], bodyBytes: 2, subject: "Two")
        try test.write { [hexes] in _ = try $0.run("UPDATE outboxPack SET hexes = ?", hexes.bytes) }
        #expect(try lines().map(\.description) == [nil, "Two"])
    }

    /// Counts SQLite VM steps, so that no time is measured.
    @Test("a query with a limit reads only the rows it returns") func bounded() throws {
        var steps: [Int32] = []
        for batch in 0..<5 as Range<UInt64> {
            try enqueue((1...400).map { "Hex \($0)" }, for: peers, firstMessage: 1_000 * batch)
            steps.append(
                try test.read { reader in
                    let statement = try SQLStatement("SELECT * FROM outbox_rows LIMIT 20", on: reader.db)
                    _ = sqlite3_stmt_status(statement.handle, SQLITE_STMTSTATUS_VM_STEP, 1)
                    defer { statement.reset() }
                    var rows = 0
                    while try statement.step() { rows += 1 }
                    #expect(rows == 20)
                    return sqlite3_stmt_status(statement.handle, SQLITE_STMTSTATUS_VM_STEP, 0)
                })
        }
        #expect(Set(steps).count == 1 && steps[0] > 0, "\(steps)")
    }
}
