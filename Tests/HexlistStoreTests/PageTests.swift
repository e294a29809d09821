import GRDB
import HexlistJSON
import HexlistModel
import Testing

@testable import HexlistStore

/// Pages are bounded in bytes too, and omitted columns are not read.
@Suite(.timeLimit(.minutes(5))) struct PageTests {
    private func fatHex(_ number: UInt64) -> IncomingHex {
        var content = HexContent()
        let text = content.add(String(repeating: "x", count: 65_536))
        (content.senderUUID, content.senderName, content.hexDescription, content.hexColor) = (text, text, text, text)
        return IncomingHex(content: content, messageID: message(number), weight: 300_000)
    }

    @Test func aPageOfHexesHasFourMebibytesAtMost() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        for number in 1...40 { _ = try test.receive([fatHex(UInt64(number))], from: peer) }
        var (after, pages): (HexCursor?, [[Int64]]) = (nil, [])
        repeat {
            let page = try test.read { try $0.hexPage(limit: 1_000, after: after) }
            pages.append(page.items.map(\.id))
            after = page.next
        } while after != nil
        #expect(pages.flatMap(\.self) == (1...40).reversed())
        #expect(pages.map(\.count) == [15, 15, 10])  // each hex has a quarter of a mebibyte, and the name of the peer
        #expect(try test.read { try $0.hexPage(limit: 2) }.items.map(\.id) == [40, 39])
    }

    @Test func whereHexesAreIsAskedWithoutReadingThem() throws {
        let test = try TestStore()
        let (friend, stranger) = (try TestPeer(1), try TestPeer(2))
        _ = try test.trust(friend)
        _ = try test.receive([hex(1)], from: friend)
        _ = try test.receive([hex(2)], from: stranger)
        #expect(try test.read { try $0.locations(of: [1, 2, 2, 99]) } == [1: .inbox, 2: .held])
    }

    @Test func oneTransactionChangesFourMebibytesAtMostButOneHexAlways() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        for number in 1...30 { _ = try test.receive([fatHex(UInt64(number))], from: peer) }
        let page = try test.read { try $0.hexIDs(.list(HexFilter())) }
        #expect(page.items == (18...30).reversed() && page.next == 18)
        #expect(try test.read { try $0.hexIDs(.ids(2...25, in: nil)) }.next == 14)
    }

    @Test func aPageOfEventsHasFourMebibytesAtMostButOneEventAlways() throws {
        let test = try TestStore()
        let data = JSONText.object([("message", String(repeating: "m", count: 3 << 20))])
        try test.write { writer in
            for _ in 1...3 { try writer.appendEvent(.alertReceived, at: start, data: data) }
            try writer.appendEvent(.peerUp, at: start)
        }
        // An event that an earlier version recorded, which alone exceeds the bound of a page.
        let long = JSONText.object([("message", String(repeating: "m", count: 9 << 20))])
        try test.write { _ = try $0.appendEvent(.alertReceived, at: start, data: long) }
        var (since, pages): (Int64?, [[Int64]]) = (0, [])
        while let from = since {
            let page = try test.read { try $0.eventPage(since: from, limit: 1_000) }
            pages.append(page.items.map(\.number))
            since = page.next
        }
        #expect(pages == [[1], [2], [3, 4], [5]])
    }

    @Test func aRunOfEventsCountsItsDataForEach() throws {
        let test = try TestStore()
        let data = JSONText.object([("message", String(repeating: "m", count: 1 << 20))])
        try test.write { writer in
            _ = try writer.change { try writer.record(.hexRejected, at: start, count: 10, peer: nil, outboxID: 1, data: data) }
        }
        let page = try test.read { try $0.eventPage(since: 0, limit: 1_000) }
        #expect(page.items.map(\.number) == [1, 2, 3] && page.next == 3)
    }

    @Test func aPageOfTheOutboxHasFourMebibytesAtMost() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.write { try $0.enqueue((1...3).map { outgoing($0, to: peer) }) }
        let text = String(repeating: "m", count: 3 << 20)
        try test.write { writer in
            try writer.note((1...3).map { FailedAttempt(id: $0, attempts: 1, lastError: text) })
        }
        let page = try test.read { try $0.outboxPage(limit: 1_000) }
        #expect(page.items.map(\.id) == [1] && page.next == 1)
        #expect(try test.read { try $0.outboxPage(limit: 1_000, after: 2) }.next == nil)
    }
}
