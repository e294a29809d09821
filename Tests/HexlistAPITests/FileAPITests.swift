import DaemonTestSupport
import Foundation
import HexlistAPI
import HexlistClient
import HexlistModel
import Testing

@Suite("Files in the local API", .timeLimit(.minutes(5)))
struct FileAPITests {
    @Test("a file is offered, sent, fetched, listed and removed")
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
            // A second offer of the same file returns the same link, without reading the file.
            #expect(try await ada.client.offer(OfferRequest(paths: [file.path], to: ["bob"])) { _ in } == offer)
            _ = try await ada.client.send(
                HexlistClient.Send(content: .hex(Array(offer.hex.bytes)), peers: ["bob"], timeout: TestDaemon.patience))
            let request = TransferRequest(hex: 1, to: folder.appending(path: "to").path)
            let start = try await bob.client.fetch(request)
            #expect(start == TransferStartResult(first: 1, last: 1, known: 0, passedOver: 0))
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
            #expect(try await bob.client.forgetTransfer(1) == ChangeCountJSON(changed: 1))
            #expect(try await bob.client.transfers(limit: 10).items.isEmpty)
        }
    }

    @Test("a folder is shared, listed, linked, fetched and unshared")
    func shares() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "hexlist-api-\(UUID().uuidString)")
        for name in ["talks/2026", "to"] {
            try FileManager.default.createDirectory(at: folder.appending(path: name), withIntermediateDirectories: true)
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data("talk".utf8).write(to: folder.appending(path: "talks/2026/talk.pdf"))
        for number in 0..<30 { try Data("\(number)".utf8).write(to: folder.appending(path: "talks/\(number)")) }
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            for daemon in daemons { try await daemon.awaitPeers(1) }
            for (one, other) in [(ada, bob), (bob, ada)] { _ = try await one.client.trust(other.uuid, fingerprint: nil) }
            let share = try await ada.client.share(ShareRequest(path: folder.appending(path: "talks").path, to: ["bob"]))
            #expect(share.name == "talks" && !share.toAll && share.peers.map(\.uuid.description) == [bob.uuid] && share.why == nil)
            #expect(try await ada.client.shares() == [share])
            #expect(try await bob.client.services().map(\.name) == ["shares", "ada"])
            #expect(try await bob.client.files(of: "ada", at: "", limit: 10).items.map(\.name) == ["talks"])
            var (names, after): ([String], String?) = ([], nil)
            repeat {
                let page = try await bob.client.files(of: "ada", at: "talks", by: .size, limit: 7, after: after)
                #expect(page.items.count <= 7)
                names += page.items.map(\.name)
                after = page.next
            } while after != nil
            #expect(names.count == 31 && names.first == "10" && names.last == "2026")
            var links: [ServiceLinkResult] = []
            let summary = try await bob.client.links(of: "ada", ServiceLinksRequest(paths: ["talks/2026/talk.pdf", "talks/none"])) {
                links.append($0)
            }
            #expect(summary == ServiceLinkCounts(made: 1, failed: 1))
            #expect(links.first { $0.url != nil }?.url == "hexlist://\(ada.uuid)/share/talks/2026/talk.pdf")
            let to = folder.appending(path: "to").path
            let start = try await bob.client.fetch(TransferRequest(service: "ada", path: "talks", to: to))
            #expect(start == TransferStartResult(first: 1, last: 31, known: 0, passedOver: 0))
            try await bob.client.watchTransfers(1...31) { $0.done < 31 }
            #expect(try Data(contentsOf: folder.appending(path: "to/talks/2026/talk.pdf")) == Data("talk".utf8))
            for (code, change) in [
                (HexlistError.Code.notFound, { @Sendable in _ = try await bob.client.files(of: "nobody", at: "", limit: 1) }),
                (.notFound, { @Sendable in _ = try await bob.client.files(of: "ada", at: "none", limit: 1) }),
                (.badRequest, { @Sendable in _ = try await bob.client.files(of: "ada", at: "talks/0", limit: 1) }),
                (.badRequest, { @Sendable in _ = try await bob.client.files(of: "ada", at: "a//b", limit: 1) }),
                (.badRequest, { @Sendable in _ = try await bob.client.files(of: "ada", at: "talks", by: .time, limit: 1, after: "x") }),
                (.badRequest, { @Sendable in _ = try await bob.client.files(of: "shares", at: "", limit: 1, after: "..") }),
                (.badRequest, { @Sendable in _ = try await bob.client.links(of: "ada", ServiceLinksRequest(paths: [])) { _ in } }),
                (
                    .badRequest,
                    { @Sendable in _ = try await bob.client.links(of: "ada", ServiceLinksRequest(paths: ["a"], expire: -1)) { _ in } }
                ),
                (
                    .notSupported,
                    { @Sendable in _ = try await bob.client.links(of: "ada", ServiceLinksRequest(paths: ["a"], expire: 9)) { _ in } }
                ),
                (.badRequest, { @Sendable in _ = try await bob.client.fetch(TransferRequest(service: "ada", path: "", to: to)) }),
                (.badRequest, { @Sendable in _ = try await ada.client.share(ShareRequest(path: "/nowhere")) }),
                (.badRequest, { @Sendable in _ = try await ada.client.share(ShareRequest(path: folder.path, name: "talks")) }),
                (.notFound, { @Sendable in _ = try await ada.client.share(ShareRequest(path: folder.path, to: ["@none"])) }),
                (.notFound, { @Sendable in _ = try await ada.client.endShare("none") }),
            ] {
                let error = await #expect(throws: HexlistError.self) { try await change() }
                #expect(error?.code == code, "\(String(describing: error))")
            }
            // An alias that equals the name of this machine's own shares is ambiguous, and selects neither.
            _ = try await bob.client.rename(ada.uuid, alias: "shares")
            let error = await #expect(throws: HexlistError.self) { try await bob.client.files(of: "shares", at: "", limit: 1) }
            #expect(error?.code == .ambiguous)
            #expect(try await bob.client.files(of: ada.uuid, at: "", limit: 1).items.count == 1)
            #expect(try await ada.client.endShare("talks") == share)
            #expect(try await bob.client.files(of: ada.uuid, at: "", limit: 1).items.isEmpty)
        }
    }
}
