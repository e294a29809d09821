import DaemonTestSupport
import Foundation
import HexlistAPI
import HexlistClient
import HexlistModel
import TestSupport
import Testing

@testable import HexlistDaemon

/// Files of My Hexlist and of shared hexes over the local API: daemons of two persons and of a third who is trusted but no member.
@Suite("Files of shared hexes over the local API", .serialized, .timeLimit(.minutes(5)))
struct ListFileAPITests {
    private static func trusting(_ one: TestDaemon, _ two: TestDaemon) async throws {
        for (here, there) in [(one, two), (two, one)] { _ = try await here.client.trust(there.uuid, fingerprint: nil) }
    }

    /// Waits on the event stream until `found` returns a value.
    private static func wait<Value>(_ daemon: TestDaemon, _ found: (SharedHexes) async throws -> Value?) async throws -> Value {
        var value: Value?
        try await daemon.client.watchSharedHexes {
            value = try await found($0)
            return value == nil
        }
        return try #require(value)
    }

    private static func share(_ daemon: TestDaemon, _ hex: Int64, _ member: TestDaemon, _ access: ShareAccess) async throws {
        _ = try await daemon.client.shareMine(hex, ShareHexRequest(with: [.init(peer: member.uuid, access: access)]))
    }

    /// Fetches the files of a hex into a new folder.
    /// - Returns: the text of the only file, or the reason why it was not fetched.
    private static func fetch(_ hex: Int64, by daemon: TestDaemon, into folder: URL) async throws -> String {
        let target = folder.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
        let start = try await daemon.client.fetch(TransferRequest(hex: hex, to: target.path, force: true))
        let id = try #require(start.first)
        try await daemon.client.watchTransfers(id...id) { !$0.isQuiet }
        let transfer = try await daemon.client.transfer(id)
        guard transfer.state.known == .done else { return transfer.reason ?? transfer.state.text }
        return String(decoding: try Data(contentsOf: URL(filePath: transfer.folder).appending(path: transfer.file)), as: UTF8.self)
    }

    /// Fetches a file of one machine with a hex that has the same link, as a peer can make who learns the link.
    private static func fetch(link: HexJSON, by daemon: TestDaemon, into folder: URL) async throws -> String {
        let url = try #require(link.links?.first?.url)
        let hex = try await daemon.client.addMine(Array(#"{"links":["\#(url)"]}"#.utf8), into: nil)
        return try await fetch(hex.id, by: daemon, into: folder)
    }

    @Test("members fetch a file of a shared hex, others do not; not after the access, or the link, is gone") func course() async throws {
        try await TemporaryFolder.with { temporary in
            let folder = URL(filePath: temporary.path)
            let file = folder.appending(path: "talk.txt")
            try Data("talk".utf8).write(to: file)
            try await TestDaemon.with("ada", "bob", "carol") { daemons in
                let (ada, bob, carol) = (daemons[0], daemons[1], daemons[2])
                for daemon in daemons { try await daemon.awaitPeers(2) }
                for other in [bob, carol] { try await Self.trusting(ada, other) }
                let outer = try await ada.client.addMine(Array(#"{"description":"Reading","links":[]}"#.utf8), into: nil).id
                for request in [
                    OfferRequest(paths: [file.path], to: ["bob"], mine: true),
                    OfferRequest(paths: [file.path], to: [], toAll: true, mine: true),
                    OfferRequest(paths: [], to: [], mine: true, hex: outer), OfferRequest(paths: [file.path], to: ["bob"], parent: outer),
                    OfferRequest(paths: [], to: [], mine: true), OfferRequest(paths: [file.path], to: []),
                ] {
                    await #expect { _ = try await ada.client.offer(request) { _ in } } throws: {
                        ($0 as? HexlistError)?.code == .badRequest
                    }
                }
                await #expect {
                    _ = try await ada.client.offer(OfferRequest(paths: [file.path], to: [], mine: true, parent: 99)) { _ in }
                } throws: { ($0 as? HexlistError)?.code == .notFound }
                let offer = try await ada.client.offer(OfferRequest(paths: [file.path], to: [], mine: true, parent: outer)) { _ in }
                #expect(offer.files == 1 && offer.size == 4)
                let hex = try await ada.client.addMine(Array(offer.hex.bytes), into: outer)
                #expect(try await Self.fetch(link: hex, by: bob, into: folder) == "notOffered")

                try await Self.share(ada, outer, bob, .read)
                let number = try await Self.wait(bob) { $0.offers.first?.number }
                _ = try await bob.client.joinSharedHex(number)
                let copy = try await Self.wait(bob) { lists in lists.shared.first.flatMap { $0.links == 1 ? $0.hex : nil } }
                #expect(try await Self.fetch(copy, by: bob, into: folder) == "talk")
                #expect(try await Self.fetch(link: hex, by: carol, into: folder) == "notOffered")

                try await Self.share(ada, outer, bob, .none)
                #expect(try await Self.fetch(copy, by: bob, into: folder) == "notOffered")
                try await Self.share(ada, outer, bob, .read)
                #expect(try await Self.fetch(copy, by: bob, into: folder) == "talk")
                _ = try await ada.client.delete(.ids([hex.id]))
                _ = try await Self.wait(bob) { $0.shared.first?.links == 0 ? true : nil }
                #expect(try await Self.fetch(link: hex, by: bob, into: folder) == "notOffered")
                _ = try await ada.client.restoreMine(hexes: [hex.id])
                _ = try await Self.wait(bob) { $0.shared.first?.links == 1 ? true : nil }
                #expect(try await Self.fetch(copy, by: bob, into: folder) == "talk")
            }
        }
    }
}
