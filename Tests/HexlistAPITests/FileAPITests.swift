import DaemonTestSupport
import Foundation
import HexlistAPI
import HexlistClient
import HexlistModel
import Testing

@Suite("Files by the local API", .timeLimit(.minutes(5)))
struct FileAPITests {
    @Test("offered, sent, fetched, listed and forgotten")
    func wholeWay() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "hexlist-api-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder.appending(path: "to"), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "talk.pdf")
        try Data("talk".utf8).write(to: file)
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            for daemon in daemons { try await daemon.awaitPeers(1) }
            for (one, other) in [(ada, bob), (bob, ada)] { _ = try await one.client.trust(other.uuid, fingerprint: nil) }
            let offer = try await ada.client.offer(OfferRequest(paths: [file.path], to: ["bob"])) { _ in }
            #expect(offer.files == 1 && offer.size == 4 && offer.leftOut == 0)
            // The same again is the same link, and nothing is read.
            #expect(try await ada.client.offer(OfferRequest(paths: [file.path], to: ["bob"])) { _ in } == offer)
            _ = try await ada.client.send(
                HexlistClient.Send(content: .hex(Array(offer.hex.bytes)), peers: ["bob"], timeout: TestDaemon.patience))
            let request = TransferRequest(hex: 1, to: folder.appending(path: "to").path)
            let start = try await bob.client.fetch(request)
            #expect(start == TransferStart(first: 1, last: 1, known: 0, passedOver: 0))
            try await bob.client.watchTransfers(1...1) { $0.done == 0 }
            #expect(try Data(contentsOf: folder.appending(path: "to/talk.pdf")) == Data("talk".utf8))
            let listed = try await bob.client.transfers(limit: 10).items
            #expect(listed.map(\.state.text) == ["done"] && listed[0].file == "talk.pdf" && listed[0].label.text() == "ada")
            #expect(try await bob.client.transfer(1) == listed[0])
            #expect(try await bob.client.transfers([.failed, .waiting], limit: 10).items.isEmpty)
            for (code, change) in [
                (HexlistError.Code.badRequest, { @Sendable in _ = try await bob.client.cancelTransfer(1) }),
                (.badRequest, { @Sendable in _ = try await bob.client.retryTransfer(1, force: true) }),
                (.notFound, { @Sendable in _ = try await bob.client.transfer(2) }),
                (.notFound, { @Sendable in _ = try await bob.client.cancelTransfer(2) }),
                (.notFound, { @Sendable in _ = try await bob.client.fetch(TransferRequest(hex: 9, to: "/tmp")) }),
                (.notFound, { @Sendable in _ = try await bob.client.fetch(TransferRequest(hex: 1, links: [2], to: "/tmp")) }),
                (.badRequest, { @Sendable in _ = try await bob.client.fetch(TransferRequest(hex: 1, to: "tmp")) }),
                (.badRequest, { @Sendable in _ = try await bob.client.fetch(TransferRequest(hex: 1, to: "/tmp", umask: 512)) }),
                (.notFound, { @Sendable in _ = try await ada.client.offer(OfferRequest(paths: ["/"], to: ["nobody"])) { _ in } }),
                (.badRequest, { @Sendable in _ = try await ada.client.offer(OfferRequest(paths: ["/nowhere"], to: ["bob"])) { _ in } }),
                (.badRequest, { @Sendable in _ = try await ada.client.offer(OfferRequest(paths: [], to: ["bob"])) { _ in } }),
            ] {
                let error = await #expect(throws: HexlistError.self) { try await change() }
                #expect(error?.code == code, "\(String(describing: error))")
            }
            #expect(try await bob.client.forgetTransfer(1) == ChangedShape(changed: 1))
            #expect(try await bob.client.transfers(limit: 10).items.isEmpty)
        }
    }
}
