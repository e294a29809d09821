import Foundation
import HexlistEnvelope
import HexlistModel
import HexlistStore
import HexlistTransport
import HexlistWire
import TestSupport
import Testing

@testable import HexlistNode

/// Nodes that reach each other through a shared folder only: real TLS identities, real SQLite, real files.
@Suite("Folder route", .serialized, .timeLimit(.minutes(5))) struct FolderRouteTests {
    /// A node with the shared folder as its route, without waiting times.
    private static func node(_ name: String, _ folder: TemporaryFolder, on link: InMemoryLink? = nil, state: URL? = nil) async throws
        -> TestNode
    {
        try await TestNode(name, on: link, folder: state) { configuration in
            configuration.routes.list = [RouteConfiguration(name: "home", place: .folder(folder.path))]
            configuration.routes.awayTime = .zero
            configuration.routes.startTime = .zero
            configuration.routes.batchTime = .milliseconds(20)
        }
    }

    /// Two nodes that met, trust each other, and were stopped.
    private static func strangersOfTime(_ folder: TemporaryFolder) async throws -> (one: TestNode, two: TestNode) {
        let link = InMemoryLink()
        let (one, two) = (try await node("one", folder, on: link), try await node("two", folder, on: link))
        try await one.untilListed(two)
        try await two.untilListed(one)
        _ = try await two.node.peers.setTrust(one.id, .trusted)
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        try await eventually { Self.files(of: one.id, folder).contains("card.hxc") && Self.files(of: two.id, folder).contains("card.hxc") }
        try await one.stop(removing: false)
        try await two.stop(removing: false)
        return (one, two)
    }

    private static func files(of peer: PeerID, _ folder: TemporaryFolder) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/\(peer)")) ?? []
    }

    private static func envelopes(for peer: PeerID, _ folder: TemporaryFolder) -> [String] {
        files(of: peer, folder).filter { EnvelopeFileName($0) != nil }
    }

    private static func descriptions(_ node: TestNode) async throws -> [String] {
        try await node.node.store.read { try $0.hexPage(HexFilter(location: .inbox), limit: 1_000, after: nil) }.items.map(\.description)
    }

    @Test("two nodes that are never awake together exchange hexes, and the rows are settled") func neverTogether() async throws {
        try await TemporaryFolder.with { folder in
            let (first, second) = try await Self.strangersOfTime(folder)

            var one = try await Self.node("one", folder, state: first.folder)
            let rows = try await (0..<5).asyncMap { try await one.send(2, to: second, description: "hex \($0)", wait: .zero) }
            #expect(rows.allSatisfy { $0.state == .queued })
            // Waits for the record of the postings, without which the rows would be posted once more.
            let key = "postings.\(one.id).\(second.id)"
            try await eventually { [node = one.node] in
                let text = try await node.store.read { try $0.meta(key) } ?? ""
                return PostedEnvelopes(text: text).all.reduce(0) { $0 + $1.rowCount } == rows.count
            }
            try await one.stop(removing: false)
            let contents = try Self.envelopes(for: second.id, folder).map {
                try Data(contentsOf: URL(filePath: "\(folder.path)/\(second.id)/\($0)"))
            }
            #expect(contents.allSatisfy { !$0.contains(Data("example.org".utf8)) })

            let two = try await Self.node("two", folder, state: second.folder)
            try await eventually { Self.envelopes(for: second.id, folder).isEmpty && !Self.envelopes(for: one.id, folder).isEmpty }
            #expect(try await Self.descriptions(two).sorted() == (0..<5).map { "hex \($0)" })
            try await two.stop()

            one = try await Self.node("one", folder, state: first.folder)
            #expect(try await one.ends(of: rows.map(\.outboxID)).allSatisfy { $0 == .stored })
            try await eventually { Self.envelopes(for: one.id, folder).isEmpty }
            try await one.stop()
        }
    }

    @Test("replayed, renamed, altered and foreign files: each hex is stored once, and foreign files stay") func hostileFolder() async throws
    {
        try await TemporaryFolder.with { folder in
            let (first, second) = try await Self.strangersOfTime(folder)
            let one = try await Self.node("one", folder, state: first.folder)
            _ = try await one.send(to: second, description: "once", wait: .zero)
            try await eventually { !Self.envelopes(for: second.id, folder).isEmpty }
            try await one.stop()

            let mailbox = "\(folder.path)/\(second.id)"
            let name = try #require(Self.envelopes(for: second.id, folder).first)
            let bytes = try Data(contentsOf: URL(filePath: "\(mailbox)/\(name)"))
            var altered = bytes
            altered[bytes.count / 2] ^= 1
            let other = "01A3185C5000-00112233445566778899AABBCCDDEEFF.hxe"
            try bytes.write(to: URL(filePath: "\(mailbox)/\(other)"))
            try altered.write(to: URL(filePath: "\(mailbox)/" + other.replacing("00112233", with: "10112233")))
            try bytes.prefix(3_000).write(to: URL(filePath: "\(mailbox)/" + other.replacing("00112233", with: "20112233")))
            try Data("note".utf8).write(to: URL(filePath: "\(mailbox)/note.txt"))
            try FileManager.default.createSymbolicLink(
                atPath: "\(mailbox)/" + other.replacing("00112233", with: "30112233"), withDestinationPath: "/etc/passwd")
            #expect(mkfifo("\(mailbox)/" + other.replacing("00112233", with: "40112233"), 0o600) == 0)

            var two = try await Self.node("two", folder, state: second.folder)
            try await eventually { !Self.files(of: second.id, folder).contains(name) && !Self.files(of: second.id, folder).contains(other) }
            // The same envelope is written again while the node runs, and the kernel reports the file.
            try bytes.write(to: URL(filePath: "\(mailbox)/\(name)"))
            try await eventually { !Self.files(of: second.id, folder).contains(name) }
            #expect(try await Self.descriptions(two) == ["once"])
            try await two.stop(removing: false)
            two = try await Self.node("two", folder, state: second.folder)
            #expect(try await Self.descriptions(two) == ["once"])
            // Files that stay: the altered and the truncated one, because they may be incomplete, for a day; and those that are not
            // envelopes.
            #expect(Self.files(of: second.id, folder).count == 6)
            try await two.stop()
        }
    }

    @Test("an envelope is withdrawn when its row is cancelled; a peer with `--route none` gets none; a folder that is gone is reported")
    func cancelled() async throws {
        try await TemporaryFolder.with { folder in
            let (first, second) = try await Self.strangersOfTime(folder)
            let one = try await Self.node("one", folder, state: first.folder)
            let row = try await one.send(to: second, description: "cancelled", wait: .zero).outboxID
            try await eventually { try await one.node.outbox.row(row).waitingFor?.known == .receipt }
            #expect(try await one.node.outbox.row(row).via == "home" && Self.envelopes(for: second.id, folder).count == 1)
            let change = try await one.node.outbox.cancel(OutboxSelection.ids([row]))
            #expect(change.changed == 1 && change.mayHaveArrived == 1)
            try await eventually { Self.envelopes(for: second.id, folder).isEmpty }

            #expect(try await one.node.peers.change(second.id, PeerChange(routes: .noRoute)).routes == "none")
            let kept = try await one.send(to: second, description: "kept", wait: .zero).outboxID
            _ = try await one.node.routeList.test("home")
            #expect(try await one.node.outbox.row(kept).waitingFor?.known == .peer && Self.envelopes(for: second.id, folder).isEmpty)
            _ = try await one.node.peers.change(second.id, PeerChange(routes: .only(["home"])))
            try await eventually { try await one.node.outbox.row(kept).waitingFor?.known == .receipt }

            try FileManager.default.moveItem(atPath: folder.path, toPath: folder.path + ".away")
            let failed = try await one.send(to: second, description: "failed", wait: .zero).outboxID
            try await eventually { try await one.node.outbox.row(failed).waitingFor?.known == .route }
            #expect(try await one.node.outbox.row(failed).lastError?.hasPrefix("home: ") == true)
            #expect(try await one.node.routeList.test("home").milliseconds == nil)
            try FileManager.default.moveItem(atPath: folder.path + ".away", toPath: folder.path)
            try await eventually { try await one.node.outbox.row(failed).waitingFor?.known == .receipt }
            try await one.stop()
        }
    }

    @Test("a round is bounded, and files that stay are left out of the next ones") func rounds() async throws {
        try await TemporaryFolder.with { folder in
            let mailbox = FolderMailboxes(path: folder.path, try EnvelopeCoder(identity: .ephemeral(), boot: BootNonce(1)))
            try mailbox.create()
            for number in 0..<300 {
                let id = try #require(Envelope.ID(Hexadecimal.encode((0..<16).map { _ in UInt8(number & 0xFF) })))
                let file = "\(mailbox.ownPath)/\(EnvelopeFileName(postedAt: Int64(number), id: id))"
                try Data(repeating: 1, count: 6_000).write(to: URL(filePath: file))
            }
            let first = try mailbox.arrivals(now: 0, keepsIncomplete: true, leavingOut: { _ in false }) { _ in .trusted }
            #expect(first.postponed.count == 256 && first.hasMore && first.letters.isEmpty && first.dropped.isEmpty)
            let left = Set(first.postponed)
            let second = try mailbox.arrivals(now: 0, keepsIncomplete: true, leavingOut: left.contains) { _ in .trusted }
            #expect(second.postponed.count == 44 && !second.hasMore && left.isDisjoint(with: second.postponed))
            let third = try mailbox.arrivals(now: 0, keepsIncomplete: false, leavingOut: left.contains) { _ in .trusted }
            #expect(third.dropped.count == 44 && third.dropped.allSatisfy { $0.fault.reason == .noEnvelope })
        }
    }

    @Test("two machines with one identity and a clock that is ahead are reported, and nothing is posted to a peer with two machines")
    func identitiesAndClocks() async throws {
        try await TemporaryFolder.with { folder in
            let (first, second) = try await Self.strangersOfTime(folder)
            var one = try await Self.node("one", folder, state: first.folder)
            let now = one.node.clocks.milliseconds
            /// Posts an empty letter of a daemon process to a machine.
            func post(_ identity: Identity, boot: UInt64, to recipient: Identity, at time: Int64) async throws {
                let mailboxes = FolderMailboxes(path: folder.path, try EnvelopeCoder(identity: identity, boot: BootNonce(boot)))
                let card = try #require(mailboxes.card(of: recipient.fingerprint, known: nil))
                let file = try mailboxes.post([], to: card, at: time).file.description
                try await eventually { !Self.files(of: card.fingerprint.peerID, folder).contains(file) }
            }
            func problem() async -> String { await one.node.status().routeProblems.first?.message ?? "" }
            let (own, other) = (one.node.identity, second.node.identity)

            try await post(other, boot: 1, to: own, at: now + 50 * 3_600_000)
            let ahead = await problem()
            #expect(ahead.contains("50 h ahead") || ahead.contains("49 h ahead"), "\(ahead)")

            try await post(other, boot: 1, to: own, at: now)
            try await post(other, boot: 2, to: own, at: now + 1)
            #expect(await !problem().contains("two machines post"))
            try await post(other, boot: 1, to: own, at: now + 2)
            #expect(await problem().contains("two machines post"))
            let row = try await one.send(to: second, description: "waits", wait: .zero).outboxID
            for _ in 0..<2 {
                #expect(try await one.node.peers.all().first { $0.uuid == second.id }?.why?.contains("on the route home") == true)
                try await eventually { [node = one.node] in try await node.outbox.row(row).waitingFor?.known == .route }
                #expect(try await one.node.outbox.row(row).lastError?.contains("hexlist id rotate") == true)
                #expect(Self.envelopes(for: second.id, folder).isEmpty)
                // The next run of the node remembers that two machines post.
                try await one.stop(removing: false)
                one = try await Self.node("one", folder, state: first.folder)
            }
            try await one.stop()
        }
    }

    @Test("a stranger's envelope is removed; another card in a mailbox does not replace the known one") func strangers() async throws {
        try await TemporaryFolder.with { folder in
            let (first, second) = try await Self.strangersOfTime(folder)
            let one = try await Self.node("one", folder, state: first.folder)
            // Somebody puts another card into the mailbox.
            let coder = try EnvelopeCoder(identity: .ephemeral(), boot: BootNonce(1))
            let eve = FolderMailboxes(path: folder.path, coder)
            try Data(coder.card.bytes).write(to: URL(filePath: "\(folder.path)/\(second.id)/card.hxc"))
            _ = try await one.send(to: second, description: "for two", wait: .zero)
            let card = try #require(eve.card(of: one.node.identity.fingerprint, known: nil))
            let letter = try eve.post([Array("{}".utf8)], to: card, at: Int64(Date.now.timeIntervalSince1970 * 1_000))
            try await eventually { !Self.files(of: one.id, folder).contains(letter.file.description) }
            try await eventually { !Self.envelopes(for: second.id, folder).isEmpty }
            #expect(eve.card(of: second.node.identity.fingerprint, known: nil) == nil)
            // The owner restores its card.
            let two = try await Self.node("two", folder, state: second.folder)
            try await eventually { try Data(contentsOf: URL(filePath: "\(folder.path)/\(second.id)/card.hxc")) != Data(coder.card.bytes) }
            try await two.stop()
            _ = try await one.send(to: second, description: "for two, too", wait: .zero)
            try await eventually { !Self.envelopes(for: second.id, folder).isEmpty }
            try await one.stop()
        }
    }
}

extension Sequence {
    fileprivate func asyncMap<Value>(_ transform: (Element) async throws -> Value) async throws -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}

@Suite("PostedEnvelopes") struct PostingsTests {
    private static func posting(_ number: UInt8, _ rows: [ClosedRange<Int64>], posts: Int = 1) throws -> PostedEnvelopes.Posting {
        let id = try #require(Envelope.ID(Hexadecimal.encode(Array(repeating: number, count: 16))))
        return PostedEnvelopes.Posting(file: EnvelopeFileName(postedAt: 1_000, id: id), rows: rows, bytes: 5_260, posts: posts)
    }

    private static func id(_ number: UInt8) throws -> Envelope.ID { try posting(number, [1...1]).file.id }

    @Test("a receipt settles the rows of its frames, in parts and once") func parts() throws {
        var postings = PostedEnvelopes()
        postings.add(try Self.posting(1, [5...6, 9...9]))
        postings.add(try Self.posting(2, [10...10]))
        let rejection = HexRejection(sequence: 2, code: .tooManyLinks, message: "m")
        let first = Receipt(through: 2, status: .stored, rejected: [rejection])
        #expect(
            postings.settle(try Self.id(1), first)
                == [RowResult(id: 5, .stored), RowResult(id: 6, .refused(.tooManyLinks, message: "m"))])
        #expect(postings.settle(try Self.id(1), first).isEmpty)
        #expect(postings.settle(try Self.id(1), Receipt(through: 3, status: .held)) == [RowResult(id: 9, .held)])
        #expect(postings.all.count == 1 && postings.lastRow == 10)
        #expect(postings.settle(try Self.id(1), Receipt(through: 3, status: .held)).isEmpty)
    }

    @Test(
        "an impossible receipt settles nothing",
        arguments: [
            Receipt(through: 0, status: .stored), Receipt(through: -1, status: .stored), Receipt(through: 4, status: .stored),
            Receipt(through: .max, status: .stored), Receipt(through: 2, status: nil),
            Receipt(through: 1, status: .stored, rejected: [HexRejection(sequence: 2, code: .tooLarge)]),
            Receipt(through: 1, status: .stored, rejected: [HexRejection(sequence: 0, code: .tooLarge)]),
            Receipt(through: 3, status: .stored, rejected: [HexRejection(sequence: 1, code: .storageFull)]),
            Receipt(
                through: 3, status: .stored,
                rejected: [HexRejection(sequence: 1, code: .tooLarge), HexRejection(sequence: 1, code: .tooLarge)]),
        ])
    func impossible(_ receipt: Receipt) throws {
        var postings = PostedEnvelopes()
        postings.add(try Self.posting(1, [5...7]))
        let before = postings
        #expect(postings.settle(try Self.id(1), receipt).isEmpty && postings == before)
        #expect(postings.settle(try Self.id(2), Receipt(through: 3, status: .stored)).isEmpty && postings == before)
    }

    @Test("rows are posted again after 1, 3, 7 and 14 days without a receipt, but not while the file is there") func repetition() throws {
        let day: Int64 = 86_400_000
        for (posts, days) in [(1, 1), (2, 3), (3, 7), (4, 14), (5, nil)] as [(Int, Int64?)] {
            var postings = PostedEnvelopes()
            postings.add(try Self.posting(1, [5...7], posts: posts))
            let due = 1_000 + (days ?? 59) * day
            #expect(postings.takeOverdue(at: due - 1, present: []).isEmpty)
            #expect(postings.takeOverdue(at: due, present: Set(postings.all.map(\.file))).isEmpty)
            let again = postings.takeOverdue(at: due, present: [])
            #expect(again.map(\.rows) == (days == nil ? [] : [[5...7]]) && again.map(\.posts) == (days == nil ? [] : [posts]))
            #expect(postings.all.isEmpty == (days != nil))
            let present = Set(postings.all.map(\.file))
            #expect(postings.takeOverdue(at: 1_001 + 60 * day, present: present).isEmpty && postings.all.isEmpty)
        }
    }

    @Test("the text in the store is read again; other lines are left out") func text() throws {
        var postings = PostedEnvelopes()
        postings.add(try Self.posting(1, [5...6, 9...9]))
        var other = try Self.posting(2, [10...10], posts: 3)
        other.route = "office"
        postings.add(other)
        _ = postings.settle(try Self.id(1), Receipt(through: 1, status: .stored))
        #expect(PostedEnvelopes(text: postings.text) == postings)
        for line in [
            "", "x", "a 1 1 0 1-1", "\(postings.all[0].file) 1 0 0 1-1", "\(postings.all[0].file) 1 1 0 2-1",
            "\(postings.all[0].file) 1 1 0 1-99999999",
            // Lines with values that no posting has, as in a forged backup.
            "\(postings.all[0].file) 9223372036854775807 1 0 1-1", "\(postings.all[0].file) 1 9223372036854775807 0 1-1",
            "\(postings.all[0].file) 1 1 -1 1-1", "\(postings.all[0].file) 1 1 2 1-1", "\(postings.all[0].file) 1 1 0 1-1000000",
        ] {
            #expect(PostedEnvelopes(text: line).all.isEmpty, "\(line)")
        }
    }

    @Test("the bounds are those of one route") func bounds() throws {
        var postings = PostedEnvelopes()
        for number in 0..<UInt8(PostedEnvelopes.maximumEnvelopes) {
            var posting = try Self.posting(number, [Int64(number)...Int64(number)])
            posting.route = "home"
            #expect(postings.hasRoom(on: "home"))
            postings.add(posting)
        }
        #expect(!postings.hasRoom(on: "home") && postings.room(on: "office") == PostedEnvelopes.maximumEnvelopes)
        #expect(postings.posting(of: 7)?.file.id == (try Self.id(7)) && postings.posting(of: 64) == nil)
        postings.remove(Set(postings.all.prefix(3).map(\.file)))
        #expect(postings.room(on: "home") == 3)
    }

    @Test("an outbox of many rows is divided into letters that are full") func division() {
        let items = (0..<100).map { (key: $0, frames: [Array(repeating: UInt8(1), count: 40_000)]) }
        let letters = LetterContents.letters(items)
        #expect(letters.map(\.count) == [24, 24, 24, 24, 4] && letters.flatMap { $0.map(\.key) } == Array(0..<100))
    }
}
