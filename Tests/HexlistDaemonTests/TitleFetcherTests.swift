import HexlistModel
import HexlistStore
import HexlistTransport
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import HexlistDaemon

@Suite("Titles of links", .timeLimit(.minutes(10))) struct TitleFetcherTests {
    /// The address of the server, which the tests allow. All other addresses are forbidden, like private ones in the daemon.
    private static let allowed = "127.0.0.2"

    /// Runs `body` with a server on the allowed address, one on a forbidden address, and a fetcher.
    private func withServers(
        _ answer: @escaping @Sendable (_ resource: String, _ forbiddenPort: Int) -> RawWebServer.Answer,
        _ body: (RawWebServer, _ forbidden: RawWebServer, TitleFetcher) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let forbidden = try await RawWebServer(host: "127.0.0.1", group: group) { _ in .page("<title>secret</title>") }
        let forbiddenPort = forbidden.port
        let server = try await RawWebServer(host: Self.allowed, group: group) { answer($0, forbiddenPort) }
        try await TemporaryFolder.with { folder in
            let store = try HexStore(path: "\(folder.path)/hexlist.sqlite")
            let fetcher = TitleFetcher(
                store: store, client: WebClient(eventLoop: group.next()), signal: TitleSignal(), isOn: { true },
                isAllowed: { $0 == IPAddress(Self.allowed) }, time: .seconds(120),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            try await body(server, forbidden, fetcher)
            try store.close()
        }
        try await server.close()
        try await forbidden.close()
        try await group.shutdownGracefully()
    }

    @Test("pages with and without a title, compressed, in other encodings, and not HTML")
    func pages() async throws {
        let pages: [(String, RawWebServer.Answer, TitleRequestSequence.Result)] = [
            ("/plain", .page("<title>Chocolate &amp; cake</title>"), .title("Chocolate & cake")), ("/none", .page("<p>x</p>"), .none),
            ("/empty", .page(""), .none), ("/404", .page("<title>Not found</title>", status: "404 Not Found"), .none),
            ("/500", .page("<title>Error</title>", status: "500 Internal Server Error"), .unavailable),
            ("/503", .page("", status: "503 Service Unavailable"), .unavailable),
            ("/204", .bytes(Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)), .none),
            ("/image", .page("<title>x</title>", type: "image/png"), .none),
            (
                "/utf16", .page([0xFF, 0xFE] + "<title>\u{4eac}</title>".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }),
                .title("\u{4eac}")
            ),
            ("/latin", .page(Array("<title>Stra".utf8) + [0xDF] + Array("e</title>".utf8)), .title("Stra\u{df}e")),
            ("/gzip", .page([0x1F, 0x8B, 8, 0, 0, 0, 0, 0], fields: "Content-Encoding: gzip\r\n"), .none),
            ("/escape", .page("<title>a\u{1B}]0;x\u{7}b</title>"), .title("a]0;xb")),
            ("/cut", .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n<title>cut</title>".utf8)), .title("cut")),
            (
                "/chunked",
                .bytes(Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n<title>\r\n9\r\nx</title>\r\n0\r\n\r\n".utf8)),
                .title("x")
            ),
            ("/old", .bytes(Array("HTTP/1.0 200 OK\r\n\r\n<title>old</title>".utf8)), .title("old")),
            ("/rubbish", .bytes(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8)), .none), ("/closed", .bytes([]), .unavailable),
            ("/long-header", .bytes(Array("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 1 << 20))\r\n\r\n".utf8)), .none),
            ("/cookie", .redirect("/sees-cookie"), .title("read")), ("/sees-cookie", .page("<title>read</title>"), .title("read")),
        ]
        let answers = Dictionary(uniqueKeysWithValues: pages.map { ($0.0, $0.1) })
        try await withServers { resource, _ in
            answers[resource] ?? .silence
        } _: { server, _, fetcher in
            for (resource, _, expected) in pages {
                #expect(await fetcher.result(of: "http://\(Self.allowed):\(server.port)\(resource)") == expected, "\(resource)")
            }
            #expect(
                server.requests.allSatisfy { request in
                    request.contains("Accept-Encoding: identity") && !request.lowercased().contains("cookie:")
                        && request.contains("Host: 127.0.0.2:")
                })
        }
    }

    @Test("redirects are followed a few times, and never to an address that is not allowed")
    func redirects() async throws {
        try await withServers { resource, port in
            switch resource {
            case "/a": .redirect("b")
            case "/b": .redirect("/c?x#y", status: "301 Moved Permanently")
            case "/c?x": .page("<title>end</title>")
            case "/loop": .redirect("/loop")
            case "/loopback": .redirect("http://127.0.0.1:\(port)/")
            case "/mapped": .redirect("http://[::ffff:127.0.0.1]:\(port)/")
            case "/name": .redirect("http://localhost:\(port)/")
            case "/metadata": .redirect("http://169.254.169.254/latest/meta-data/")
            case "/file": .redirect("file:///etc/passwd")
            case "/nowhere": .page("", status: "302 Found")
            case "/tls": .redirect("https://127.0.0.2:\(port)/")
            default: .silence
            }
        } _: { server, forbidden, fetcher in
            func result(_ resource: String) async -> TitleRequestSequence.Result {
                await fetcher.result(of: "http://\(Self.allowed):\(server.port)\(resource)")
            }
            #expect(await result("/a") == .title("end") && server.requests.count == 3)
            #expect(await result("/loop") == .none && server.requests.count == 3 + 1 + TitleRequestSequence.maximumRedirects)
            for resource in ["/loopback", "/mapped", "/name", "/metadata", "/file", "/nowhere"] {
                #expect(await result(resource) == .none, "\(resource)")
            }
            for url in [
                "http://127.0.0.1:\(forbidden.port)/", "http://localhost:\(forbidden.port)/", "http://[::1]/",
                "http://0.0.0.0:\(forbidden.port)/",
            ] {
                #expect(await fetcher.result(of: url) == .none, "\(url)")
            }
            #expect(forbidden.requests.isEmpty && forbidden.mostOpen == 0)
            // A server without TLS.
            #expect(await fetcher.result(of: "https://\(Self.allowed):\(server.port)/") == .none)
            #expect(await result("/tls") == .unavailable)
            let titles = TitleFetcher(
                store: fetcher.store, client: fetcher.client, signal: fetcher.signal, isOn: fetcher.isOn, logger: fetcher.logger)
            #expect(await titles.result(of: "http://\(Self.allowed):\(server.port)/c?x") == .none)
        }
    }

    @Test("a page that never ends is read to a bound, and a slow or silent one for a time")
    func endless() async throws {
        let head = Array("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 10737418240\r\n\r\n<title>".utf8)
        try await withServers { resource, _ in
            switch resource {
            case "/endless": .endless(head)
            case "/titled": .endless(head + Array("early</title>".utf8))
            case "/dripping": .dripping(head + Array("slow</title".utf8))
            case "/drip-head": .dripping(Array("HTTP/1.1 200 OK\r\nX: ".utf8))
            default: .silence
            }
        } _: { server, _, fetcher in
            let url = "http://\(Self.allowed):\(server.port)"
            #expect(await fetcher.result(of: "\(url)/titled") == .title("early"))
            guard case .title(let title) = await fetcher.result(of: "\(url)/endless") else {
                Issue.record("no title")
                return
            }
            #expect(title.utf8.count == 1_024)
            // The kernels of both sides buffer bytes that the client does not read.
            #expect(server.sentBytes < 64 << 20)
            var hurried = fetcher
            hurried.time = .milliseconds(200)
            #expect(await hurried.result(of: "\(url)/silence") == .unavailable)
            #expect(await hurried.result(of: "\(url)/drip-head") == .unavailable)
            _ = await hurried.result(of: "\(url)/dripping")
            try await eventually { server.openConnections == 0 }
        }
    }

    @Test("links that are added get their titles, three at once; a description of the user wins")
    func service() async throws {
        try await withServers { resource, _ in
            resource == "/none" ? .page("") : .page("<title>Title of \(resource)</title>")
        } _: { server, _, fetcher in
            let url = "http://\(Self.allowed):\(server.port)"
            var hex = HexContent()
            let links = (0..<20).map { "\(url)/\($0)" } + ["\(url)/none", "mailto:a@example.org", "\(url)/own"]
            hex.links = links.map { link in
                LinkContent(url: hex.add(link), linkDescription: hex.add(link.hasSuffix("/own") ? "own" : ""), service: hex.add("Unknown"))
            }
            let (store, content) = (fetcher.store, hex)
            let id = try await store.addMine(content, wantsTitles: true, at: 1)
            let silent = try await store.addMine(content, at: 1)
            let services = ServiceGroup(configuration: .init(services: [fetcher], logger: fetcher.logger))
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await services.run() }
                func descriptions(_ id: Int64) async throws -> [String] {
                    let content = try await store.read { try $0.hex(id) }?.content
                    return content.map { content in content.links.map { content.string($0.linkDescription) } } ?? []
                }
                let expected = (0..<20).map { "Title of /\($0)" } + ["", "", "own"]
                try await eventually { try await descriptions(id) == expected }
                try await store.editMine(
                    id, MineEdit(links: [.init(url: "\(url)/new"), .init(url: "\(url)/named", linkDescription: "mine")]), wantsTitles: true,
                    at: 1)
                fetcher.signal.send()
                try await eventually { try await descriptions(id) == ["Title of /new", "mine"] }
                try await eventually { try await store.read { try $0.wantedTitles(notTriedIn: -1, limit: 10) }.isEmpty }
                #expect(try await descriptions(silent).allSatisfy { $0.isEmpty || $0 == "own" } && server.requests.count == 22)
                await services.triggerGracefulShutdown()
                try await tasks.waitForAll()
            }
        }
    }

    @Test("an unreachable link is tried again by later runs, a few times; a stop interrupts a request")
    func attempts() async throws {
        try await withServers { resource, _ in
            resource.hasPrefix("/silence") ? .silence : .page("", status: "503 Service Unavailable")
        } _: { server, _, fetcher in
            let url = "http://\(Self.allowed):\(server.port)"
            var hex = HexContent()
            hex.links = ["\(url)/503"].map { LinkContent(url: hex.add($0), linkDescription: .empty, service: hex.add("Unknown")) }
            _ = try await fetcher.store.addMine(hex, wantsTitles: true, at: 1)
            for attempt in 1...PendingTitle.attempts + 1 {
                let run = TitleFetcher(
                    store: fetcher.store, client: fetcher.client, signal: TitleSignal(), isOn: { true }, isAllowed: fetcher.isAllowed,
                    time: fetcher.time, logger: fetcher.logger)
                try await withRun(run) {
                    if attempt <= PendingTitle.attempts {
                        try await eventually { server.requests.count == attempt }
                    } else {
                        try await eventually { try await fetcher.store.read { try $0.wantedTitles(notTriedIn: -1, limit: 1) }.isEmpty }
                    }
                }
            }
            #expect(server.requests.count == PendingTitle.attempts)
            var silent = HexContent()
            silent.links = (0..<6).map { LinkContent(url: silent.add("\(url)/silence?\($0)"), linkDescription: .empty, service: .empty) }
            _ = try await fetcher.store.addMine(silent, wantsTitles: true, at: 1)
            try await withRun(fetcher) {
                try await eventually { server.requests.count == PendingTitle.attempts + TitleFetcher.concurrency }
            }
            #expect(try await fetcher.store.read { try $0.wantedTitles(notTriedIn: -1, limit: 9) }.count == 6)
            // While the fetching of titles is turned off, no page is requested.
            let (asked, asking) = AsyncStream.makeStream(of: Void.self)
            let isOff: @Sendable () -> Bool = {
                asking.yield()
                return false
            }
            let off = TitleFetcher(
                store: fetcher.store, client: fetcher.client, signal: TitleSignal(), isOn: isOff, isAllowed: fetcher.isAllowed,
                time: fetcher.time, logger: fetcher.logger)
            try await withRun(off) { for await _ in asked { break } }
            #expect(server.requests.count == PendingTitle.attempts + TitleFetcher.concurrency)
        }
    }

    /// Runs a fetcher until `body` returns.
    private func withRun(_ fetcher: TitleFetcher, _ body: () async throws -> Void) async throws {
        let services = ServiceGroup(configuration: .init(services: [fetcher], logger: fetcher.logger))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await services.run() }
            try await body()
            await services.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }
}
