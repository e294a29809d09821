import DaemonTestSupport
import HexlistAPI
import HexlistModel
import HexlistStore
import TestSupport
import Testing

@testable import HexlistDaemon

@Suite("Feed addresses", .timeLimit(.minutes(5))) struct FeedTests {
    private func add(_ description: String, _ names: [String], _ daemon: TestDaemon, into parent: Int64? = nil) async throws -> Int64 {
        var hex = HexContent()
        hex.hexDescription = hex.add(description)
        hex.links = names.map {
            LinkContent(url: hex.add("https://a.example/\($0)"), linkDescription: hex.add("about \($0)"), service: hex.add("Unknown"))
        }
        let content = hex
        return try await daemon.api.store.addMine(content, into: parent, at: 1_700_000_000_000)
    }

    /// The port and the path of an address.
    private func parts(_ url: String) throws -> (port: Int, path: String) {
        let rest = try #require(url.hasPrefix("http://127.0.0.1:") ? url.dropFirst(17) : nil)
        let slash = try #require(rest.firstIndex(of: "/"))
        return (try #require(Int(rest[..<slash])), String(rest[slash...]))
    }

    private func read(
        _ url: String, _ method: String = "GET", host: String? = nil, fields: [String] = []
    ) async throws -> RawHTTPReply {
        let (port, path) = try parts(url)
        return try await RawHTTP.ask(
            port, "\(method) \(path)", fields: ["Host: \(host ?? "127.0.0.1:\(port)")", "Connection: close"] + fields, body: "",
            mayReset: true)
    }

    private func titles(_ reply: RawHTTPReply) -> [String] {
        reply.body.split(separator: "<entry>").dropFirst().compactMap { entry in
            entry.split(separator: "<title>").dropFirst().first?.split(separator: "</title>").first.map(String.init)
        }
    }

    @Test("an address has the links of a search, a hex or a place, and is read without other authentication")
    func contents() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0]
            let folder = try await add("Rivers <1>", ["a"], ada)
            _ = try await add("Lakes", ["b", "c"], ada, into: folder)
            _ = try await add("Other", ["d"], ada)
            let all = try await ada.client.addFeed(FeedRequest())
            let hex = try await ada.client.addFeed(FeedRequest(hex: folder))
            let search = try await ada.client.addFeed(FeedRequest(text: "about -c", location: "mine"))
            #expect(try titles(await read(#require(all.url))) == ["about d", "about a", "about b", "about c"])
            #expect(try titles(await read(#require(hex.url))) == ["about a", "about b", "about c"])
            #expect(try Set(titles(await read(#require(search.url)))) == ["about a", "about b", "about d"])
            let reply = try await read(try #require(hex.url))
            #expect(reply.status == 200 && reply.head.contains("content-type: application/atom+xml; charset=utf-8"))
            #expect(reply.head.contains("cross-origin-resource-policy: same-origin") && !reply.head.contains("access-control"))
            #expect(
                reply.body.contains("<title>Rivers &lt;1&gt;</title>") && hex.title == "Rivers <1>" && search.title == "Hexlist: about -c")
            // A reader sends the tag of the feed that it has.
            let tag = try #require(reply.head.split(separator: "\r\n").first { $0.hasPrefix("etag: ") }?.dropFirst(6))
            #expect(try await read(try #require(hex.url), fields: ["If-None-Match: \(tag)"]).status == 304)
            _ = try await add("New", ["e"], ada, into: folder)
            #expect(try await read(try #require(hex.url), fields: ["If-None-Match: \(tag)"]).status == 200)
            #expect(try await read(try #require(hex.url), "HEAD").body.isEmpty)
            let listed = try await ada.client.feeds()
            #expect(listed.map(\.id) == [all.id, hex.id, search.id] && listed.allSatisfy { $0.url == nil && $0.usedAt != nil })
            _ = try await ada.client.delete(.ids([folder]))
            #expect(try await read(try #require(hex.url)).status == 404)
        }
    }

    @Test("wrong keys, other hosts, other requests and removed addresses get nothing; without addresses nothing listens")
    func refused() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0]
            _ = try await add("Rivers", ["a"], ada)
            let one = try await ada.client.addFeed(FeedRequest()), other = try await ada.client.addFeed(FeedRequest())
            let url = try #require(one.url), (port, path) = try parts(url)
            #expect(url != other.url && path.utf8.count == 6 + 64)
            for (path, status) in [
                ("/feed/" + String(repeating: "0", count: 64), 404), ("/feed/", 404), ("/", 404), ("/v1/status", 404), ("/v1/hexes", 404),
                (path + "/", 404), ("//feed/\(path.dropFirst(6))", 404),
            ] {
                let reply = try await read("http://127.0.0.1:\(port)\(path)")
                #expect(reply.status == status && !reply.body.contains("about"), "\(path)")
            }
            for method in ["POST", "DELETE", "OPTIONS", "PUT"] { #expect(try await read(url, method).status == 405) }
            for host in ["evil.example", "evil.example:\(port)", "127.0.0.1:\(port + 1)", "127.0.0.1"] {
                #expect(try await read(url, host: host).status == 403)
            }
            #expect(try await read(url, host: "localhost:\(port)").status == 200)
            _ = try await ada.client.removeFeed(one.id)
            #expect(try await read(url).status == 404)
            #expect(try await read(try #require(other.url)).status == 200)
            await #expect(throws: HexlistError.self) { try await ada.client.removeFeed(one.id) }
            _ = try await ada.client.removeFeed(other.id)
            // The listener stops shortly after the reply to the removal of the last address.
            try await eventually { (try? await read(url))?.status != 404 }
            // A new address starts a listener again.
            let again = try await ada.client.addFeed(FeedRequest())
            #expect(try await titles(read(try #require(again.url))) == ["about a"])
        }
    }

    @Test("requests that name nothing readable are refused, and more than a hundred addresses")
    func bounds() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0]
            for (request, code) in [
                (FeedRequest(hex: 9), HexlistError.Code.notFound), (FeedRequest(hex: 9, text: "a"), .badRequest),
                (FeedRequest(text: ""), .badRequest), (FeedRequest(text: "host:"), .badRequest), (FeedRequest(location: "x"), .badRequest),
            ] {
                let error = await #expect(throws: HexlistError.self) { try await ada.client.addFeed(request) }
                #expect(error?.code == code)
            }
            for _ in 0..<FeedAddress.maximum { _ = try await ada.client.addFeed(FeedRequest()) }
            let error = await #expect(throws: HexlistError.self) { try await ada.client.addFeed(FeedRequest()) }
            #expect(error?.code == .badRequest)
        }
    }
}
