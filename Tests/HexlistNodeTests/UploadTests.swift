import Foundation
import HexlistAPI
import HexlistModel
import HexlistWire
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import HexlistFiles
@testable import HexlistNode
@testable import HexlistStore
@testable import HexlistTransfers

/// Files uploaded in pieces: real SQLite, real files.
@Suite(.serialized, .timeLimit(.minutes(5))) struct UploadTests {
    private func withFriends(_ body: (TestNode, TestNode) async throws -> Void) async throws {
        let link = InMemoryLink()
        let (one, two) = (try await TestNode("one", on: link), try await TestNode("two", on: link))
        try await one.untilListed(two)
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        try await body(one, two)
        try await one.stop()
        try await two.stop()
    }

    private func pieces(_ texts: String..., fault: (any Error)? = nil) -> AsyncThrowingStream<ByteBuffer, any Error> {
        AsyncThrowingStream { stream in
            for text in texts { stream.yield(ByteBuffer(string: text)) }
            stream.finish(throwing: fault)
        }
    }

    private func copies(_ one: TestNode) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: one.folder.appending(path: "offers").path)) ?? []
    }

    /// Deletes the copies of ended offers, and waits until they are deleted.
    private func tidy(_ one: TestNode) async throws {
        one.transfers.offers.tidyCopies()
        try await called { done in FileOffers.queue.async { done(()) } }
    }

    private func maintain(_ one: TestNode, hours: Int64) throws {
        _ = try one.node.store.writeSync { try $0.maintain(after: hours * 3_600_000) }
    }

    @Test func aCopyIsKeptForAnHourAndLongerOnceItsHexIsSent() async throws {
        try await withFriends { one, two in
            let lost = try await one.transfers.offers.upload("lost", size: 0, to: [two.id], pieces())
            let made = try await one.transfers.offers.upload("../ta\u{202E}lk.pdf", size: 8, to: [two.id], pieces("four", "four"))
            #expect(made.files == 1 && made.size == 8 && lost.size == 0)
            var decoder = WrapperDecoder()
            let content = try decoder.decodeHex(Array(made.hex.text.utf8), acceptsLocalNames: false).get().content
            #expect(content.links.map { content.string($0.linkDescription) } == ["_ta_lk.pdf"])
            let rows = try await one.node.store.read { try $0.offers(in: one.transfers.offers.copies.path) }
            #expect(rows.map { $0.size }.sorted() == [0, 8] && copies(one).count == 2)
            for name in copies(one) {
                let path = one.folder.appending(path: "offers").appending(path: name).path
                #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
            }
            _ = try await one.node.outbox.send(SendRequest(content: .hex(content), peers: [two.id], key: nil), until: .now)
            try maintain(one, hours: 2)
            try await tidy(one)
            #expect(copies(one).count == 1)
            try maintain(one, hours: 61 * 24)
            try await tidy(one)
            #expect(copies(one).isEmpty)
        }
    }

    @Test func whatIsCutOffOrOfAnotherLengthLeavesNothing() async throws {
        struct Gone: Error {}
        try await withFriends { one, two in
            let attempts: [(size: Int64, pieces: AsyncThrowingStream<ByteBuffer, any Error>, code: HexlistError.Code?)] = [
                (8, pieces("four", fault: Gone()), nil), (8, pieces("four"), .badRequest), (3, pieces("four"), .badRequest),
                (Uploads.largest + 1, pieces(), .tooLarge),
            ]
            for (size, pieces, code) in attempts {
                let error = await #expect(throws: (any Error).self) {
                    try await one.transfers.offers.upload("a", size: size, to: [two.id], pieces)
                }
                #expect((error as? HexlistError)?.code == code)
            }
            var tight = await one.node.configuration
            tight.limits.diskReserveBytes = .max / 2
            await one.node.reconfigure(tight)
            let error = await #expect(throws: HexlistError.self) {
                try await one.transfers.offers.upload("a", size: 4, to: [two.id], pieces("four"))
            }
            #expect(error?.code == .storageFull)
            #expect(copies(one).isEmpty && one.transfers.uploads.offers.isEmpty)
            let offers = try await one.node.store.read { [path = one.transfers.offers.copies.path] in try $0.offers(in: path) }
            #expect(offers.isEmpty)
        }
    }

    @Test func aRoundDuringAnUploadLeavesItAlone() async throws {
        try await withFriends { one, two in
            let asked = Mutex(0)
            // The second piece is requested once the first is written.
            let pieces = AsyncThrowingStream<ByteBuffer, any Error> {
                let number = asked.withLock { asked in
                    asked += 1
                    return asked
                }
                if number == 2 {
                    #expect(copies(one).count == 1)
                    try await tidy(one)
                    #expect(copies(one).count == 1)
                }
                return number < 3 ? ByteBuffer(string: "four") : nil
            }
            let taken = try await one.transfers.offers.upload("a", size: 8, to: [two.id], pieces)
            #expect(taken.files == 1)
            try await tidy(one)
            #expect(copies(one).count == 1)
        }
    }

    @Test func bounds() throws {
        let uploads = Uploads()
        let ids = (0..<4).map { _ in OfferID.random }
        func code(_ size: Int64, _ known: [Int64]) -> HexlistError.Code? {
            do {
                try uploads.begin(ids[3], size: size, known: known)
                uploads.end(ids[3])
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code(Uploads.largest, []) == nil && code(Uploads.largest + 1, []) == .tooLarge)
        #expect(code(1, [Uploads.bytesTogether - 1]) == nil && code(1, [Uploads.bytesTogether]) == .storageFull)
        #expect(code(1, [.max, .max]) == .storageFull)
        #expect(code(0, Array(repeating: 0, count: Uploads.filesTogether)) == .storageFull)
        try uploads.begin(ids[0], size: Uploads.bytesTogether - Uploads.largest * 3, known: [])
        #expect(code(Uploads.largest, [Uploads.largest * 3]) == .storageFull)
        try uploads.begin(ids[1], size: 0, known: [])
        #expect(code(0, []) == .recentlyFailed)
        uploads.end(ids[1])
        #expect(code(0, []) == nil && uploads.offers == [ids[0]])
    }
}
