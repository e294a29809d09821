import HexlistModel
import Testing

@testable import HexlistStore

@Suite(.timeLimit(.minutes(5))) struct FileTests {
    private func offer(_ number: UInt8, path: String = "/home/a/talk.pdf", ends: Int64 = start + 1_000) -> OfferRow {
        OfferRow(
            id: Array(repeating: number, count: 16), path: path, identity: "1 2 3 4 5", name: "talk.pdf", size: 3,
            sha256: Array(repeating: 9, count: 32), mediaType: "application/pdf", modified: 4, ends: ends)
    }

    private func transfer(_ peer: TestPeer, name: String = "talk.pdf") -> TransferRow {
        TransferRow(
            hex: 1, url: "hexlist://x", peer: peer.id, folder: "/home/a", mask: 0o22, name: name, part: "0123", size: 3, sha256: nil,
            modified: nil, createdAt: start)
    }

    @Test func anOfferIsForWhomItWasMadeUntilItEnds() async throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        let row = offer(1)
        try await test.store.offer([row], to: [one.id])
        try test.read { (reader: StoreReader) throws -> Void in
            #expect(try reader.offer(row.id, to: one.id) == row)
            #expect(try reader.offer(row.id, to: two.id) == nil)
            #expect(try reader.offer(Array(repeating: 2, count: 16), to: one.id) == nil)
            #expect(try reader.offer(ofPath: row.path, identity: row.identity) == row)
            #expect(try reader.offer(ofPath: row.path, identity: "1 2 3 4 6") == nil)
        }
        #expect(try test.read(lived: row.ends) { try $0.offer(row.id, to: one.id) } == nil)
        // The file is offered again, to another peer and with a later end.
        try await test.store.offer([offer(1, ends: start + 2_000)], to: [two.id])
        #expect(try test.read(lived: row.ends) { try $0.offer(row.id, to: one.id)?.ends } == start + 2_000)
        #expect(try test.read { try $0.offer(row.id, to: two.id) } != nil)
        #expect(try test.write { try $0.maintain(at: start + 2_000) }.filesForgotten == 1)
        #expect(try test.read { try $0.offer(row.id, to: two.id) } == nil)
    }

    @Test("the files of an outbox row are counted, also after their offers have ended")
    func filesOfARow() async throws {
        let (test, peer) = (try TestStore(), try TestPeer(1))
        let (a, b) = (offer(1, path: "/home/a/a"), offer(2, path: "/home/a/b"))
        try await test.store.offer([a, b], to: [peer.id])
        let row = try test.write { [id = peer.id] writer -> Int64 in
            var hexes = PreparedHexes()
            hexes.bodies = Array("{}".utf8)
            hexes.add(messageID: message(1), digest: nil, offers: [a.id, b.id, Array(repeating: 3, count: 16)])
            let recipient = PeerContact(peer: id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: start)
            return try writer.enqueue([hexes], EnqueueOptions(recipients: [recipient], now: start, lifetime: 30 * Self.day))
                .results[0].get()[0].id
        }
        let files = { try #require(try test.read { try $0.outboxFiles([row, 99])[row] }) }
        #expect(try files().count == 2 && files().bytes == 6 && files().fetched == 0 && files().ends == nil)
        // The counts are those of fetched and of failed files. A repeated report about a file does not count, and a file that was fetched
        // after a failure counts as fetched.
        let steps: [(fetched: Bool, offer: OfferRow, counts: [Int64])] = [
            (true, a, [1, 0]), (true, a, [1, 0]), (false, b, [1, 1]), (false, b, [1, 1]), (false, a, [1, 1]), (true, b, [2, 0]),
        ]
        for step in steps {
            try test.write { [id = peer.id] writer in
                if step.fetched {
                    try writer.recordFetch(of: step.offer.id, by: id)
                } else {
                    try writer.recordFailedFetch(of: step.offer.id, by: id, reason: "changed")
                }
            }
            #expect(try [files().fetched, files().failed] == step.counts)
        }
        #expect(try files().failedName == "talk.pdf" && files().failedReason == "changed")
        #expect(try test.read { try $0.offer(a.id, to: peer.id)?.isFetched } == true)
        #expect(try test.read { try $0.offers(ofRow: row).map(\.isFetched) } == [true, true])
        try test.write { [id = peer.id] writer in
            _ = try writer.settle([Settlement(id: row, state: .stored, code: nil, message: nil)], of: id, at: start)
        }
        let ends = try #require(try files().ends)
        #expect(ends == start + 30 * Self.day)
        // A row whose files were all fetched is finished.
        #expect(try test.read { try $0.outboxPage(OutboxFilter(states: [.failed], offeredAt: start)) }.items.isEmpty)
        _ = try test.write { try $0.maintain(at: ends + 1) }
        #expect(try test.read { try $0.offers(ofRow: row) }.isEmpty)
        #expect(try files().fetched == 2 && test.read { try $0.outboxRow(row) } != nil)
        _ = try test.write { try $0.maintain(at: ends + 8 * Self.day) }
        #expect(try test.read { try $0.outboxRow(row) } == nil && test.read { try $0.outboxFiles([row]) }.isEmpty)
    }

    @Test("cancelling a delivered row withdraws its files") func withdrawn() async throws {
        let (test, peer) = (try TestStore(), try TestPeer(1))
        let a = offer(1)
        try await test.store.offer([a], to: [peer.id])
        let row = try test.write { [id = peer.id] writer -> Int64 in
            var hexes = PreparedHexes()
            hexes.bodies = Array("{}".utf8)
            hexes.add(messageID: message(1), digest: nil, offers: [a.id])
            let recipient = PeerContact(peer: id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: start)
            let row = try writer.enqueue([hexes], EnqueueOptions(recipients: [recipient], now: start, lifetime: 30 * Self.day))
                .results[0].get()[0].id
            _ = try writer.settle([Settlement(id: row, state: .stored, code: nil, message: nil)], of: id, at: start)
            return row
        }
        #expect(try test.read { try $0.outboxFiles([row])[row]?.isWithdrawn } == false)
        // Files that can still be fetched are listed beside the rows of other states, until they are withdrawn, fetched or expired.
        let other = try test.write { [id = peer.id] writer -> Int64 in
            var hexes = PreparedHexes()
            hexes.bodies = Array("{}".utf8)
            hexes.add(messageID: message(2), digest: nil)
            let recipient = PeerContact(peer: id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: start)
            return try writer.enqueue([hexes], EnqueueOptions(recipients: [recipient], now: start, lifetime: 30 * Self.day))
                .results[0].get()[0].id
        }
        let ends = try #require(try test.read { try $0.outboxFiles([row])[row]?.ends })
        func listed(
            _ states: Set<OutboxState>, of peer: PeerID? = nil, at time: Int64? = nil, newestFirst: Bool = false
        ) throws -> [Int64] {
            let filter = OutboxFilter(peer: peer, states: states, offeredAt: time)
            return try test.read { try $0.outboxPage(filter, newestFirst: newestFirst) }.items.map(\.id)
        }
        #expect(try listed([.queued]) == [other])
        #expect(try listed([.queued], at: start) == [row, other] && listed([.queued], at: start, newestFirst: true) == [other, row])
        #expect(try listed([.failed], at: start) == [row] && listed([.stored], at: start) == [row])
        #expect(try listed([.failed], of: peer.id, at: start) == [row] && listed([.failed], of: TestPeer(2).id, at: start) == [])
        #expect(try listed([.failed], at: ends - 1) == [row] && listed([.failed], at: ends) == [])
        let pages = try test.read { reader in
            let filter = OutboxFilter(states: [.queued], offeredAt: start)
            let first = try reader.outboxPage(filter, newestFirst: true, limit: 1)
            let second = try reader.outboxPage(filter, newestFirst: true, limit: 1, after: first.next ?? 0)
            return (first.items.map(\.id), second.items.map(\.id))
        }
        #expect(pages == ([other], [row]))
        _ = try await test.store.cancel(.ids([row]), at: start)
        #expect(try test.read { try $0.outboxFiles([row])[row]?.isWithdrawn } == true)
        #expect(try test.read { try $0.offer(a.id, to: peer.id) } == nil)
        #expect(try listed([.failed], at: start) == [])
    }

    @Test("sizes come from peers: sums saturate at 2^62") func hostileSizes() async throws {
        let test = try TestStore()
        var row = transfer(try TestPeer(1))
        (row.size, row.bytes, row.state) = (.max, .max, .done)
        let rows = [row, row, row]
        _ = try await test.store.addTransfers(rows)
        let sums = try test.read { try $0.transferSums(1...3) }
        #expect(sums[.done]?.size == 1 << 62 && sums[.done]?.bytes == 1 << 62 && sums[.done]?.count == 3)
    }

    private static let day: Int64 = 86_400_000

    /// A store with a trusted peer whose files are fetched automatically.
    private func fetching(_ limit: Int64) throws -> (test: TestStore, peer: TestPeer) {
        let (test, peer) = (try TestStore(), try TestPeer(1))
        _ = try test.trust(peer)
        try test.write { [id = peer.id] writer in
            _ = try writer.change { try writer.run("UPDATE peer SET fetchLimit = ? WHERE uuid = ?", limit, id.uuid) }
        }
        return (test, peer)
    }

    private func pooled(_ peer: TestPeer, _ number: UInt8, size: Int64) -> TransferRow {
        var row = transfer(peer)
        (row.place, row.sha256, row.size) = (.pool, Array(repeating: number, count: 32), size)
        return row
    }

    @Test("bytes of automatic fetches are charged to the day they arrive")
    func reservations() throws {
        let (test, peer) = try fetching(1_000_000)
        let now = start / Self.day * Self.day
        let added = try test.store.addAutomaticTransfers(
            [pooled(peer, 1, size: 600_000)], of: peer.id, upTo: 1, at: now, poolBytes: 1 << 30)
        var row = try #require(added.first)
        let today = { (time: Int64) in try test.read { try $0.fetchAllowance(of: peer.id, at: time)?.today } }
        #expect(try row.reservedBytes == 600_000 && today(now) == 600_000)
        // Bytes that are still missing were charged already, so they may arrive without another charge.
        #expect(try test.store.reserveFetch(row.id, of: peer.id, bytes: 600_000, at: now) == 0)
        (row.reservedBytes, row.bytes) = (100_000, 500_000)
        try test.write { [row] in try $0.updateTransfers([row]) }
        #expect(try test.store.reserveFetch(row.id, of: peer.id, bytes: 100_000, at: now) == 0 && today(now) == 600_000)
        // The charge was not refunded, as after a kill: repeated bytes are charged again, up to the limit.
        #expect(try test.store.reserveFetch(row.id, of: peer.id, bytes: 400_000, at: now) == 0 && today(now) == 1_000_000)
        #expect(try test.store.reserveFetch(row.id, of: peer.id, bytes: 1, at: now) == nil && today(now) == 1_000_000)
        // The next day starts with the outstanding bytes, which count when a hex is checked.
        let next = now + Self.day
        #expect(try today(next) == 100_000)
        #expect(try test.store.reserveFetch(row.id, of: peer.id, bytes: 600_000, at: next) == 0 && today(next) == 600_000)
        // Without trust or a fetch limit nothing is fetched.
        try test.write { [id = peer.id] writer in
            _ = try writer.change { try writer.run("UPDATE peer SET fetchLimit = NULL WHERE uuid = ?", id.uuid) }
        }
        #expect(try test.store.reserveFetch(row.id, of: peer.id, bytes: 1, at: next) == nil)
    }

    @Test("files waiting for automatic fetching use at most half of the cache")
    func halfOfThePool() async throws {
        let (test, peer) = try fetching(1 << 30)
        let add = { (number: UInt8, size: Int64) in
            try test.store.addAutomaticTransfers([pooled(peer, number, size: size)], of: peer.id, upTo: 1, at: start, poolBytes: 1_000)
        }
        #expect(throws: HexlistError.self) { try add(1, 501) }
        #expect(try add(1, 300).count == 1)
        #expect(throws: HexlistError.self) { try add(2, 201) }
        #expect(try add(2, 200).count == 1)
        let sums = try test.read { try $0.poolSums() }
        #expect(sums.automaticBytes == 500 && sums.automaticFiles == 2 && sums.comingBytes == 500)
        // Files that a user requested may use the other half of the space.
        #expect(try await test.store.addTransfers([pooled(peer, 3, size: 500)], poolBytes: 1_000).count == 1)
        #expect(try test.read { try $0.poolSums().comingBytes } == 1_000)
    }

    @Test("a file counts as present only for the peers that sent it")
    func origins() async throws {
        let (test, peer, other) = (try TestStore(), try TestPeer(1), try TestPeer(2))
        let digest = [UInt8](repeating: 1, count: 32)
        var rows = try await test.store.addTransfers([pooled(peer, 1, size: 3)])
        #expect(try test.read { try $0.digests(from: peer.id) } == [digest] && test.read { try $0.digests(from: other.id) }.isEmpty)
        (rows[0].state, rows[0].endedAt, rows[0].finalName) = (.done, start, "a")
        try test.write { [rows] in try $0.updateTransfers(rows) }
        let here = { (peer: PeerID?) in try test.read { try $0.pooled([digest], from: peer).map(\.name) } }
        #expect(try here(peer.id) == ["a"] && here(other.id).isEmpty && here(nil) == ["a"])
        #expect(try test.read { try $0.pooledOrigins() } == [PooledOrigin(sha256: digest, peer: peer.id)])
        var again = try await test.store.addTransfers([pooled(other, 1, size: 3)])
        (again[0].state, again[0].endedAt, again[0].finalName) = (.done, start, "a")
        try test.write { [again] in try $0.updateTransfers(again) }
        #expect(try here(other.id) == ["a"] && test.read { try $0.poolSums().files } == 1)
        try test.store.dropPooled([1])
        #expect(try test.read { try $0.pooledOrigins() }.isEmpty)
    }

    @Test func aTransferIsListedAndToldAndForgotten() async throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        var rows = try await test.store.addTransfers([transfer(peer), transfer(peer, name: "b"), transfer(peer, name: "c")])
        #expect(rows.map(\.id) == [1, 2, 3])
        #expect(try test.read { try $0.waitingTransfers().items } == rows)
        try test.store.placeTransfer(1, inode: "1 2", name: "talk (2).pdf")
        #expect(try test.read { try $0.transfers([1]) }.map(\.finalName) == ["talk (2).pdf"])
        (rows[0].state, rows[0].bytes, rows[0].endedAt, rows[0].finalName) = (.done, 3, start + 5, "talk (2).pdf")
        (rows[1].state, rows[1].reason, rows[1].endedAt) = (.failed, "changed", start + 5)
        let changed = rows
        try test.write { try $0.updateTransfers(changed) }
        try test.write { try $0.updateTransfers(changed) }  // a repeated update causes no second event
        try test.read { (reader: StoreReader) throws -> Void in
            #expect(try reader.waitingTransfers().items.map(\.id) == [3])
            #expect(try reader.transferPage([.done, .failed], limit: 10).items.map(\.id) == [2, 1])
            let page = try reader.transferPage(limit: 2)
            #expect(page.items.map(\.id) == [3, 2] && page.next == 2)
            #expect(try reader.transferPage(before: 2, limit: 2).items.map(\.id) == [1])
            #expect(try reader.transferSums(1...3)[.done]?.bytes == 3)
            #expect(try reader.eventPage(since: 0, limit: 9).items.map(\.type) == [.transferDone, .transferFailed])
        }
        #expect(try await test.store.forgetTransfers([1, 3]) == 1)  // transfer 3 is waiting, so it is not forgotten
        #expect(try test.write { try $0.maintain(at: start + 31 * 86_400_000) }.filesForgotten == 1)
        #expect(try test.read { try $0.transferPage(limit: 9).items.map(\.id) } == [3])
    }

    @Test func whatPeersAnnounceHasASum() async throws {
        let test = try TestStore()
        var row = transfer(try TestPeer(1))
        row.size = .max
        _ = try await test.store.addTransfers([row, row])
        let size = try test.read { try $0.transferSums(1...2)[.waiting]?.size }
        #expect(size == 4_611_686_018_427_387_904)
        #expect([Int64.max, 1].clampedSum == .max && [Int64(2), 3].clampedSum == 5)
    }
}
