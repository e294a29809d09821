import Crypto
import HexlistEnvelope
import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Envelopes of a broker in memory", .timeLimit(.minutes(5))) struct MQTTInboxTests {
    @Test("envelopes that do not fit are discarded, and a new connection is needed once half is free") func bounds() {
        var inbox = MQTTInbox(byteLimit: 100)
        let added = [inbox.add(Array(repeating: 1, count: 60), id: 1), inbox.add(Array(repeating: 2, count: 40), id: 2)]
        #expect(added == [true, true])
        #expect(!inbox.needsConnection)
        let third = inbox.add([3], id: 3)
        #expect(!third && inbox.envelopes.map(\.id) == [1, 2])
        #expect(!inbox.needsConnection)
        #expect(inbox.remove("1") == 1 && inbox.needsConnection, "40 bytes are left")
        #expect(inbox.remove("1") == nil && inbox.remove("x") == nil)
        var isPlanned = inbox.clear()
        #expect(isPlanned && inbox.envelopes.isEmpty && !inbox.needsConnection)
        let later = inbox.add([1], id: nil)
        #expect(later && inbox.envelopes.map(\.name) == ["3"], "names are not used again")
        #expect(inbox.remove("3") == nil && inbox.envelopes.isEmpty)
        isPlanned = inbox.clear()
        #expect(!isPlanned)
    }

    @Test("the number of envelopes is bounded as well as their bytes") func counts() {
        var inbox = MQTTInbox(countLimit: 4)
        for id in 1...4 as ClosedRange<UInt16> {
            #expect(inbox.hasRoom)
            let isAdded = inbox.add([], id: id)
            #expect(isAdded)
        }
        #expect(!inbox.hasRoom)
        let isAdded = inbox.add([], id: nil)
        #expect(!isAdded && !inbox.needsConnection, "a message without a packet id does not come again")
        let another = inbox.add([], id: 5)
        #expect(!another && inbox.envelopes.count == 4)
        for name in ["1", "2"] { #expect(inbox.remove(name) != nil && inbox.hasRoom && !inbox.needsConnection) }
        #expect(inbox.remove("3") == 3 && inbox.needsConnection)
    }

    @Test("there is room while the longest envelope fits into the bytes") func room() {
        var inbox = MQTTInbox()
        let longest = [UInt8](repeating: 0, count: Envelope.sizes.upperBound)
        var count = 0
        while inbox.hasRoom, inbox.add(longest, id: 1) { count += 1 }
        #expect(count == 17 && inbox.envelopes.count == 17)
    }

    @Test("the results of one post are reported together, once") func publishes() async throws {
        let one = try await TestNode("one", on: nil)
        let peer = one.id
        let id = try #require(Envelope.ID(String(repeating: "AB", count: 16)))
        let files = (0..<3).map { (file: EnvelopeFileName(postedAt: Int64($0), id: id), bytes: $0) }
        let results = await one.node.perform { node in
            var publishes = MQTTPublishes()
            let found = Found()
            let first = publishes.begin(files, to: peer) { result, _ in found.results.append(result) }
            let second = publishes.begin(Array(files.prefix(1)), to: peer) { result, _ in found.results.append(result) }
            #expect(first == 0 && second == 3)
            #expect(publishes.recipient(of: 2) == peer && publishes.recipient(of: 4) == nil)
            publishes.accepted(1)?(node)
            publishes.failed(2, .full)?(node)
            publishes.accepted(1)?(node)
            #expect(found.results.isEmpty)
            publishes.accepted(3)?(node)
            publishes.accepted(0)?(node)
            return found.results
        }
        #expect(results.map { $0.posted.keys.sorted() } == [[0], [0, 1]] && results.map(\.obstacle) == [nil, .full])
        try await one.stop()
    }

    @Test("a test letter counts in both orders: read before and after its post is confirmed; a replay does not") func tests() throws {
        let ids = try (1...3).map { try #require(Envelope.ID(String(repeating: "0\($0)", count: 16))) }
        var tests = RouteTestLetters()
        let (first, second) = (tests.begin { _ in }, tests.begin { _ in })
        #expect(tests.posted(first, as: ids[0]) == nil && tests.read(ids[2]) == nil)
        #expect(tests.read(ids[0]) != nil && tests.read(ids[0]) == nil, "posted, then read")
        #expect(tests.read(ids[1]) == nil)
        #expect(tests.posted(second, as: ids[1]) != nil, "read, then posted")
        #expect(tests.isEmpty && tests.end(second) == nil)
        let third = tests.begin { _ in }
        #expect(tests.posted(third, as: ids[1]) == nil, "read letters are forgotten with the last test")
        #expect(tests.endAll().count == 1 && tests.isEmpty)
        #expect(tests.posted(third, as: ids[1]) == nil && tests.read(ids[1]) == nil)
    }

    /// Collects the results of posts. Confined to the node of its test.
    private final class Found: @unchecked Sendable {
        var results: [PostResult] = []
    }
}
