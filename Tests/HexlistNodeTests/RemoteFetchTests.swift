import Foundation
import HexlistAPI
import HexlistFiles
import HexlistModel
import Synchronization
import TestSupport
import Testing

@testable import HexlistNode
@testable import HexlistStore
@testable import HexlistTransfers

/// A remote with files in memory and scripted copying.
private final class MemoryRemote: ContentService, RemoteServices {
    enum Way: Sendable {
        case whole
        /// Copies this text, which differs from the listed file.
        case other(String)
        case fault(RemoteFault)
        /// Writes a part and never ends.
        case hangs
    }

    static let time = Timestamp(milliseconds: 1_500_000_000_123)
    let files: [String: String]
    /// Files without a size.
    let sizeless: Set<String>
    /// Folders that are listed but cannot be read.
    let unreadable: Set<String>
    let way = Mutex(Way.whole)
    let copies = Mutex(0)
    /// Whether the copy was requested with force.
    let isForced = Mutex(false)

    init(_ files: [String: String], sizeless: Set<String> = [], unreadable: Set<String> = []) {
        (self.files, self.sizeless, self.unreadable) = (files, sizeless, unreadable)
    }

    var view: ServiceView { ServiceView(name: "dav", kind: .rclone, service: "webdav") }
    var forced: any ContentService {
        isForced.withLock { $0 = true }
        return self
    }

    func all() async throws -> [any ContentService] { [self] }
    func source(of path: SharePath) throws -> FetchSource { .remote(RemoteLink(remote: "dav", path: path)) }
    func links(to paths: [SharePath], _ wish: LinkOptions, each: @escaping @Sendable (ServiceLinkResult) -> Void) async throws {}

    private func entry(_ path: String, named name: String) -> FileEntry? {
        if let text = files[path] {
            return FileEntry(
                name: name, kind: .file, size: sizeless.contains(path) ? nil : Int64(text.utf8.count), modified: Self.time, mediaType: nil)
        }
        return files.keys.contains { $0.hasPrefix(path + "/") } ? FileEntry(name: name, kind: .folder) : nil
    }

    func entry(at path: SharePath) async throws -> FileEntry {
        guard let entry = entry(path.description, named: path.names.last ?? "") else { throw HexlistError(.notFound, "It is not there.") }
        return entry
    }

    func page(of path: SharePath, by order: FolderSortOrder, after: String?, limit: Int) async throws -> FilePage {
        guard !unreadable.contains(path.description) else { throw HexlistError(.notFound, "It is not there.") }
        let start = path.names.isEmpty ? "" : path.description + "/"
        let names = Set(files.keys.filter { $0.hasPrefix(start) }.compactMap { $0.dropFirst(start.count).split(separator: "/").first })
        return FilePage(items: names.sorted().compactMap { entry(start + $0, named: String($0)) }, next: nil, leftOut: 0)
    }

    func copy(_ link: RemoteLink, to folder: String, as file: String) async throws {
        copies.withLock { $0 += 1 }
        let (way, text) = (way.withLock { $0 }, files[link.path.description] ?? "")
        let path = "\(folder)/\(file)"
        switch way {
        case .fault(let fault): throw fault
        case .whole: try write(text, to: path)
        case .other(let other): try write(other, to: path)
        case .hangs:
            try write(String(text.prefix(text.count / 2)), to: path)
            try await Task.sleep(for: .seconds(3_600))
        }
    }

    private func write(_ text: String, to path: String) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.truncate(atOffset: 0)
        try handle.write(contentsOf: Data(text.utf8))
        try handle.close()
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1_500_000_000.123)], ofItemAtPath: path)
    }
}

/// Files of a remote fetched to a node: real SQLite, real files.
@Suite("Fetching from a remote", .serialized, .timeLimit(.minutes(3))) struct RemoteFetchTests {
    private func with(_ remote: MemoryRemote, _ body: (TestNode, _ to: String) async throws -> Void) async throws {
        let one = try await TestNode("one", on: nil, remotes: remote)
        let to = one.folder.appending(path: "to").path
        try FileManager.default.createDirectory(atPath: to, withIntermediateDirectories: true)
        try await body(one, to)
        try await one.stop()
    }

    @Test("a remote with the name of a peer is selected with the prefix `rclone.`") func sameName() async throws {
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link, remotes: MemoryRemote(["a": "text"]))
        let two = try await TestNode("two", on: link)
        try await one.untilListed(two)
        #expect(try await one.transfers.services.named("dav").view.kind.known == .rclone)
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        _ = try await one.node.peers.change(two.id, PeerChange(alias: .set("dav")))
        await #expect { _ = try await one.transfers.services.named("dav") } throws: { error in
            let error = error as? HexlistError
            return error?.code == .ambiguous && error?.hint?.contains("`rclone.dav`") == true
        }
        #expect(try await one.transfers.services.named("rclone.dav").view.kind.known == .rclone)
        try await one.stop()
        try await two.stop()
    }

    private func fetch(_ path: String, into folder: String, at one: TestNode) async throws -> (TransferStartResult, ClosedRange<Int64>) {
        let start = try await one.transfers.fetch(TransferRequest(service: "dav", path: path, to: folder))
        return (start, try #require(start.first)...(try #require(start.last)))
    }

    private func names(_ folder: String) throws -> [String] { try FileManager.default.subpathsOfDirectory(atPath: folder).sorted() }

    private func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    @Test("a folder is fetched completely; a second time nothing is; files without size are omitted") func folder() async throws {
        let files = ["docs/a.txt": "a", "docs/sub/größe ／.txt": "bb", "docs/empty": "", "docs/live": "x", "docs/sub/deep/c": "ccc"]
        let remote = MemoryRemote(files, sizeless: ["docs/live"])
        try await with(remote) { one, to in
            let (start, ids) = try await fetch("docs", into: to, at: one)
            #expect(start.leftOut == 1 && ids.count == 4)
            try await one.until { try await $0.transfers.summary(ids).done == 4 }
            #expect(
                try names(to) == [
                    "docs", "docs/a.txt", "docs/empty", "docs/sub", "docs/sub/deep", "docs/sub/deep/c", "docs/sub/größe ／.txt",
                ])
            #expect(try text(to + "/docs/sub/größe ／.txt") == "bb")
            #expect(try text(to + "/docs/empty").isEmpty)
            let row = try await one.transfers.transfer(ids.lowerBound)
            #expect(row.service == "dav" && row.peer == one.id && row.tag == nil && row.url.hasPrefix("rclone://dav/docs/"))
            #expect(FileMatch.exists(to + "/docs/a.txt", size: 1, modified: MemoryRemote.time.milliseconds))
            let again = try await one.transfers.fetch(TransferRequest(service: "dav", path: "docs", to: to))
            #expect(again.first == nil && again.present == 4)
            #expect(!remote.isForced.withLock { $0 })
            _ = try await one.transfers.fetch(TransferRequest(service: "dav", path: "docs", to: to, force: true))
            #expect(remote.isForced.withLock { $0 })
            let events = try await one.node.store.read { try $0.eventPage(since: 0, limit: 100) }.items
            #expect(events.filter { $0.type == .transferDone }.map(\.peer) == [nil, nil, nil, nil])
        }
    }

    @Test("unreadable sub-folders are omitted and counted; an unreadable named folder is refused") func unreadable() async throws {
        let files = ["d/a": "a", "d/b/x": "x", "d/b/deep/y": "y", "d/c/closed/z": "z", "d/c/f": "ff", "d/e/g": "ggg"]
        try await with(MemoryRemote(files, unreadable: ["d/b", "d/c/closed"])) { one, to in
            let (start, ids) = try await fetch("d", into: to, at: one)
            #expect(start.leftOut == 2 && ids.count == 3)
            try await one.until { try await $0.transfers.summary(ids).done == 3 }
            #expect(try names(to) == ["d", "d/a", "d/c", "d/c/f", "d/e", "d/e/g"])
            #expect(try text(to + "/d/e/g") == "ggg")
            await #expect { _ = try await one.transfers.fetch(TransferRequest(service: "dav", path: "d/b", to: to)) } throws: { error in
                (error as? HexlistError)?.code == .notFound
            }
        }
    }

    @Test("a single file without size is refused, and a missing one too") func refused() async throws {
        try await with(MemoryRemote(["live": "x"], sizeless: ["live"])) { one, to in
            for (path, code) in [("live", HexlistError.Code.notSupported), ("no", .notFound), ("", .badRequest)] {
                await #expect {
                    _ = try await one.transfers.fetch(TransferRequest(service: "dav", path: path, to: to))
                } throws: {
                    ($0 as? HexlistError)?.code == code
                }
            }
        }
    }

    @Test("a file with another size than listed fails and leaves nothing", arguments: ["", "longer than it was"])
    func otherSize(other: String) async throws {
        let remote = MemoryRemote(["a.txt": "listed"])
        remote.way.withLock { $0 = .other(other) }
        try await with(remote) { one, to in
            let (_, ids) = try await fetch("a.txt", into: to, at: one)
            try await one.until { try await $0.transfers.summary(ids).failed == 1 }
            #expect(try await one.transfers.transfer(ids.lowerBound).reason == "changed")
            try await eventually { try names(to).isEmpty }
        }
    }

    @Test("unavailable rclone is waited for; the remote's own errors count, and a missing file fails") func faults()
        async throws
    {
        let remote = MemoryRemote(["a.txt": "text", "b.txt": "text", "c.txt": "text"])
        try await with(remote) { one, to in
            let why = HexlistError(.gone, "It is so.", hint: "Do that.")
            for (file, outcome, wait) in [
                ("a.txt", TransferQueue.AttemptResult.sourceFault, "source"), ("b.txt", .interrupted(progressed: false), "link"),
            ] {
                remote.way.withLock { $0 = .fault(RemoteFault(outcome, "why", why)) }
                let (_, ids) = try await fetch(file, into: to, at: one)
                try await one.until { try await $0.transfers.transfer(ids.lowerBound).reason == "why" }
                let row = try await one.transfers.transfer(ids.lowerBound)
                #expect(row.message == "It is so. Do that." && [wait, "turn", nil].contains(row.waitingFor), "\(row)")
                remote.way.withLock { $0 = .whole }
                _ = try await one.transfers.retry(ids.lowerBound, force: true)
                try await one.until { try await $0.transfers.transfer(ids.lowerBound).state.known == .done }
            }
            remote.way.withLock { $0 = .fault(RemoteFault(.final, "notFound", why)) }
            let (_, ids) = try await fetch("c.txt", into: to, at: one)
            try await one.until { try await $0.transfers.transfer(ids.lowerBound).state.known == .failed }
            #expect(try names(to) == ["a.txt", "b.txt"])
        }
    }

    @Test("cancelled in the middle: copying ends, nothing remains, and a retry works") func cancelled() async throws {
        let remote = MemoryRemote(["a.txt": "0123456789"])
        remote.way.withLock { $0 = .hangs }
        try await with(remote) { one, to in
            let (_, ids) = try await fetch("a.txt", into: to, at: one)
            try await one.until { try await $0.transfers.transfer(ids.lowerBound).bytes == 5 }
            #expect(try names(to).count == 1)
            _ = try await one.transfers.cancel(ids.lowerBound)
            try await eventually { try names(to).isEmpty }
            remote.way.withLock { $0 = .whole }
            _ = try await one.transfers.retry(ids.lowerBound, force: false)
            try await one.until { try await $0.transfers.transfer(ids.lowerBound).state.known == .done }
            #expect(try names(to) == ["a.txt"])
            #expect(try text(to + "/a.txt") == "0123456789")
            #expect(remote.copies.withLock { $0 } == 2)
        }
    }

    @Test("a transfer continues after a restart; a remote's link in a hex is not a file link") func restarted() async throws {
        let remote = MemoryRemote(["a.txt": "0123456789"])
        remote.way.withLock { $0 = .hangs }
        let one = try await TestNode("one", on: nil, remotes: remote)
        let to = one.folder.appending(path: "to").path
        try FileManager.default.createDirectory(atPath: to, withIntermediateDirectories: true)
        let (_, ids) = try await fetch("a.txt", into: to, at: one)
        try await one.until { try await $0.transfers.transfer(ids.lowerBound).bytes == 5 }
        try await one.stop(removing: false)
        remote.way.withLock { $0 = .whole }
        let two = try await TestNode("one", on: nil, folder: one.folder, remotes: remote)
        try await two.until { try await $0.transfers.transfer(ids.lowerBound).state.known == .done }
        #expect(try names(to) == ["a.txt"])
        #expect(try text(to + "/a.txt") == "0123456789")
        var hex = HexContent()
        hex.links.append(LinkContent(url: hex.add("rclone://dav/a.txt"), linkDescription: .empty, service: hex.add("Unknown")))
        var plan = FetchPlan(own: two.id)
        plan.addAll(of: hex)
        #expect(plan.files.isEmpty && plan.passedOver == 1)
        try await two.stop()
    }

    @Test("loose files go into a folder of the hex, a single one does not", arguments: [(1, []), (2, ["Trip to the sea"])])
    func folder(count: Int, root: [String]) throws {
        var hex = HexContent()
        hex.hexDescription = hex.add("Trip to the sea\nwith notes")
        for number in 0..<count {
            let url = "hexlist://5E3C0000-0000-8000-8000-00000000000A/share/trip/\(number).txt"
            hex.links.append(LinkContent(url: hex.add(url), linkDescription: .empty, service: hex.add("Unknown")))
        }
        var plan = FetchPlan(own: nil)
        plan.addAll(of: hex)
        plan.addFolder(of: hex)
        #expect(plan.files.count == count && plan.files.allSatisfy { plan.path(of: $0.folder) == root })
        #expect(plan.folders == (root.isEmpty ? [] : [root]))
    }
}
