import HexlistAPI
import HexlistModel
import HexlistWire
import TestSupport
import Testing

@testable import HexlistTransfers

/// Files between two machines without nodes.
@Suite(.timeLimit(.minutes(5))) struct FileTransfersTests {
    private func withSides(_ body: (Side, Side) async throws -> Void) async throws {
        try await TemporaryFolder.with { one in
            try await TemporaryFolder.with { two in
                let sides = (try await Side(in: one), try await Side(in: two))
                try await body(sides.0, sides.1)
                try await sides.0.stop()
                try await sides.1.stop()
            }
        }
    }

    @Test("an offered file is fetched once its owner has a session, and the owner records that")
    func offered() async throws {
        try await withSides { one, two in
            try one.folder.write("text", to: "a.txt")
            let offer = try await one.transfers.offers.offer(["\(one.folder.path)/a.txt"], for: .peers([two.id]), protecting: []) { _ in }
            var decoder = WrapperDecoder()
            let content = try decoder.decodeHex(Array(offer.hex.text.utf8), acceptsLocalNames: false).get().content
            let hex = try await two.store.addMine(content, at: 1)
            let start = try await two.transfers.fetch(TransferRequest(hex: hex, cache: true))
            let id = try #require(start.first)
            #expect(try await two.transfers.transfer(id).waitingFor == "peer")
            try await one.meets(two)
            try await two.meets(one)
            try await eventually { try await two.transfers.transfer(id).endedAt != nil }
            let row = try await two.transfers.transfer(id)
            #expect(row.state.known == .done && row.bytes == 4, "\(row)")
            #expect(try await two.transfers.cache.page(before: nil, limit: 9).rows.map(\.file.file) == ["a.txt"])
            try await eventually { one.peers.events.withLock { $0 } == [.offerFetched] }
        }
    }

    @Test("a peer that the owner does not trust gets no file")
    func notTrusted() async throws {
        try await withSides { one, two in
            try await two.meets(one)
            let link = "hexlist://\(one.id)/share/s/a"
            var content = HexContent()
            content.links = [LinkContent(url: content.add(link), linkDescription: .empty, service: content.add("Unknown"))]
            let hex = try await two.store.addMine(content, at: 1)
            let id = try #require(try await two.transfers.fetch(TransferRequest(hex: hex, to: two.folder.path)).first)
            try await eventually { try await two.transfers.transfer(id).reason != nil }
            let row = try await two.transfers.transfer(id)
            #expect(row.state.known != .done && row.bytes == 0, "\(row)")
            #expect(try await two.transfers.cancel(id).state.known == .cancelled)
        }
    }
}
