import Foundation
import HexlistAPI
import HexlistModel
import HexlistWire
import TestSupport
import Testing

@testable import HexlistNode
@testable import HexlistStore
@testable import HexlistTransfers

/// Files stored by digest: real TLS over loopback, real SQLite, real files.
@Suite(.serialized, .timeLimit(.minutes(5))) struct FilePoolTests {
    private static let piece = 100_000

    /// Two nodes that trust each other. The second has a pool with space for three files of `piece` bytes.
    private func withFriends(
        most: Int = 3 * piece + 10, downloads: String? = nil, _ body: (TestNode, TestNode) async throws -> Void
    ) async throws {
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link)
        let two = try await TestNode("two", on: link) { ($0.files.cacheBytes, $0.files.downloads) = (most, downloads) }
        try await one.untilListed(two)
        try await two.untilListed(one)
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        _ = try await two.node.peers.setTrust(one.id, .trusted)
        try await body(one, two)
        try await one.stop()
        try await two.stop()
    }

    private func data(_ name: String, _ count: Int = piece) -> Data {
        var random = SeededGenerator(seed: UInt64(name.utf8.reduce(7) { $0 &* 31 &+ Int($1) }))
        return Data(random.bytes(count))
    }

    /// Creates and offers files, and sends their hex to the second node.
    private func offer(_ names: [String], _ one: TestNode, _ two: TestNode, bytes count: Int = piece) async throws -> Int64 {
        let paths = try names.map { name in
            let path = one.folder.appending(path: name)
            if !FileManager.default.fileExists(atPath: path.path) { try data(name, count).write(to: path) }
            return path.path
        }
        let offer = try await one.transfers.offers.offer(paths, for: .peers([two.id]), protecting: []) { _ in }
        var decoder = WrapperDecoder()
        let content = try decoder.decodeHex(Array(offer.hex.text.utf8), acceptsLocalNames: false).get().content
        return try await two.node.store.addMine(content, at: 1)
    }

    private func fetch(_ request: TransferRequest, _ two: TestNode) async throws -> [TransferView] {
        let start = try await two.transfers.fetch(request)
        let ids = try #require(start.first)...(try #require(start.last))
        try await two.until { try await $0.transfers.summary(ids).isQuiet }
        return try await two.transfers.page(nil, before: nil, limit: 1_000).rows.filter { ids.contains($0.id) }.reversed()
    }

    /// The names of the files in `cache`, or of the kept ones in `files`.
    private func names(_ folder: String, _ two: TestNode) -> [String] {
        let path = two.folder.appending(path: folder)
        let digests = (try? FileManager.default.contentsOfDirectory(atPath: path.path)) ?? []
        return digests.flatMap { (try? FileManager.default.contentsOfDirectory(atPath: path.appending(path: $0).path)) ?? [] }.sorted()
    }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    private func fetchedOf(_ one: TestNode) async throws -> Int {
        try await one.node.store.read { try $0.eventPage(since: 0, limit: 1_000).items.count { $0.type == .offerFetched } }
    }

    @Test func whatIsInThePoolIsNotFetchedAgain() async throws {
        try await withFriends { one, two in
            let hex = try await offer(["a.txt", "b.txt"], one, two)
            let rows = try await fetch(TransferRequest(hex: hex, cache: true), two)
            #expect(rows.map(\.state.known) == [.done, .done], "\(rows)")
            let path = "\(rows[0].folder)/\(rows[0].file)"
            #expect(path.hasPrefix(two.folder.path + "/cache/") && path.hasSuffix("/a.txt"))
            #expect(try Data(contentsOf: URL(filePath: path)) == data("a.txt"))
            #expect(try mode(path) == 0o600 && mode(rows[0].folder) == 0o700 && mode(two.folder.path + "/cache") == 0o700)
            try await one.until { _ in try await fetchedOf(one) == 2 }
            // The owner of the files need not be online any more.
            await one.node.stop()
            #expect(try await fetch(TransferRequest(hex: hex, cache: true), two).map(\.state.known) == [.done, .done])
            let to = two.folder.appending(path: "to")
            try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
            let copies = try await fetch(TransferRequest(hex: hex, to: to.path), two)
            #expect(copies.map(\.state.known) == [.done, .done], "\(copies)")
            #expect(try Data(contentsOf: to.appending(path: "b.txt")) == data("b.txt"))
            #expect(try mode(to.path + "/b.txt") == 0o644)
            // The fetched file is a copy in the folder, not a hard link to the file of the cache.
            let inodes = try [path, to.path + "/a.txt"].map {
                try FileManager.default.attributesOfItem(atPath: $0)[.systemFileNumber] as? Int
            }
            #expect(inodes[0] != inodes[1])
            #expect(try await fetchedOf(one) == 2)
        }
    }

    @Test func theLeastRecentlyUsedGoesAndWhatIsOpenStays() async throws {
        try await withFriends { one, two in
            for name in ["a", "b", "c"] { _ = try await fetch(TransferRequest(hex: offer([name], one, two), cache: true), two) }
            #expect(names("cache", two) == ["a", "b", "c"])
            let rows = try await fetch(TransferRequest(hex: offer(["a"], one, two), cache: true), two)
            let open = try FileHandle(
                forReadingFrom: two.folder.appending(path: "cache")
                    .appending(
                        path: await two.transfers.cache.page(before: nil, limit: 9).rows.first { $0.file.file == "b" }?.file.sha256 ?? ""
                    )
                    .appending(path: "b"))
            // `a` was used again and `b` is open, so `c` is evicted.
            _ = try await fetch(TransferRequest(hex: offer(["d"], one, two), cache: true), two)
            #expect(names("cache", two) == ["a", "b", "d"] && rows.count == 1)
            let cleared = try await two.transfers.cache.clear(olderThan: nil)
            #expect(cleared == CacheClearResult(removed: 2, bytes: Int64(2 * Self.piece), inUse: 1))
            #expect(names("cache", two) == ["b"])
            try open.close()
            #expect(try await two.transfers.cache.clear(olderThan: 86_400).removed == 0)
            // A child process that another test forks at this moment shares all open descriptors briefly.
            try await eventually { try await two.transfers.cache.clear(olderThan: nil).removed == 1 }
            #expect(try await two.transfers.cache.summary().files == 0)
        }
    }

    @Test func boundsHoldWhileFourRun() async throws {
        let (size, most) = (8 << 20, 33 << 20)
        try await withFriends(most: most) { one, two in
            let hexes = [
                try await offer((0..<4).map { "a\($0)" }, one, two, bytes: size),
                try await offer((0..<4).map { "b\($0)" }, one, two, bytes: size),
            ]
            for hex in hexes {
                var begun: TransferStartResult?
                // A child process that another test forks shares all open descriptors briefly, and nothing can be evicted then.
                try await eventually {
                    do {
                        begun = try await two.transfers.fetch(TransferRequest(hex: hex, cache: true))
                    } catch let error as HexlistError where error.code == .storageFull && hex != hexes[0] {
                        return false
                    }
                    return true
                }
                let start = try #require(begun)
                let ids = try #require(start.first)...(try #require(start.last))
                try await two.until { node in
                    let there = self.bytesIn(two.folder.appending(path: "cache"))
                    #expect(there <= most, "\(there) bytes")
                    return try await node.transfers.summary(ids).isQuiet
                }
                #expect(try await two.transfers.summary(ids).done == 4)
            }
            #expect(names("cache", two) == ["b0", "b1", "b2", "b3"])
            let large = try await offer(["large"], one, two, bytes: most + 1)
            let error = await #expect(throws: HexlistError.self) { try await two.transfers.fetch(TransferRequest(hex: large, cache: true)) }
            #expect(error?.code == .tooLarge)
            #expect(names("cache", two).count == 4)
            // Kept files do not count towards the size of the cache.
            #expect(try await fetch(TransferRequest(hex: large, keep: true), two).map(\.state.known) == [.done])
            // Files waiting for their owner use all space. Files evicted for them can be fetched again.
            let other = try await offer(["c"], one, two, bytes: 2 << 20)
            await one.node.stop()
            try await two.until { try await $0.peers.all().allSatisfy { $0.state != .verified } }
            let start = try await two.transfers.fetch(TransferRequest(hex: hexes[0], cache: true))
            #expect(try await two.transfers.cache.summary().coming == Int64(4 * size))
            let full = await #expect(throws: HexlistError.self) { try await two.transfers.fetch(TransferRequest(hex: other, cache: true)) }
            #expect(full?.code == .storageFull)
            _ = try await two.transfers.cancel(try #require(start.first))
            _ = try await two.transfers.fetch(TransferRequest(hex: other, cache: true))
        }
    }

    private func bytesIn(_ folder: URL) -> Int {
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: [.fileSizeKey])
        var sum = 0
        while let file = files?.nextObject() as? URL {
            let values = try? file.resourceValues(forKeys: [.fileSizeKey, .isRegularFileKey])
            if values?.isRegularFile == true { sum += values?.fileSize ?? 0 }
        }
        return sum
    }

    @Test func aKeptFileGoesWithItsHex() async throws {
        try await withFriends { one, two in
            let (first, second) = (try await offer(["a"], one, two), try await offer(["a", "b"], one, two))
            #expect(try await fetch(TransferRequest(hex: first, keep: true), two).map(\.state.known) == [.done])
            #expect(names("files", two) == ["a"] && names("cache", two) == [])
            // A kept file may be cached as well, and a cached file may be kept.
            _ = try await fetch(TransferRequest(hex: second, cache: true), two)
            #expect(names("files", two) == ["a"] && names("cache", two) == ["b"])
            _ = try await two.transfers.cache.keep(["b"])
            #expect(names("files", two) == ["a", "b"] && names("cache", two) == [])
            _ = try await two.transfers.cache.clear(olderThan: nil)
            #expect(names("files", two) == ["a", "b"])
            await #expect(throws: HexlistError.self) { try await two.transfers.cache.keep(["c"]) }
            // Each file is removed with the hex for which it was kept.
            try await delete(first, two)
            try await two.until { _ in names("files", two) == ["b"] }
            try await delete(second, two)
            try await two.until { _ in names("files", two) == [] }
            try await two.until { try await $0.transfers.cache.summary().kept == 0 }
        }
    }

    private func delete(_ hex: Int64, _ two: TestNode) async throws {
        _ = try two.node.store.writeSync { try $0.delete([hex], at: 0) }
    }

    @Test func whatWasBegunBeforeAStopIsFinishedAfterIt() async throws {
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link)
        var two = try await TestNode("two", on: link)
        try await one.untilListed(two)
        try await two.untilListed(one)
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        _ = try await two.node.peers.setTrust(one.id, .trusted)
        let hexes = [try await offer(["a"], one, two), try await offer(["b"], one, two), try await offer(["c", "d"], one, two)]
        _ = try await fetch(TransferRequest(hex: hexes[0], keep: true), two)
        _ = try await fetch(TransferRequest(hex: hexes[1], cache: true), two)
        _ = try await fetch(TransferRequest(hex: hexes[2], cache: true), two)
        let (folder, digests) = (two.folder, try await two.transfers.cache.page(before: nil, limit: 9).rows.map(\.file))
        try await two.stop(removing: false)
        // States after a kill: a hex was deleted, a kept file has its row but was not moved, a file has no row yet.
        let store = try HexStore(path: folder.appending(path: "hexlist.sqlite").path)
        _ = try store.writeSync { [hex = hexes[0]] in try $0.delete([hex], at: 0) }
        let b = try #require(digests.first { $0.file == "b" }), c = try #require(digests.first { $0.file == "c" })
        let row = try #require(try store.readSync { try $0.pooledPage(limit: 9).items.first { $0.name == "b" } })
        try await store.keep([row.sha256], for: hexes[1])
        try store.placePooled(row.id, .kept, identity: row.identity)
        try store.close()
        try FileManager.default.removeItem(atPath: c.path)
        let orphan = folder.appending(path: "cache").appending(path: String(repeating: "ab", count: 32))
        try FileManager.default.createDirectory(at: orphan, withIntermediateDirectories: true)
        try Data("x".utf8).write(to: orphan.appending(path: "x"))
        two = try await TestNode("two", on: link, folder: folder)
        try await two.until { _ in names("cache", two) == ["d"] && names("files", two) == ["b"] }
        try await two.until { try await $0.transfers.cache.page(before: nil, limit: 9).rows.map(\.file.file) == ["d", "b"] }
        #expect(try await two.transfers.cache.page(before: nil, limit: 9).rows.last?.file.sha256 == b.sha256)
        try await one.stop()
        try await two.stop()
    }

    @Test(arguments: [false, true]) func whatIsNoLongerWhatItWasIsFetchedAnew(seemsTheSame: Bool) async throws {
        try await withFriends { one, two in
            let hex = try await offer(["a"], one, two)
            let rows = try await fetch(TransferRequest(hex: hex, cache: true), two)
            let path = "\(rows[0].folder)/a"
            let date = try #require(try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date)
            let handle = try FileHandle(forWritingTo: URL(filePath: path))
            try handle.write(contentsOf: Data("other".utf8))
            try handle.close()
            let row = try #require(try await two.node.store.read { try $0.pooledPage(limit: 1).items.first })
            if seemsTheSame {
                // The time is restored, so that only the digest differs.
                try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
                let identity = try #require(two.transfers.pool.folder(.pool).open(row.sha256, name: "a")?.identity.description)
                try two.node.store.placePooled(row.id, .pool, identity: identity)
            }
            let to = two.folder.appending(path: "to")
            try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
            #expect(try await fetch(TransferRequest(hex: hex, to: to.path), two).map(\.state.known) == [.done])
            #expect(try Data(contentsOf: to.appending(path: "a")) == data("a"))
            #expect(try FileManager.default.contentsOfDirectory(atPath: to.path) == ["a"])
            #expect(names("cache", two) == [])
            try await one.until { _ in try await fetchedOf(one) == 2 }
        }
    }

    @Test func aWishThatSaysTwoPlacesOrNoneIsRefused() async throws {
        try await withFriends { one, two in
            let hex = try await offer(["a"], one, two)
            for request in [
                TransferRequest(hex: hex), TransferRequest(hex: hex, to: "/tmp", cache: true),
                TransferRequest(hex: hex, cache: true, keep: true),
            ] {
                await #expect(throws: HexlistError.self) { try await two.transfers.fetch(request) }
            }
        }
    }

    // MARK: Automatic fetching

    /// Sends files as a hex, over a session.
    private func send(_ names: [String], _ one: TestNode, _ two: TestNode) async throws -> SendOutcome {
        let paths = try names.map { name in
            let path = one.folder.appending(path: name)
            try data(name).write(to: path)
            return path.path
        }
        let offer = try await one.transfers.offers.offer(paths, for: .peers([two.id]), protecting: []) { _ in }
        var decoder = WrapperDecoder()
        let content = try decoder.decodeHex(Array(offer.hex.text.utf8), acceptsLocalNames: false).get().content
        return try await one.node.outbox.send(SendRequest(content: .hex(content), peers: [two.id], key: nil), until: .now + .seconds(60))[0]
    }

    private func peer(_ one: TestNode, at two: TestNode) async throws -> PeerView? {
        try await two.node.peers.all().first { $0.uuid == one.id }
    }

    /// Waits until all of a peer's inbox hexes have been checked for files to fetch automatically.
    private func untilLooked(atHexesOf one: TestNode, by two: TestNode) async throws {
        try await eventually {
            try await two.node.store.read { [id = one.id] reader in
                guard let allowance = try reader.fetchAllowance(of: id, at: 0) else { return false }
                return try reader.inboxHexes(of: id, after: allowance.after, limit: 1).isEmpty
            }
        }
    }

    @Test func filesOfAPeerAreFetchedByThemselvesWithinWhatIsAllowed() async throws {
        // The fetch limit is per UTC day, and the test must not span midnight.
        let rest = 86_400_000 - Timestamp.now.milliseconds % 86_400_000
        if rest < 120_000 { try await Task.sleep(for: .milliseconds(rest)) }
        try await withFriends(most: 10 * Self.piece) { one, two in
            // Hexes received before the fetch limit was set are not fetched later.
            #expect(try await send(["before"], one, two).state == .stored)
            let limit = Int64(Self.piece * 5 / 2)
            #expect(try await two.node.peers.change(one.id, PeerChange(fetchLimit: limit)).fetchLimit == limit)
            // A hex of three files exceeds the fetch limit, one of two does not; a third file exceeds the day's.
            for names in [["a", "b", "c"], ["d", "e"], ["f"]] { #expect(try await send(names, one, two).state == .stored) }
            try await untilLooked(atHexesOf: one, by: two)
            try await two.until { try await $0.transfers.page([.done], before: nil, limit: 9).rows.count == 2 }
            #expect(names("cache", two) == ["d", "e"])
            #expect(try await two.transfers.page(nil, before: nil, limit: 9).rows.map(\.file).sorted() == ["d", "e"])
            #expect(try await peer(one, at: two)?.fetchedToday == Int64(2 * Self.piece))
            // Links to another peer's offers, and links into shares, are skipped.
            let other = try #require(PeerID("00000000-0000-8000-8000-000000000001"))
            _ = try await two.node.peers.change(one.id, PeerChange(fetchLimit: 10 * limit))
            var hex = HexContent()
            let digits = String(repeating: "ab", count: 16)
            for place in ["\(other)/\(digits)", "\(two.id)/\(digits)", "\(one.id)/share/y"] {
                hex.links.append(
                    LinkContent(
                        url: hex.add("hexlist://\(place)/x"), linkDescription: .empty,
                        service: hex.add("Unknown"),
                        extra: hex.add(#"{"size":3,"sha256":"\#(String(repeating: "cd", count: 32))"}"#)))
            }
            #expect(
                try await one.node.outbox.send(SendRequest(content: .hex(hex), peers: [two.id], key: nil), until: .now + .seconds(60))[0]
                    .state
                    == .stored)
            #expect(try await send(["g"], one, two).state == .stored)
            try await untilLooked(atHexesOf: one, by: two)
            try await two.until { _ in names("cache", two) == ["d", "e", "g"] }
            #expect(try await two.transfers.page(nil, before: nil, limit: 9).rows.count == 3)
            _ = try await two.node.peers.change(one.id, PeerChange(fetchLimit: 0))
            #expect(try await send(["h"], one, two).state == .stored)
            #expect(try await peer(one, at: two)?.fetchLimit == nil)
            #expect(try await two.transfers.page(nil, before: nil, limit: 9).rows.count { $0.file != "f" } == 3)
        }
    }

    @Test("files of a machine of the same user are downloaded to a folder") func ownMachine() async throws {
        let base = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: base, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: base) }
        let downloads = base.appending(path: "Downloads")
        try await withFriends(downloads: downloads.path) { one, two in
            let change = PeerChange(fetchLimit: 1 << 30, fetchTo: .downloads)
            #expect(try await two.node.peers.change(one.id, change).fetchTo?.known == .downloads)
            #expect(try await send(["a", "b"], one, two).state == .stored)
            try await untilLooked(atHexesOf: one, by: two)
            let found = { (try? FileManager.default.contentsOfDirectory(atPath: downloads.path).sorted()) ?? [] }
            try await two.until { try await $0.transfers.page([.done], before: nil, limit: 9).rows.count == 2 }
            #expect(found() == ["a", "b"] && names("cache", two).isEmpty)
            #expect(try Data(contentsOf: downloads.appending(path: "a")) == data("a"))
            let done = try await two.node.store.read { try $0.eventPage(since: 0, limit: 1_000).items.first { $0.type == .transferDone } }
            #expect(done?.data?.contains(#""automatic":"true""#) == true && done?.data?.contains(downloads.path) == true)
            // A new folder takes effect without a restart.
            var configuration = await two.node.configuration
            let other = base.appending(path: "Other")
            configuration.files.downloads = other.path
            await two.node.reconfigure(configuration)
            #expect(try await send(["d"], one, two).state == .stored)
            try await two.until { try await $0.transfers.page([.done], before: nil, limit: 9).rows.count == 3 }
            #expect(try FileManager.default.contentsOfDirectory(atPath: other.path) == ["d"] && found() == ["a", "b"])
            // After this change of the peer, files are fetched into the cache instead of the download folder.
            _ = try await two.node.peers.change(one.id, PeerChange(fetchLimit: 1 << 20, fetchTo: .cache))
            #expect(try await send(["c"], one, two).state == .stored)
            try await two.until { _ in names("cache", two) == ["c"] }
            #expect(found() == ["a", "b"])
        }
    }

    @Test("a peer cannot learn whether a file it did not send is here: it is asked for the file anyway")
    func onlyItsSenderKnows() async throws {
        let link = InMemoryLink()
        let nodes = [try await TestNode("one", on: link), try await TestNode("two", on: link), try await TestNode("three", on: link)]
        let (one, two, three) = (nodes[0], nodes[1], nodes[2])
        for other in [one, three] {
            try await other.untilListed(two)
            try await two.untilListed(other)
            _ = try await other.node.peers.setTrust(two.id, .trusted)
            _ = try await two.node.peers.setTrust(other.id, .trusted)
            _ = try await two.node.peers.change(other.id, PeerChange(fetchLimit: 1 << 30))
        }
        #expect(try await send(["a"], one, two).state == .stored)
        try await two.until { _ in names("cache", two) == ["a"] }
        // The same file is offered by another peer.
        #expect(try await send(["a"], three, two).state == .stored)
        try await three.until { _ in try await fetchedOf(three) == 1 }
        try await two.until { try await $0.transfers.page([.done], before: nil, limit: 9).rows.count == 2 }
        #expect(names("cache", two) == ["a"])
        #expect(try await two.transfers.cache.summary().files == 1)
        // A peer that has sent a file may notice that this machine has it, so the file is not fetched from this peer again.
        #expect(try await send(["a"], three, two).state == .stored)
        try await untilLooked(atHexesOf: three, by: two)
        #expect(try await two.transfers.page(nil, before: nil, limit: 9).rows.count == 2)
        // A manual fetch also requests the file from the peer, although the pool has it from another peer.
        #expect(try await send(["b"], one, two).state == .stored)
        try await two.until { _ in names("cache", two) == ["a", "b"] }
        let rows = try await fetch(TransferRequest(hex: offer(["b"], three, two), cache: true), two)
        #expect(rows.map(\.state.known) == [.done] && names("cache", two) == ["a", "b"])
        try await three.until { _ in try await fetchedOf(three) == 2 }
        for node in nodes { try await node.stop() }
    }

    @Test func whatCameBeforeAStopIsFetchedByItselfAfterIt() async throws {
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link)
        var two = try await TestNode("two", on: link)
        try await one.untilListed(two)
        try await two.untilListed(one)
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        _ = try await two.node.peers.setTrust(one.id, .trusted)
        #expect(try await send(["a"], one, two).state == .stored)
        // State after a kill between storing the hex and checking it for files.
        let folder = two.folder
        try await two.stop(removing: false)
        let store = try HexStore(path: folder.appending(path: "hexlist.sqlite").path)
        try store.writeSync { [id = one.id] writer in
            _ = try writer.change { try writer.run("UPDATE peer SET fetchLimit = 1000000 WHERE uuid = ?", id.uuid) }
        }
        try store.close()
        two = try await TestNode("two", on: link, folder: folder)
        try await two.until { _ in names("cache", two) == ["a"] }
        try await one.stop()
        try await two.stop()
    }

    @Test func anOfferEndsWithItsRowOrSomeDaysAfterItsDelivery() async throws {
        try await withFriends { one, two in
            let start = Timestamp.now.milliseconds
            #expect(try await send(["a"], one, two).state == .stored)
            let offer = try #require(try await one.node.store.read { try $0.all("SELECT offer FROM offerPeer") { $0.bytes(0) } }.first)
            let mayFetch = { (days: Int64) in
                try await one.node.store.read { [id = two.id] reader in
                    reader.lived += days * 86_400_000
                    return try reader.offer(offer, to: id)
                } != nil
            }
            #expect(try await mayFetch(29))
            // The end of the offer is written after the receipt.
            try await one.until { _ in try await !mayFetch(31) }
            // A file that is offered by two rows stays on offer until both are delivered or cancelled.
            await two.node.stop()
            try await one.until { try await $0.peers.all().allSatisfy { $0.state != .verified } }
            var rows: [Int64] = []
            for name in ["b", "b"] {
                let path = one.folder.appending(path: name)
                if !FileManager.default.fileExists(atPath: path.path) { try data(name).write(to: path) }
                let made = try await one.transfers.offers.offer([path.path], for: .peers([two.id]), protecting: []) { _ in }
                var decoder = WrapperDecoder()
                let content = try decoder.decodeHex(Array(made.hex.text.utf8), acceptsLocalNames: false).get().content
                rows.append(
                    try await one.node.outbox.send(SendRequest(content: .hex(content), peers: [two.id], key: nil), until: .now)[0].outboxID)
            }
            let peers = { try await one.node.store.read { try $0.all("SELECT offer FROM offerPeer") { $0.bytes(0) } }.count }
            #expect(try await peers() == 2)
            _ = try await one.node.store.cancel(.ids([rows[0]]), at: start)
            #expect(try await peers() == 2)
            _ = try await one.node.store.cancel(.ids([rows[1]]), at: start)
            #expect(try await peers() == 1)
            #expect(try await mayFetch(29))
            _ = try one.node.store.writeSync { try $0.maintain(after: 31 * 86_400_000) }
            #expect(try await one.node.store.read { try $0.all("SELECT id FROM offer WHERE name = 'a'") { $0.bytes(0) } }.isEmpty)
        }
    }

    @Test func whatADeliveredRowOffersEndsWithItsCancellation() async throws {
        try await withFriends { one, two in
            let sent = try await send(["a"], one, two)
            #expect(sent.state == .stored)
            let row = sent.outboxID
            // The state of the row is written after the receipt.
            try await one.until { try await $0.outbox.row(row).state == .stored }
            #expect(try await one.node.outbox.row(row).offers?.map(\.name) == ["a"])
            let after = try await one.node.outbox.cancel(row)
            #expect(after.state == .stored && after.offers == nil)
            #expect(try await one.node.store.read { try $0.all("SELECT id FROM offer") { $0.bytes(0) } }.isEmpty)
        }
    }

    /// Deletes the copies of ended offers, and waits until they are deleted.
    private func tidy(_ one: TestNode) async throws {
        one.transfers.offers.tidyCopies()
        try await called { done in FileOffers.queue.async { done(()) } }
    }

    private func content(_ offer: OfferResult) throws -> HexContent {
        var decoder = WrapperDecoder()
        return try decoder.decodeHex(Array(offer.hex.text.utf8), acceptsLocalNames: false).get().content
    }

    private func write(_ name: String, in folder: URL) throws -> String {
        let path = folder.appending(path: name)
        try data(name).write(to: path)
        return path.path
    }

    @Test func anOfferEndsWithARowThatFailsOrExpiresAndComesBackWithIt() async throws {
        try await withFriends { one, two in
            let start = Timestamp.now.milliseconds
            await two.node.stop()
            try await one.until { try await $0.peers.all().allSatisfy { $0.state != .verified } }
            let path = try write("a", in: one.folder)
            let made = try await one.transfers.offers.offer([path], for: .peers([two.id]), copying: .always, protecting: []) { _ in }
            let request = SendRequest(content: .hex(try content(made)), peers: [two.id], key: nil)
            let row = try await one.node.outbox.send(request, until: .now)[0].outboxID
            let offers = { try await one.node.outbox.row(row).offers?.map(\.name) }
            let copies = { try FileManager.default.contentsOfDirectory(atPath: one.folder.appending(path: "offers").path).count }
            #expect(try await offers() == ["a"])
            #expect(try await one.node.outbox.row(row).offers?.first?.size == Int64(Self.piece))
            try one.node.store.writeSync { [id = two.id] writer in
                _ = try writer.settle([Settlement(id: row, state: .failed, code: "retryLimit", message: nil)], of: id, at: start)
            }
            // A retry is possible: the offered file stays for that peer, and is closed to all others.
            #expect(try await offers() == nil && copies() == 1)
            _ = try await one.node.outbox.retry(row)
            #expect(try await offers() == ["a"])
            _ = try one.node.store.writeSync { try $0.maintain(after: 40 * 86_400_000) }
            #expect(try await one.node.outbox.row(row).state == .expired)
            #expect(try await offers() == nil)
            #expect(try await one.node.store.read { try $0.all("SELECT id FROM offer") { $0.bytes(0) } }.isEmpty)
            try await tidy(one)
            #expect(try copies() == 0)
        }
    }

    @Test func aCopyIsOfferedUntilItsOfferEnds() async throws {
        try await withFriends { one, two in
            let to = two.folder.appending(path: "to")
            try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
            let path = try write("a", in: one.folder)
            let made = try await one.transfers.offers.offer([path], for: .peers([two.id]), copying: .always, protecting: []) { _ in }
            try Data("other".utf8).write(to: URL(filePath: path))
            try FileManager.default.removeItem(atPath: path)
            let copies = one.folder.appending(path: "offers")
            let names = { try FileManager.default.contentsOfDirectory(atPath: copies.path) }
            #expect(try names().count == 1)
            #expect(try mode(copies.path + "/" + names()[0]) == 0o600)
            let sums = try await one.transfers.cache.summary()
            #expect(sums.copies == 1 && sums.copyBytes == Int64(Self.piece) && sums.files == 0)
            let hex = try await two.node.store.addMine(content(made), at: 1)
            #expect(try await fetch(TransferRequest(hex: hex, to: to.path), two).map(\.state.known) == [.done])
            #expect(try Data(contentsOf: to.appending(path: "a")) == data("a"))
            // Files left by a kill are removed by the next cleanup; offered files stay.
            try Data().write(to: copies.appending(path: ".\(String(repeating: "0", count: 32)).copy.part"))
            try Data().write(to: copies.appending(path: String(repeating: "0", count: 32)))
            try await tidy(one)
            #expect(try names().count == 1)
            _ = try one.node.store.writeSync { try $0.maintain(after: 61 * 86_400_000) }
            try await tidy(one)
            #expect(try names().isEmpty)
            #expect(try await one.transfers.cache.summary().copies == nil)
            // Without space no file remains and nothing is offered.
            var tight = await one.node.configuration
            tight.limits.diskReserveBytes = .max / 2
            await one.node.reconfigure(tight)
            let again = try write("b", in: one.folder)
            let error = await #expect(throws: HexlistError.self) {
                try await one.transfers.offers.offer([again], for: .peers([two.id]), copying: .always, protecting: []) { _ in }
            }
            #expect(try error?.code == .storageFull && names().isEmpty)
        }
    }

    @Test("small files are copied unless the disk is full", arguments: [(0, 0), (1, 0), (2, 2)])
    func smallFiles(atMost pieces: Int, copied: Int) async throws {
        try await withFriends { one, two in
            var configuration = await one.node.configuration
            configuration.files.copyBelow = pieces * Self.piece
            await one.node.reconfigure(configuration)
            let paths = try ["a", "b"].map { try write($0, in: one.folder) }
            let offer = { try await one.transfers.offers.offer(paths, for: .peers([two.id]), copying: .ifSmall, protecting: []) { _ in } }
            let copies = { (try? FileManager.default.contentsOfDirectory(atPath: one.folder.appending(path: "offers").path)) ?? [] }
            #expect(try await offer().copied == copied)
            #expect(copies().count == copied)
            configuration.limits.diskReserveBytes = .max / 2
            await one.node.reconfigure(configuration)
            let made = try await offer()
            #expect(made.copied == 0 && made.files == 2 && copies().count == copied)
        }
    }

    @Test func whatWasFetchedIsOfferedAgain() async throws {
        try await withFriends { one, two in
            let (there, back) = (two.folder.appending(path: "there"), one.folder.appending(path: "back"))
            for folder in [there, back] { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
            let hex = try await offer(["a", "b", "c", "d"], one, two)
            let none = await #expect(throws: HexlistError.self) {
                try await two.transfers.offers.reoffer(hex, to: [one.id], protecting: []) { _ in }
            }
            #expect(none?.code == .badRequest && none?.hint?.contains("hexlist fetch \(hex)") == true)
            _ = try await fetch(TransferRequest(hex: hex, links: [1, 4], to: there.path), two)
            _ = try await fetch(TransferRequest(hex: hex, links: [2], cache: true), two)
            // The file is replaced by another one of the same size.
            try data("x").write(to: there.appending(path: "d"))
            let made = try await two.transfers.offers.reoffer(hex, to: [one.id], protecting: []) { _ in }
            #expect(made.files == 2 && made.leftOut == 2 && made.size == Int64(2 * Self.piece))
            let content = try content(made)
            let urls = content.links.map { content.string($0.url) }
            #expect(urls.map { $0.contains("\(two.id)") } == [true, true, false, false])
            // Cached files may be evicted, so the file is copied.
            #expect(names("cache", two) == ["b"])
            #expect(try FileManager.default.contentsOfDirectory(atPath: two.folder.appending(path: "offers").path).count == 1)
            let id = try await one.node.store.addMine(content, at: 1)
            #expect(try await fetch(TransferRequest(hex: id, to: back.path), one).map(\.state.known) == [.done, .done])
            for name in ["a", "b"] { #expect(try Data(contentsOf: back.appending(path: name)) == data(name)) }
            // A file that this machine offers can be offered to others too.
            #expect(try await one.transfers.offers.reoffer(id, to: [two.id], protecting: []) { _ in }.files == 4)
            let empty = try await one.node.store.addMine(HexContent(), at: 1)
            await #expect(throws: HexlistError.self) {
                try await one.transfers.offers.reoffer(empty, to: [two.id], protecting: []) { _ in }
            }
        }
    }
}
