import Crypto
import HexlistModel
import HexlistWire
import Testing

@testable import HexlistEnvelope
@testable import HexlistNode

@Suite("Contents of letters") struct LetterContentsTests {
    private static let store = """
        {"operationType":"Store","jmObjectType":"Hex","messageID":"AC9448FA-FF63-4C6A-8857-7B159D87C0DC","jmObject":{"links":[{"url":"u"}]}}
        """
    private static let ack = """
        {"operationType":"Ack","jmObjectType":"Receipt","jmObject":{"envelope":"7C4B67F43775DE5716026113AD33B17B","through":1,"status":"held"}}
        """

    private static func contents(_ frames: [String]) throws -> LetterContents {
        let signer = IdentitySigner(P256.Signing.PrivateKey())
        let card = try Card(of: signer, sealingKey: SealingPrivateKey(seed: Array(repeating: 1, count: 32)))
        return LetterContents(Letter(card: card, signedAt: 0, boot: BootNonce(1), frames: frames.map { Array($0.utf8) }))
    }

    private static func id() throws -> Envelope.ID { try #require(Envelope.ID("7C4B67F43775DE5716026113AD33B17B")) }

    @Test("hexes with a message id and receipts with an envelope count; other frames do not") func frames() throws {
        let contents = try Self.contents([
            Self.store, Self.store.replacing(#""messageID":"AC9448FA-FF63-4C6A-8857-7B159D87C0DC","#, with: ""), Self.ack,
            Self.ack.replacing(#""envelope":"7C4B67F43775DE5716026113AD33B17B","#, with: ""), #"{"operationType":"Ping"}"#,
        ])
        #expect(contents.hexes.map(\.sequence) == [1])
        #expect(contents.receipts.map(\.envelope) == [try Self.id()] && contents.receipts.map(\.receipt.status) == [.held])
        #expect(contents.isReceiptOwed && contents.weight > Self.store.utf8.count)
        #expect(try !Self.contents([Self.ack]).isReceiptOwed && !Self.contents([]).isReceiptOwed)
    }

    @Test("a receipt has the results by frame, a change of status begins another one") func receipts() throws {
        let refused = Self.store.replacing(#""operationType":"Store""#, with: #""operationType":"Later""#)
        let contents = try Self.contents([Self.store, Self.store, refused, Self.store, Self.store])
        let receipts = try #require(
            contents.receipts(of: Self.id(), [.stored, .duplicate(of: .stored), .held, .refused(.tooManyLinks, message: "m")]))
        #expect(receipts.map(\.through) == [3, 5] && receipts.map(\.status) == [.stored, .held])
        #expect(receipts.map { $0.rejected.map(\.sequence) } == [[3], [5]])
        #expect(receipts.map { $0.rejected.map(\.code) } == [[.unsupportedOperation], [.tooManyLinks]])
        #expect(try receipts.allSatisfy { $0.envelope == (try Self.id()).description })
        // The sender reads the receipts of the letter.
        var postings = PostedEnvelopes()
        postings.add(PostedEnvelopes.Posting(file: EnvelopeFileName(postedAt: 0, id: try Self.id()), rows: [11...15], bytes: 1, posts: 1))
        let read = try Self.contents(receipts.map { String(decoding: LetterContents.frame($0), as: UTF8.self) })
        let results = read.receipts.flatMap { postings.settle($0.envelope, $0.receipt) }
        #expect(results.map(\.id) == [11, 12, 13, 14, 15] && postings.all.isEmpty)
        #expect(results.map(\.result.state) == [.stored, .stored, .rejected, .held, .rejected])
    }

    @Test("a temporary refusal defers the whole receipt") func deferred() throws {
        let contents = try Self.contents([Self.store, Self.store])
        #expect(contents.receipts(of: try Self.id(), [.stored, .refused(.storageFull)]) == nil)
        #expect(contents.receipts(of: try Self.id(), []) == nil)
    }

    @Test("16 frames that are not JSON make the letter malformed, however many there are") func malformed() throws {
        #expect(try Self.contents([Self.store] + Array(repeating: "x", count: 15)).isReceiptOwed)
        let contents = try Self.contents([Self.store] + Array(repeating: "x", count: 190_000))
        #expect(contents.isMalformed && !contents.isReceiptOwed)
    }
}
