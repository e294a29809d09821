import Crypto
import Foundation
import HexlistAPI
import HexlistFiles
import HexlistModel
@testable import HexlistTransport
import Synchronization
import TestSupport
import Testing

@testable import HexlistNode
@testable import HexlistStore
@testable import HexlistTransfers

/// Shares between two nodes: real TLS over loopback, real SQLite, real files.
@Suite("Shares between nodes", .serialized, .timeLimit(.minutes(5))) struct ShareNodeTests {
    private func withFriends(_ body: (TestNode, TestNode, _ from: URL, _ to: URL) async throws -> Void) async throws {
        try await withTwoNodes { one, two in
            _ = try await one.node.peers.setTrust(two.id, .trusted)
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            let (from, to) = (one.folder.appending(path: "photos"), two.folder.appending(path: "to"))
            for folder in [from, to] { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
            try await body(one, two, from, to)
        }
    }

    private func write(_ files: [String: String], to folder: URL) throws {
        for (name, text) in files {
            let path = folder.appending(path: name)
            try FileManager.default.createDirectory(at: path.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: path)
            try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1_500_000_000)], ofItemAtPath: path.path)
        }
    }

    private func share(_ folder: URL, of one: TestNode, to peers: [String]? = nil, hidden: Bool = false) async throws {
        _ = try await one.transfers.shares.add(ShareRequest(path: folder.path, to: peers, hidden: hidden), protecting: [])
    }

    private func list(_ path: String, of one: TestNode, at two: TestNode, by order: FolderSortOrder = .name) async throws -> [FileEntry] {
        let service = try await two.transfers.services.named(one.id.description)
        var (entries, after): ([FileEntry], String?) = ([], nil)
        repeat {
            let page = try await service.page(of: try #require(SharePath(typed: path)), by: order, after: after, limit: LocalAPI.pageLimit)
            entries += page.items
            after = page.next
        } while after != nil
        return entries
    }

    private func fetch(_ path: String, of one: TestNode, into folder: URL, at two: TestNode) async throws -> (
        TransferStartResult, [TransferView]
    ) {
        let start = try await two.transfers.fetch(TransferRequest(service: one.id.description, path: path, to: folder.path))
        guard let first = start.first, let last = start.last else { return (start, []) }
        try await two.until { try await $0.transfers.summary(first...last).isQuiet }
        return (
            start, try await two.transfers.page(nil, before: nil, limit: 1_000).rows.filter { (first...last).contains($0.id) }.reversed()
        )
    }

    private func code(_ body: () async throws -> Void) async -> HexlistError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? HexlistError)?.code
        }
    }

    @Test("a shared folder is listed and fetched completely; a second time nothing is")
    func listedAndFetched() async throws {
        try await withFriends { one, two, from, to in
            let files = ["a.txt": "a", "2026/b c.jpg": "bb", "2026/Größe/中文.txt": "ccc", "2026/.hidden": "h", "empty": ""]
            try write(files, to: from)
            try FileManager.default.createSymbolicLink(atPath: from.path + "/link", withDestinationPath: "/etc/passwd")
            try await share(from, of: one)
            #expect(try await list("", of: one, at: two).map(\.name) == ["photos"])
            let listed = try await list("photos", of: one, at: two)
            #expect(listed.map(\.name) == ["2026", "a.txt", "empty"] && listed.map(\.size) == [nil, 1, 0])
            #expect(listed[1].modified == Timestamp(milliseconds: 1_500_000_000_000) && listed[1].mediaType == "text/plain")
            #expect(try await list("photos", of: one, at: two, by: .size).map(\.name) == ["a.txt", "empty", "2026"])
            var (start, rows) = try await fetch("photos/", of: one, into: to, at: two)
            #expect(rows.count == 4 && rows.allSatisfy { $0.state.known == .done } && start.leftOut == 0, "\(rows)")
            for (name, text) in files where !name.contains(".hidden") {
                let path = to.appending(path: "photos/\(name)")
                #expect(try Data(contentsOf: path) == Data(text.utf8))
                let attributes = try FileManager.default.attributesOfItem(atPath: path.path)
                #expect(attributes[.modificationDate] as? Date == Date(timeIntervalSince1970: 1_500_000_000))
            }
            (start, rows) = try await fetch("photos", of: one, into: to, at: two)
            #expect(rows.isEmpty && start.present == 4 && start.first == nil)
            // Fetches a single file, which has changed.
            try Data("new".utf8).write(to: from.appending(path: "a.txt"))
            (start, rows) = try await fetch("photos/a.txt", of: one, into: to, at: two)
            #expect(try rows.count == 1 && rows[0].file == "a.txt" && Data(contentsOf: to.appending(path: "a.txt")) == Data("new".utf8))
            #expect(
                try FileManager.default.subpathsOfDirectory(atPath: to.path).allSatisfy { !$0.contains(".part") && !$0.contains("link") })
        }
    }

    @Test(
        "an unreadable folder is omitted and counted, and the rest is fetched",
        .enabled(if: geteuid() != 0, "root reads everything"))
    func unreadableFolder() async throws {
        try await withFriends { one, two, from, to in
            try write(["a.txt": "a", "closed/b.txt": "b", "open/c.txt": "c"], to: from)
            let closed = from.appending(path: "closed").path
            #expect(chmod(closed, 0) == 0)
            defer { chmod(closed, 0o700) }
            try await share(from, of: one)
            let (start, rows) = try await fetch("photos", of: one, into: to, at: two)
            #expect(rows.count == 2 && rows.allSatisfy { $0.state.known == .done } && start.leftOut == 1, "\(rows)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: to.appending(path: "photos").path).sorted() == ["a.txt", "open"])
            #expect(await code { _ = try await fetch("photos/closed", of: one, into: to, at: two) } == .notFound)
        }
    }

    @Test("an unauthorised peer is refused, with the same reply whatever the reason")
    func whoMayNot() async throws {
        try await withFriends { one, two, from, to in
            try write(["a.txt": "a", ".hidden/x": "x"], to: from)
            try FileManager.default.createSymbolicLink(atPath: from.path + "/out", withDestinationPath: "/etc")
            let stranger = try #require(PeerID("00000000-0000-8000-8000-000000000001"))
            _ = try await one.node.store.share(
                ShareRow(name: "photos", path: from.path, showsHidden: false, isForAll: false, peers: [stranger]))
            #expect(try await list("", of: one, at: two).isEmpty)
            for path in ["photos", "photos/a.txt", "Photos", "nothing"] {
                #expect(await code { _ = try await fetch(path, of: one, into: to, at: two) } == .notFound, "\(path)")
            }
            try await share(from, of: one, to: [two.id.description])
            for path in ["photos/out", "photos/out/passwd", "photos/.hidden", "photos/.hidden/x", "Photos/a.txt", "photos/A.txt"] {
                #expect(await code { _ = try await fetch(path, of: one, into: to, at: two) } == .notFound, "\(path)")
            }
            for path in ["photos/../photos", "photos//a.txt", "photos/./a.txt", "photos/a\0.txt", ""] {
                #expect(await code { _ = try await fetch(path, of: one, into: to, at: two) } == .badRequest, "\(path)")
            }
            #expect(await code { _ = try await list("photos/a.txt", of: one, at: two) } == .badRequest)
            #expect(try await list("photos", of: one, at: two).map(\.name) == ["a.txt"])
            // A symbolic link replaces a listed file.
            try FileManager.default.removeItem(at: from.appending(path: "a.txt"))
            try FileManager.default.createSymbolicLink(atPath: from.path + "/a.txt", withDestinationPath: "/etc/passwd")
            #expect(await code { _ = try await fetch("photos/a.txt", of: one, into: to, at: two) } == .notFound)
            // A symbolic link to another folder replaces the folder of the share.
            try FileManager.default.moveItem(at: from, to: one.folder.appending(path: "moved"))
            try FileManager.default.createSymbolicLink(atPath: from.path, withDestinationPath: "/etc")
            #expect(await code { _ = try await list("photos", of: one, at: two) } == .notFound)
            #expect(try await one.transfers.shares.all().map { $0.why != nil } == [true])
            #expect(try await list("", of: one, at: two).isEmpty)
            _ = try await two.node.peers.setTrust(one.id, .stranger)
            #expect(await code { _ = try await list("", of: one, at: two) } == .badRequest)
            #expect(try FileManager.default.contentsOfDirectory(atPath: to.path).isEmpty)
        }
    }

    @Test("the end of a share ends its transfers", arguments: ["rm", "group", "trust"])
    func ends(how: String) async throws {
        try await withFriends { one, two, from, to in
            // A sparse file too large to be fetched before the share ends.
            let size: UInt64 = how == "trust" ? 256 << 20 : 1 << 30
            let file = from.appending(path: "large.bin")
            try Data().write(to: file)
            let handle = try FileHandle(forWritingTo: file)
            try handle.truncate(atOffset: size)
            try handle.close()
            if how == "group" {
                _ = try await one.node.groups.add([two.id.description], to: "friends")
                try await share(from, of: one, to: ["@friends"])
            } else {
                try await share(from, of: one)
            }
            let start = try await two.transfers.fetch(TransferRequest(service: one.id.description, path: "photos/large.bin", to: to.path))
            let id = try #require(start.first)
            try await eventually { try await two.transfers.transfer(id).bytes > 0 }
            switch how {
            case "rm": _ = try await one.transfers.shares.end("photos")
            case "group": _ = try await one.node.groups.remove([two.id.description], from: "friends")
            default: _ = try await one.node.peers.setTrust(two.id, .blocked)
            }
            if how == "trust" {
                try await two.until { try await $0.transfers.transfer(id).state.known == .waiting }
                #expect(try await two.transfers.transfer(id).bytes < Int64(size))
                _ = try await one.node.peers.setTrust(two.id, .trusted)
                _ = try? await two.transfers.retry(id, force: true)
                try await two.until { try await $0.transfers.transfer(id).state.known == .done }
                #expect(try Data(contentsOf: to.appending(path: "large.bin")).count == Int(size))
            } else {
                try await two.until { try await $0.transfers.transfer(id).endedAt != nil }
                let row = try await two.transfers.transfer(id)
                #expect(row.state.known == .failed && row.reason == "notOffered", "\(row)")
            }
        }
    }

    @Test("a file that was replaced during a pause is fetched from the start")
    func changedMeanwhile() async throws {
        try await withFriends { one, two, from, to in
            let file = from.appending(path: "large.bin")
            try Data(repeating: 1, count: 64 << 20).write(to: file)
            try await share(from, of: one)
            let start = try await two.transfers.fetch(TransferRequest(service: one.id.description, path: "photos/large.bin", to: to.path))
            let id = try #require(start.first)
            try await two.until { try await $0.transfers.transfer(id).bytes > 8 << 20 }
            _ = try await one.node.peers.setTrust(two.id, .blocked)
            try Data(repeating: 2, count: 65 << 20).write(to: file)
            _ = try await one.node.peers.setTrust(two.id, .trusted)
            _ = try? await two.transfers.retry(id, force: true)
            try await two.until { try await $0.transfers.transfer(id).endedAt != nil }
            let data = try Data(contentsOf: to.appending(path: "large.bin"))
            // Either the transfer completed before, or the file has the new content.
            let all: UInt8 = data.count == 64 << 20 ? 1 : 2
            #expect(data.count == (all == 1 ? 64 << 20 : 65 << 20) && data == Data(repeating: all, count: data.count))
        }
    }

    @Test("small files are fetched together; missing and grown ones do not affect the others")
    func together() async throws {
        try await withFriends { one, two, from, to in
            let large = String(repeating: "large", count: 100_000)
            var files = ["grown": large, "empty": "", "sub/other": "other"]
            for number in 0..<150 { files["file \(number)"] = String(repeating: "\(number) ", count: number) }
            try write(files, to: from)
            try await share(from, of: one)
            var hex = HexContent()
            for name in ["gone"] + files.keys.sorted() {
                let size = name == "grown" ? 5 : files[name]?.utf8.count ?? 5
                let path = try #require(SharePath(typed: name))
                hex.links.append(
                    LinkContent(
                        url: hex.add(FileLink(peer: one.id, target: .share(name: "photos", path: path)).description),
                        linkDescription: .empty, service: hex.add("Unknown"), extra: hex.add(#"{"size":\#(size)}"#)))
            }
            let start = try await two.transfers.fetch(
                TransferRequest(hex: try await two.node.store.addMine(hex, at: 1), to: to.path))
            let ids = try #require(start.first)...(try #require(start.last))
            // A grown file ends the connection it shares with others, which are fetched a moment later.
            try await two.until { node in
                let summary = try await node.transfers.summary(ids)
                return summary.done + summary.failed == files.count + 1
            }
            let rows = try await two.transfers.page(nil, before: nil, limit: 1_000).rows
            #expect(rows.count == files.count + 1)
            #expect(rows.filter { $0.state.known != .done }.map(\.file) == ["gone"])
            for (name, text) in files {
                #expect(try Data(contentsOf: to.appending(path: name.split(separator: "/").last ?? "")) == Data(text.utf8), "\(name)")
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: to.path).count == files.count)
        }
    }

    @Test("requests for small files are answered together, up to a list or a large file")
    func groups() async throws {
        try await withFriends { one, two, from, _ in
            try write(["a": "a", "b": "b", "large": String(repeating: "x", count: 1 << 20)], to: from)
            try await share(from, of: one)
            let files = PeerFileRequests(peer: two.id, store: one.node.store, tagKey: SymmetricKey(size: .bits256), now: 0) { _ in }
            let entry = { (name: String, query: FileRequestTarget.EntryQuery) in
                FileRequestTarget.entry(share: "photos", path: try #require(SharePath(typed: name)), query)
            }
            let (a, b, gone) = try (entry("a", .content), entry("b", .content), entry("gone", .content))
            let lists: [FileRequestTarget] = try [.shares, entry("/", .content), entry("/", .list(.time, after: nil)), entry("a", .about)]
            let together = { (targets: [FileRequestTarget], isHead: Bool) in
                files.answers(to: targets.map { FileRequest(isHead: isHead, target: $0.description) }).count
            }
            #expect(together([a, b, gone, a], false) == 4)
            #expect(together([a, try entry("large", .content), b], false) == 2)
            for list in lists {
                #expect(together([a, list, b, list], false) == 2, "\(list)")
                #expect(together([list, list], true) == 1, "\(list)")
            }
        }
    }

    @Test("links into shares lead to their files; one in a hex is fetched, and for a folder the message names the command")
    func links() async throws {
        try await withFriends { one, two, from, to in
            try write(["a b.txt": "a"], to: from)
            try await share(from, of: one)
            let replies = Replies()
            let service = try await one.transfers.services.named("shares")
            let paths = try ["photos/a b.txt", "photos", "photos/none", ""].map { try #require(SharePath(typed: $0)) }
            try await service.links(to: paths, LinkOptions()) { replies.add($0) }
            let all = replies.all
            #expect(all.count == 4 && all["photos/none"]?.code == "notFound" && all[""]?.code == "badRequest")
            let url = "hexlist://\(one.id)/share/photos/a%20b.txt"
            #expect(all["photos/a b.txt"]?.url == url && all["photos"]?.code == "badRequest")
            #expect(all["photos"]?.hint?.contains("`hexlist fetch '\(one.id.shortID):photos'`") == true)
            var hex = HexContent()
            hex.links = [url, "hexlist://\(one.id)/share/photos"].map {
                LinkContent(url: hex.add($0), linkDescription: .empty, service: hex.add("Unknown"))
            }
            let id = try await two.node.store.addMine(hex, at: 1)
            let start = try await two.transfers.fetch(TransferRequest(hex: id, to: to.path))
            let ids = try #require(start.first)...(try #require(start.last))
            try await two.until { try await $0.transfers.summary(ids).isQuiet }
            let rows = try await two.transfers.page(nil, before: nil, limit: 10).rows
            #expect(rows.map(\.reason) == ["folder", nil] && rows.map(\.state.known) == [.failed, .done])
            // The command of the message works.
            #expect(rows[0].message?.contains("`hexlist fetch '\(one.id.shortID):photos'`") == true)
            let folder = try await two.transfers.fetch(TransferRequest(service: one.id.shortID, path: "photos", to: to.path))
            let fetched = try #require(folder.first)
            try await two.until { try await $0.transfers.transfer(fetched).state.known == .done }
            #expect(try Data(contentsOf: to.appending(path: "photos/a b.txt")) == Data("a".utf8))
            #expect(try Data(contentsOf: to.appending(path: "a b.txt")) == Data("a".utf8))
        }
    }

    @Test("services are listed; refusals have a reason")
    func services() async throws {
        try await withFriends { one, two, from, _ in
            let views = try await two.transfers.services.all().map(\.view)
            #expect(views.map(\.name) == ["shares", "one"] && views.allSatisfy(\.usable) && views[1].kind.known == .peer)
            #expect(await code { _ = try await two.transfers.services.named("nobody") } == .notFound)
            let ofOwn = TransferRequest(service: "shares", path: "x", to: "/tmp")
            #expect(await code { _ = try await two.transfers.fetch(ofOwn) } == .notFound)
            for request in [
                ShareRequest(path: "relative"), ShareRequest(path: from.path + "/none"), ShareRequest(path: from.path, name: "a/b"),
                ShareRequest(path: from.path, name: ".a"), ShareRequest(path: from.path, to: []), ShareRequest(path: "/"),
                ShareRequest(path: "/etc/passwd"),
            ] {
                #expect(
                    await code { _ = try await one.transfers.shares.add(request, protecting: [one.folder.path]) } == .badRequest,
                    "\(request.jsonText)")
            }
            for path in [one.folder.path, from.path, one.folder.deletingLastPathComponent().path] {
                let request = ShareRequest(path: path)
                #expect(await code { _ = try await one.transfers.shares.add(request, protecting: [one.folder.path]) } == .badRequest)
            }
            #expect(try await one.transfers.shares.all().isEmpty)
        }
    }
}

/// Results by path, usable from any thread.
private final class Replies: Sendable {
    private let replies = Mutex<[String: ServiceLinkResult]>([:])
    var all: [String: ServiceLinkResult] { replies.withLock { $0 } }
    func add(_ reply: ServiceLinkResult) { replies.withLock { $0[reply.path] = reply } }
}
