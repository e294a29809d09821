import Foundation
import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistModel
import HexlistWire
import TestSupport
import Testing

@testable import HexlistNode
@testable import HexlistStore
@testable import HexlistTransfers

/// Files between two nodes: real TLS over loopback, real SQLite, real files.
@Suite(.serialized, .timeLimit(.minutes(5))) struct FileTransferTests {
    /// Two nodes that trust each other, with a folder each.
    private func withFriends(_ body: (TestNode, TestNode, _ from: URL, _ to: URL) async throws -> Void) async throws {
        try await withTwoNodes { one, two in
            let (from, to) = try await befriend(one, two)
            try await body(one, two, from, to)
        }
    }

    /// Two nodes that trust each other, with a folder each. The test stops them.
    private func friends(on link: InMemoryLink) async throws -> (one: TestNode, two: TestNode, from: URL, to: URL) {
        let one = try await TestNode("one", on: link)
        let two = try await TestNode("two", on: link)
        try await one.untilListed(two)
        try await two.untilListed(one)
        let (from, to) = try await befriend(one, two)
        return (one, two, from, to)
    }

    private func befriend(_ one: TestNode, _ two: TestNode) async throws -> (from: URL, to: URL) {
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        _ = try await two.node.peers.setTrust(one.id, .trusted)
        let (from, to) = (one.folder.appending(path: "from"), two.folder.appending(path: "to"))
        for folder in [from, to] { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
        return (from, to)
    }

    /// Offers paths and sends the hex.
    /// - Returns: the hex's id at the receiver.
    private func send(_ paths: [URL], from one: TestNode, to two: TestNode) async throws -> Int64 {
        let offer = try await one.transfers.offers.offer(paths.map { $0.path }, for: .peers([two.id]), protecting: []) { _ in }
        return try await send(offer, from: one, to: two)
    }

    private func send(_ offer: OfferResult, from one: TestNode, to two: TestNode) async throws -> Int64 {
        try await two.node.store.addMine(content(offer.hex.text), at: 1)
    }

    private func content(_ json: String) throws -> HexContent {
        var decoder = WrapperDecoder()
        return try decoder.decodeHex(Array(json.utf8), acceptsLocalNames: false).get().content
    }

    /// Fetches all files of a hex, and waits until no transfer is active.
    private func fetch(_ hex: Int64, into folder: URL, at two: TestNode) async throws -> [TransferView] {
        let start = try await two.transfers.fetch(TransferRequest(hex: hex, to: folder.path))
        let ids = try #require(start.first)...(try #require(start.last))
        return try await settled(ids, at: two)
    }

    private func settled(_ ids: ClosedRange<Int64>, at two: TestNode) async throws -> [TransferView] {
        try await two.until { try await $0.transfers.summary(ids).isQuiet }
        return try await two.transfers.page(nil, before: nil, limit: 1_000).rows.filter { ids.contains($0.id) }.reversed()
    }

    private func names(in folder: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }

    private func bytes(_ count: Int, seed: UInt64) -> Data {
        // Large files repeat a pattern whose period divides no chunk size. In a debug build, random bytes take longer to make than to
        // transfer.
        var random = SeededGenerator(seed: seed)
        var block = Data()
        while block.count < min(count, 1 << 18) { withUnsafeBytes(of: random.next()) { block.append(contentsOf: $0) } }
        block.append(7)
        var data = Data(capacity: count + block.count)
        while data.count < count { data.append(block) }
        return data.prefix(count)
    }

    @Test func filesArriveAsTheyAre() async throws {
        try await withFriends { one, two, from, to in
            let files: [(name: String, data: Data)] = [
                ("empty.txt", Data()), ("one.bin", Data([7])), ("Größe – 中文 📎.pdf", bytes(300_000, seed: 1)),
                ("العربية.md", bytes(65_536, seed: 2)), ("large.bin", bytes(9 << 20 | 5, seed: 3)), ("a b'c\"d$(e).txt", bytes(3, seed: 4)),
            ]
            let time = Date(timeIntervalSince1970: 1_500_000_000)
            for file in files {
                let path = from.appending(path: file.name)
                try file.data.write(to: path)
                try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path.path)
            }
            let hex = try await send(files.map { from.appending(path: $0.name) }, from: one, to: two)
            let rows = try await fetch(hex, into: to, at: two)
            #expect(rows.count == files.count && rows.allSatisfy { $0.state.known == .done }, "\(rows)")
            #expect(try names(in: to) == files.map(\.name).sorted())
            for file in files {
                let path = to.appending(path: file.name)
                #expect(try Data(contentsOf: path) == file.data)
                let attributes = try FileManager.default.attributesOfItem(atPath: path.path)
                #expect(attributes[.modificationDate] as? Date == time && attributes[.posixPermissions] as? Int == 0o644)
            }
            // A second fetch transfers changed files only, and overwrites nothing.
            try Data([8]).write(to: to.appending(path: "one.bin"))
            let again = try await two.transfers.fetch(TransferRequest(hex: hex, to: to.path))
            #expect(again.present == files.count - 1 && again.first != nil && again.first == again.last)
            _ = try await settled(try #require(again.first)...(try #require(again.last)), at: two)
            #expect(try names(in: to) == (files.map(\.name) + ["one (2).bin"]).sorted())
            #expect(try Data(contentsOf: to.appending(path: "one.bin")) == Data([8]))
            #expect(try await two.transfers.fetch(TransferRequest(hex: hex, links: [1, 3], to: to.path)).first == nil)
            let events = try await two.node.store.read { try $0.eventPage(since: 0, limit: 1_000).items.map(\.type) }
            #expect(events.count { $0 == .transferDone } == files.count + 1)
            try await one.until { node in
                try await node.store.read { try $0.eventPage(since: 0, limit: 1_000).items.contains { $0.type == .offerFetched } }
            }
        }
    }

    @Test("the outbox row of sent files shows how many the peer has") func progressOfARow() async throws {
        try await withFriends { one, two, from, to in
            for name in ["a", "b"] { try bytes(100, seed: 1).write(to: from.appending(path: name)) }
            let paths = ["a", "b"].map { from.appending(path: $0).path }
            let offer = try await one.transfers.offers.offer(paths, for: .peers([two.id]), protecting: []) { _ in }
            let request = SendRequest(content: .hex(try content(offer.hex.text)), peers: [two.id], key: nil)
            let outcome = try await one.node.outbox.send(request, until: .now + .seconds(60))[0]
            #expect(outcome.state == .stored)
            #expect(outcome.files == OutboxFiles(state: .offered, count: 2, bytes: 200))
            let hex = try await send(offer, from: one, to: two)
            for (links, state, fetched) in [([1], OutboxFiles.State.offered, 1), ([2], .fetched, 2)] {
                let start = try await two.transfers.fetch(TransferRequest(hex: hex, links: links, to: to.path))
                _ = try await settled(try #require(start.first)...(try #require(start.last)), at: two)
                try await one.until { try await $0.outbox.row(outcome.outboxID).files?.fetched == fetched }
                let row = try #require(try await one.node.outbox.rows(peer: nil, states: nil, after: nil, limit: 10).rows.first)
                #expect(row.state == .stored && row.files?.state.known == state)
            }
            #expect(try await one.node.outbox.row(outcome.outboxID).offers?.map(\.fetched) == [true, true])
        }
    }

    @Test func aFolderIsAHexAndBecomesAFolderAgain() async throws {
        try await withFriends { one, two, from, to in
            for path in ["a.txt", "b/c.txt", "b/d/e.txt", "b/.hidden", "f/g.txt"] {
                let url = from.appending(path: path)
                try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(path.utf8).write(to: url)
            }
            try FileManager.default.createDirectory(at: from.appending(path: "g/h"), withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(atPath: from.path + "/link", withDestinationPath: "/etc/passwd")
            let offer = try await one.transfers.offers.offer([from.path], for: .peers([two.id]), protecting: []) { _ in }
            #expect(offer.files == 4 && offer.leftOut == 2)
            let hex = try await send(offer, from: one, to: two)
            let rows = try await fetch(hex, into: to, at: two)
            #expect(rows.allSatisfy { $0.state.known == .done }, "\(rows)")
            for path in ["a.txt", "b/c.txt", "b/d/e.txt", "f/g.txt"] {
                #expect(try Data(contentsOf: to.appending(path: "from/" + path)) == Data(path.utf8))
            }
            #expect(try names(in: to) == ["from"])
            #expect(try names(in: to.appending(path: "from")) == ["a.txt", "b", "f", "g"])
            #expect(try names(in: to.appending(path: "from/b")) == ["c.txt", "d"])
            #expect(try names(in: to.appending(path: "from/g")) == ["h"])
            // A file that is named alone comes without its folder.
            let start = try await two.transfers.fetch(TransferRequest(hex: hex, links: [1], to: to.path))
            _ = try await settled(try #require(start.first)...(try #require(start.last)), at: two)
            #expect(try names(in: to) == ["a.txt", "from"])
        }
    }

    @Test("the name of a folder in a hex cannot lead elsewhere", arguments: ["../x", "/etc", ".", "..", "a/b", ""])
    func hostileFolder(_ name: String) throws {
        var hex = HexContent()
        hex.extra = hex.add(bytes: FolderMember.json(name))
        var child = ChildContent(parent: nil)
        child.extra = hex.add(bytes: FolderMember.json(name))
        _ = hex.add(child: child)
        var plan = FetchPlan(own: nil)
        plan.addAll(of: hex)
        #expect(plan.folders.count == 2)
        for part in plan.folders.joined() { #expect(!part.contains("/") && ![".", "..", ""].contains(part), "\(part)") }
    }

    @Test("each folder becomes an inner hex, except one that could not be read")
    func foldersWithoutFiles() async throws {
        try await withFriends { one, _, from, _ in
            for path in ["a/b/x", "a/empty/deep/.hidden", "h/.hidden", "gone/in/y"] {
                let url = from.appending(path: path)
                try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(path.utf8).write(to: url)
            }
            try FileManager.default.createDirectory(at: from.appending(path: "n/m"), withIntermediateDirectories: true)
            let copies = OfferPlan.Copies(folder: OfferCopies(path: from.path + "-copies"), minimumFree: 0, isForAll: false)
            var whole = try OfferPlan([from.path], protecting: [])
            // The folder is removed after its listing.
            try FileManager.default.removeItem(at: from.appending(path: "gone/in/y"))
            try whole.read(known: { _, _ in nil }, ends: 1, copies: copies) { _ in true }
            let hex = whole.content(own: one.id)
            #expect(
                hex.children.map { hex.string($0.hexDescription) } == ["a", "gone", "h", "n", "b", "empty", "in", "m", "deep"])
            #expect(hex.children.map(\.parent) == [nil, nil, nil, nil, 0, 0, 1, 3, 5] && hex.links(of: 4).count == 1)

            var named = try OfferPlan(["n", "a"].map { from.appending(path: $0).path }, protecting: [])
            try named.read(known: { _, _ in nil }, ends: 1, copies: copies) { _ in true }
            let both = named.content(own: one.id)
            #expect(both.children.map { both.string($0.hexDescription) } == ["n", "a", "m", "b", "empty", "deep"])
        }
    }

    @Test("a file that changes or vanishes after the listing is omitted and counted; a named one is refused")
    func changesMeanwhile() async throws {
        try await withFriends { _, _, from, _ in
            for name in ["a", "b", "c"] { try Data(name.utf8).write(to: from.appending(path: name)) }
            let copies = OfferPlan.Copies(folder: OfferCopies(path: from.path + "-copies"), minimumFree: 0, isForAll: false)
            let change = {
                try FileManager.default.removeItem(at: from.appending(path: "a"))
                try Data("other".utf8).write(to: from.appending(path: "b"))
            }
            var plan = try OfferPlan([from.path], protecting: [])
            try change()
            try plan.read(known: { _, _ in nil }, ends: 1, copies: copies) { _ in true }
            #expect(plan.rows.map(\.name) == ["c"] && plan.skipped.counts == [.changed: 2])
            #expect(plan.skipped.paths == ["a", "b"].map { "\(from.path)/\($0)" })
            #expect(SkippedEntries(plan.skipped).text.hasPrefix("2 changed or deleted meanwhile (not read: "))
            try Data("a".utf8).write(to: from.appending(path: "a"))
            var named = try OfferPlan(["a", "b"].map { from.appending(path: $0).path }, protecting: [])
            try change()
            #expect(throws: HexlistError.self) { try named.read(known: { _, _ in nil }, ends: 1, copies: copies) { _ in true } }
            // If no file remains, the hint has the reason.
            for name in ["b", "c"] { try FileManager.default.removeItem(at: from.appending(path: name)) }
            try Data().write(to: from.appending(path: ".hidden"))
            let error = #expect(throws: HexlistError.self) { try OfferPlan([from.path], protecting: []) }
            #expect(error?.hint == "Skipped: 1 hidden.")
        }
    }

    @Test func whoMayNotDoesNot() async throws {
        try await withFriends { one, two, from, to in
            let file = from.appending(path: "secret.txt")
            try Data("secret".utf8).write(to: file)
            let other = try #require(PeerID("00000000-0000-8000-8000-000000000001"))
            // The file is offered to another peer now: knowing its link is not enough to fetch it.
            let hex = try await send([file], from: one, to: two)
            try one.node.store.writeSync { writer in
                _ = try writer.change { try writer.run("UPDATE offerPeer SET peer = ?", other.uuid) }
            }
            var rows = try await fetch(hex, into: to, at: two)
            #expect(rows.map(\.reason) == ["notOffered"] && rows[0].state.known == .failed)
            // The peer is no longer trusted, so the connection is refused.
            try one.node.store.writeSync { [id = two.id] writer in
                _ = try writer.change { try writer.run("UPDATE offerPeer SET peer = ?", id.uuid) }
            }
            _ = try await one.node.peers.setTrust(two.id, .stranger)
            let start = try await two.transfers.fetch(TransferRequest(hex: hex, to: to.path, force: true))
            let ids = try #require(start.first)...(try #require(start.last))
            try await two.until { node in try await node.transfers.transfer(ids.lowerBound).reason != nil }
            rows = [try await two.transfers.transfer(ids.lowerBound)]
            #expect(rows[0].bytes == 0 && rows[0].state.known != .done)
            #expect(try names(in: to).filter { !$0.hasPrefix(".") }.isEmpty)
            // The peer is trusted again, and the transfer resumes.
            _ = try await one.node.peers.setTrust(two.id, .trusted)
            _ = try? await two.transfers.retry(ids.lowerBound, force: true)
            try await two.until { node in try await node.transfers.transfer(ids.lowerBound).state.known == .done }
            #expect(try names(in: to) == ["secret.txt"])
        }
    }

    @Test(arguments: ["changed", "deleted", "replaced"]) func aFileThatIsAnotherIsNotSent(_ what: String) async throws {
        try await withFriends { one, two, from, to in
            let file = from.appending(path: "talk.pdf")
            try bytes(100_000, seed: 5).write(to: file)
            let offer = try await one.transfers.offers.offer([file.path], for: .peers([two.id]), protecting: []) { _ in }
            let hex = try await send(offer, from: one, to: two)
            let request = SendRequest(content: .hex(try content(offer.hex.text)), peers: [two.id], key: nil)
            let row = try await one.node.outbox.send(request, until: .now + .seconds(60))[0].outboxID
            switch what {
            case "changed": try bytes(100_000, seed: 6).write(to: file)
            case "deleted": try FileManager.default.removeItem(at: file)
            default:
                try FileManager.default.removeItem(at: file)
                try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: "/etc/passwd")
            }
            // The sender can notice the change before a peer asks for the file.
            let problem: OfferProblem = what == "deleted" ? .missing : .changed
            #expect(try await one.node.outbox.row(row).offers?.map { $0.problem?.known } == [problem])
            let rows = try await fetch(hex, into: to, at: two)
            #expect(rows.map(\.reason) == ["changed"] && rows[0].state.known == .failed)
            // The owner answers with the same status for each of these causes, so the message names all of them.
            #expect(rows[0].message == "It is not as it was offered: it changed, was deleted or may not be read there.")
            #expect(try names(in: to).isEmpty)
            try await one.until { node in
                try await node.store.read { try $0.eventPage(since: 0, limit: 1_000).items.contains { $0.type == .offerFailed } }
            }
            let event = try #require(
                try await one.node.store.read { try $0.eventPage(since: 0, limit: 1_000).items.last { $0.type == .offerFailed } })
            let data = try #require(try event.data.map { try JSONObject(JSONValue(parsing: Array($0.utf8))) })
            #expect(event.peer == two.id && data["name"]?.string == "talk.pdf" && data["reason"]?.string == problem.rawValue)
            #expect(data["outboxID"]?.string == "\(row)")
            try await one.until { try await $0.outbox.row(row).files?.failed == 1 }
            let files = try #require(try await one.node.outbox.row(row).files)
            #expect(files.state.known == .offered && files.failedName == "talk.pdf" && files.problem?.known == problem)
        }
    }

    @Test(arguments: ["longer", "shorter", "replaced"]) func aFileThatChangesWhileItIsReadIsNotSentToItsEnd(_ what: String) async throws {
        try await withFriends { one, two, from, to in
            let file = from.appending(path: "large.bin")
            try bytes(256 << 20, seed: 10).write(to: file)
            let hex = try await send([file], from: one, to: two)
            let id = try #require(try await two.transfers.fetch(TransferRequest(hex: hex, to: to.path)).first)
            try await two.until { try await $0.transfers.transfer(id).bytes > 0 }
            switch what {
            case "longer", "shorter":
                let handle = try FileHandle(forWritingTo: file)
                try handle.truncate(atOffset: what == "longer" ? 257 << 20 : 1 << 20)
                try handle.close()
            default:
                try FileManager.default.removeItem(at: file)
                try bytes(256 << 20, seed: 11).write(to: file)
            }
            try await two.until { try await $0.transfers.transfer(id).endedAt != nil }
            let row = try await two.transfers.transfer(id)
            if what == "replaced", row.state.known == .done {
                // The open file was read to its end, so all bytes are those of the offered file.
                #expect(try Data(contentsOf: to.appending(path: "large.bin")) == bytes(256 << 20, seed: 10))
            } else {
                #expect(row.state.known == .failed && row.reason == "changed", "\(row)")
                try await eventually { try names(in: to).isEmpty }
            }
        }
    }

    @Test func anotherContentThanAnnouncedIsDeleted() async throws {
        try await withFriends { one, two, from, to in
            let file = from.appending(path: "a.txt")
            try Data("what was announced".utf8).write(to: file)
            let offer = try await one.transfers.offers.offer([file.path], for: .peers([two.id]), protecting: []) { _ in }
            var json = offer.hex.text
            let digest = try #require(json.range(of: #""sha256":""#)).upperBound
            json.replaceSubrange(digest..<json.index(digest, offsetBy: 8), with: "00000000")
            let hex = try await two.node.store.addMine(content(json), at: 1)
            let start = try await two.transfers.fetch(TransferRequest(hex: hex, to: to.path))
            let id = try #require(start.first)
            try await two.until { try await $0.transfers.transfer(id).state.known == .paused }
            #expect(try await two.transfers.transfer(id).reason == "otherBytes")
            #expect(try names(in: to).isEmpty)
            // An immediate repeat is refused temporarily.
            await #expect(throws: HexlistError.self) { try await two.transfers.fetch(TransferRequest(hex: hex, to: to.path)) }
            #expect(try await two.transfers.cancel(id).state.known == .cancelled)
        }
    }

    @Test func whatIsInterruptedGoesOn() async throws {
        let link = InMemoryLink()
        var (one, two, from, to) = try await friends(on: link)
        let file = from.appending(path: "large.bin")
        let data = bytes(256 << 20, seed: 7)
        try data.write(to: file)
        let hex = try await send([file], from: one, to: two)
        let id = try #require(try await two.transfers.fetch(TransferRequest(hex: hex, to: to.path)).first)
        try await two.until { try await $0.transfers.transfer(id).bytes > 0 }
        try await two.stop(removing: false)
        let parts = try names(in: to)
        #expect(parts.count == 1 && parts[0].hasPrefix(".large.bin.") && parts[0].hasSuffix(".part"), "\(parts)")
        two = try await TestNode("two", on: link, folder: two.folder)
        try await two.until { try await $0.transfers.transfer(id).state.known == .done }
        #expect(try names(in: to) == ["large.bin"])
        #expect(try Data(contentsOf: to.appending(path: "large.bin")) == data)
        #expect(try await two.transfers.transfer(id).bytes == Int64(data.count))
        try await one.stop()
        try await two.stop()
    }

    @Test(arguments: [false, true]) func aBlockEndsWhatIsUnderWay(byFetcher: Bool) async throws {
        try await withFriends { one, two, from, to in
            let file = from.appending(path: "large.bin")
            // The file is large enough to be incomplete when the block happens, even beside other tests. A sparse file uses no disk space.
            #expect(FileManager.default.createFile(atPath: file.path, contents: nil))
            try FileHandle(forWritingTo: file).truncate(atOffset: 2 << 30)
            let hex = try await send([file], from: one, to: two)
            let id = try #require(try await two.transfers.fetch(TransferRequest(hex: hex, to: to.path)).first)
            try await two.until { try await $0.transfers.transfer(id).bytes > 0 }
            let (blocking, blocked) = byFetcher ? (two, one) : (one, two)
            _ = try await blocking.node.peers.setTrust(blocked.id, .blocked)
            try await two.until { try await $0.transfers.transfer(id).state.known == .waiting }
            try await one.until { await !$0.transfers.isServing(two.id) }
            #expect(try names(in: to).allSatisfy { $0.hasSuffix(".part") })
            #expect(try await two.transfers.cancel(id).state.known == .cancelled)
            try await two.until { _ in try names(in: to).isEmpty }
        }
    }

    @Test func anAbsentPeerIsWaitedFor() async throws {
        let link = InMemoryLink()
        var (one, two, from, to) = try await friends(on: link)
        let file = from.appending(path: "a.txt")
        try Data("hello".utf8).write(to: file)
        let hex = try await send([file], from: one, to: two)
        try await one.stop(removing: false)
        try await two.until { try await $0.peers.all().allSatisfy { $0.state != .verified } }
        let rows = try await fetch(hex, into: to, at: two)
        #expect(rows.map(\.waitingFor) == ["peer"])
        one = try await TestNode("one", on: link, folder: one.folder)
        try await two.until { try await $0.transfers.transfer(rows[0].id).state.known == .done }
        #expect(try Data(contentsOf: to.appending(path: "a.txt")) == Data("hello".utf8))
        try await one.stop()
        try await two.stop()
    }

    @Test func thePeerOfAPathIsWaitedFor() async throws {
        let link = InMemoryLink()
        var (one, two, from, to) = try await friends(on: link)
        try Data("hello".utf8).write(to: from.appending(path: "a.txt"))
        _ = try await one.transfers.shares.add(ShareRequest(path: from.path), protecting: [])
        try await one.stop(removing: false)
        try await two.until { try await $0.peers.all().allSatisfy { $0.state != .verified } }
        let (node, path, service) = (two.node, to.path, one.id.description)
        let error = await #expect(throws: HexlistError.self) {
            try await node.transfers.fetch(TransferRequest(service: service, path: "from/a.txt", to: path, timeout: 0))
        }
        #expect(error?.code == .gone)
        async let begun = node.transfers.fetch(TransferRequest(service: service, path: "from/a.txt", to: path, timeout: 120))
        one = try await TestNode("one", on: link, folder: one.folder)
        let id = try #require(try await begun.first)
        try await two.until { try await $0.transfers.transfer(id).state.known == .done }
        #expect(try Data(contentsOf: to.appending(path: "a.txt")) == Data("hello".utf8))
        for seconds in [-1, 1e9] {
            await #expect(throws: HexlistError.self) {
                try await node.transfers.fetch(TransferRequest(service: service, path: "from/a.txt", to: path, timeout: seconds))
            }
        }
        try await one.stop()
        try await two.stop()
    }

    @Test func hostileSizesAreAddedUp() async throws {
        try await withFriends { one, two, _, to in
            var row = TransferRow(
                hex: nil, url: "hexlist://x", peer: one.id, folder: to.path, mask: 0, name: "a", part: "0", size: .max, sha256: nil,
                modified: nil, createdAt: 1)
            row.state = .done
            let rows = try await two.node.store.addTransfers([row, row])
            #expect(try await two.transfers.summary(rows[0].id...rows[1].id).size == 1 << 62)
            // The sizes of transfers in progress are added up, too: two links, each with the maximum size.
            var hex = HexContent()
            for digit in ["a", "b"] {
                hex.links.append(
                    LinkContent(
                        url: hex.add("hexlist://00000000-0000-8000-8000-000000000001/\(String(repeating: digit, count: 32))/x"),
                        linkDescription: .empty, service: hex.add("Unknown"), extra: hex.add(#"{"size":9223372036854775807}"#)))
            }
            let id = try await two.node.store.addMine(hex, at: 1)
            let start = try await two.transfers.fetch(TransferRequest(hex: id, to: to.path))
            #expect(try await two.transfers.summary((start.first ?? 0)...(start.last ?? 0)).size == .max)
        }
    }

    @Test("more transfers wait than are kept in memory: rows are read when due or cancelled")
    func rowsOnTheDisk() async throws {
        let link = InMemoryLink()
        var (one, two, from, to) = try await friends(on: link)
        for name in ["a", "b", "c"] { try Data(name.utf8).write(to: from.appending(path: name)) }
        let hex = try await send(["a", "b", "c"].map { from.appending(path: $0) }, from: one, to: two)
        let folder = two.folder
        try await two.stop(removing: false)
        let store = try HexStore(path: folder.appending(path: "hexlist.sqlite").path)
        // Transfers from a peer that never comes online.
        let away = try #require(PeerID("00000000-0000-8000-8000-000000000001"))
        let path = to.path
        let waiting = try await store.addTransfers(QueuedTransfers.rowBytes / 8_000) { number in
            TransferRow(
                hex: nil,
                url: "hexlist://\(away)/share/s/" + String(repeating: "x", count: 250) + "/" + String(repeating: "%41", count: 2_600)
                    + "\(number)", peer: away, folder: path, mask: 0, name: "n\(number)", part: "\(number)", size: 1, sha256: nil,
                modified: nil,
                createdAt: 1)
        }
        try store.close()
        two = try await TestNode("two", on: link, folder: folder)
        #expect(await two.transfers.queued.count == waiting.count)
        let fetched = try await fetch(hex, into: to, at: two)
        #expect(fetched.map(\.state.known) == [.done, .done, .done])
        #expect(try names(in: to) == ["a", "b", "c"])
        let transfers = await two.transfers.queued
        #expect(transfers.count == waiting.count && transfers.keptBytes <= QueuedTransfers.rowBytes)
        #expect(transfers.row(TransferID(waiting.upperBound)) == nil)
        for id in [waiting.lowerBound, waiting.upperBound] {
            #expect(try await two.transfers.transfer(id).url.hasPrefix("hexlist://\(away)/share/s/xxx"))
            #expect(try await two.transfers.cancel(id).state.known == .cancelled)
        }
        #expect(await two.transfers.queued.count == waiting.count - 2)
        try await one.stop()
        try await two.stop()
    }

    @Test("a file with an overlong link fails with the reason; the files beside it are fetched")
    func longLinks() async throws {
        try await withFriends { one, two, from, to in
            var deep = from
            for _ in 0..<12 { deep = deep.appending(path: String(repeating: "\u{4E2D}", count: 85)) }
            try FileManager.default.createDirectory(at: deep, withIntermediateDirectories: true)
            for folder in [from, deep] { try Data("x".utf8).write(to: folder.appending(path: "f")) }
            _ = try await one.transfers.shares.add(ShareRequest(path: from.path), protecting: [])
            let start = try await two.transfers.fetch(TransferRequest(service: one.id.description, path: "from", to: to.path, timeout: 60))
            let ids = try #require(start.first)...(try #require(start.last))
            let views = try await settled(ids, at: two)
            #expect(views.count == 2)
            #expect(views.count { $0.state.known == .done } == 1)
            let failed = try #require(views.first { $0.state.known == .failed })
            #expect(failed.reason == TransferRow.badLink && failed.message?.contains("8192") == true)
            let events = try await two.node.store.read { try $0.eventPage(since: 0, limit: 1_000, of: [.transferFailed]).items }
            #expect(events.count == 1)
        }
    }

    @Test func whatCannotBeOfferedIsRefused() async throws {
        try await withFriends { one, two, from, _ in
            let own = one.folder.path
            for path in [own + "/nothing", own + "/hexlist.sqlite", own, "/dev/null"] {
                await #expect(throws: HexlistError.self, "\(path)") {
                    try await one.transfers.offers.offer([path], for: .peers([two.id]), protecting: [own]) { _ in }
                }
            }
            _ = from
        }
    }
}

extension FileTransfers {
    fileprivate func isServing(_ peer: PeerID) -> Bool { serving.isBusy(with: peer) }
    fileprivate var queued: QueuedTransfers { fetching.transfers }
}
