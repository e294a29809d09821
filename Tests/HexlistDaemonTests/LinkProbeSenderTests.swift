import DaemonTestSupport
import HexlistAPI
import HexlistModel
import HexlistStore
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import HexlistDaemon

@Suite("Checks of links", .timeLimit(.minutes(10))) struct LinkProbeSenderTests {
    /// Runs `body` with a daemon, a web server that it may contact, and one that it may not.
    private func withServer(
        _ answer: @escaping @Sendable (_ resource: String, _ forbiddenPort: Int) -> RawWebServer.Answer,
        _ body: (TestDaemon, RawWebServer, _ forbidden: RawWebServer) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let forbidden = try await RawWebServer(host: "127.0.0.1", group: group) { _ in .page("", status: "404 Not Found") }
        let port = forbidden.port
        let server = try await RawWebServer(host: TestDaemon.webServer, group: group) { answer($0, port) }
        try await TestDaemon.with("ada") { daemons in try await body(daemons[0], server, forbidden) }
        try await server.close()
        try await forbidden.close()
        try await group.shutdownGracefully()
    }

    private func add(_ urls: [String], _ daemon: TestDaemon, into parent: Int64? = nil) async throws -> Int64 {
        var hex = HexContent()
        hex.links = urls.map { LinkContent(url: hex.add($0), linkDescription: hex.add("x"), service: hex.add("Unknown")) }
        let content = hex
        return try await daemon.api.store.addMine(content, into: parent, at: 1)
    }

    private func check(
        _ daemon: TestDaemon, _ request: MineCheckRequest = MineCheckRequest()
    ) async throws -> (MineCheckResult, [MineCheckProgress]) {
        let progress = Mutex<[MineCheckProgress]>([])
        let result = try await daemon.client.checkMine(request) { step in progress.withLock { $0.append(step) } }
        return (result, progress.withLock { $0 })
    }

    private func found(_ daemon: TestDaemon) async throws -> [String] {
        var urls: [String] = []
        _ = try await daemon.client.searchLinks(.init(text: "is:dead"), limit: 100) { urls.append($0.url) }
        return urls
    }

    @Test("dead links are marked and found, others are not; a link that is back loses the mark")
    func marks() async throws {
        let isBack = Mutex(false)
        try await withServer { resource, port in
            switch resource {
            case "/ok", "/moved-to": .page("<title>x</title>")
            case "/moved": .redirect("/moved-to")
            case "/moved-away": .redirect("http://127.0.0.1:\(port)/")
            case "/gone": .page("", status: "410 Gone")
            case "/back": isBack.withLock { $0 } ? .page("") : .page("", status: "404 Not Found")
            case "/forbidden": .page("", status: "403 Forbidden")
            case "/fault": .page("", status: "500 Internal Server Error")
            case "/busy": .page("", status: "429 Too Many Requests", fields: "Retry-After: 3600\r\n")
            default: .page("", status: "404 Not Found")
            }
        } _: { daemon, server, forbidden in
            let url = "http://\(TestDaemon.webServer):\(server.port)"
            let hex = try await add(["/ok", "/moved", "/moved-away", "/gone", "/back", "/forbidden", "/fault"].map { url + $0 }, daemon)
            let inner = try await add(
                ["\(url)/back", "mailto:a@example.org", "http://127.0.0.1:\(forbidden.port)/"], daemon, into: hex)
            let (result, progress) = try await check(daemon)
            #expect(result == MineCheckResult(reachable: 2, dead: 3, unclear: 2, skipped: 3, marked: 3))
            #expect(progress.last?.done == 10 && progress.last?.total == 10)
            let links = Dictionary(uniqueKeysWithValues: progress.flatMap(\.links).map { ("\($0.hex).\($0.number)", $0) })
            #expect(links["\(hex).4"]?.state.known == .dead && links["\(hex).4"]?.status == 410)
            #expect(links["\(hex).5"]?.state.known == .dead && links["\(inner).1"]?.state.known == .dead)
            #expect(links["\(hex).6"]?.reason?.known == .refused && links["\(hex).7"]?.reason?.known == .serverFault)
            #expect(links["\(inner).2"]?.reason?.known == .notWeb && links["\(inner).3"]?.reason?.known == .ownNetwork)
            #expect(links["\(hex).3"]?.reason?.known == .ownNetwork && links["\(hex).1"] == nil && links.count == 8)
            // The forbidden server gets no request. The other one gets one request at a time, and the page to which two links lead is
            // requested only once.
            #expect(forbidden.requests.isEmpty && server.mostOpen == 1)
            #expect(server.requests.count { $0.hasPrefix("HEAD /back ") } == 1 && server.requests.count { $0.hasPrefix("GET /back ") } == 1)
            #expect(server.requests.allSatisfy { $0.contains("User-Agent: Hexlist/") && !$0.lowercased().contains("cookie:") })
            #expect(Set(try await found(daemon)) == ["\(url)/gone", "\(url)/back"])
            let shown = try await daemon.client.hex(hex)
            #expect(shown.links?.map { $0.dead?.status } == [nil, nil, nil, 410, 404, nil, nil])
            #expect(shown.children?.first?.links.map { $0.dead?.status } == [404, nil, nil])
            #expect(try await daemon.client.hexes(.init(location: "mine"), limit: 10).items.map(\.deadLinks) == [2])

            isBack.withLock { $0 = true }
            let (again, steps) = try await check(daemon, MineCheckRequest(hexes: [inner], links: [[hex, 5], [hex, 1]]))
            #expect(again == MineCheckResult(reachable: 3, skipped: 2, unmarked: 2))
            #expect(steps.flatMap(\.links).count { $0.state.known == .reachable } == 2)
            #expect(try await found(daemon) == ["\(url)/gone"])
        }
    }

    @Test("a server that asks for a long pause gets no more requests in this check")
    func busy() async throws {
        try await withServer { _, _ in
            .page("", status: "429 Too Many Requests", fields: "Retry-After: 3600\r\n")
        } _: { daemon, server, _ in
            _ = try await add((0..<50).map { "http://\(TestDaemon.webServer):\(server.port)/\($0)" }, daemon)
            #expect(try await check(daemon).0 == MineCheckResult(unclear: 50))
            #expect(server.requests.count == 1)
        }
    }

    @Test("without a connection nothing is marked, and marks stay")
    func offline() async throws {
        try await withServer { _, _ in
            .page("", status: "404 Not Found")
        } _: { daemon, server, _ in
            let url = "http://\(TestDaemon.webServer):\(server.port)"
            _ = try await add(["\(url)/a"], daemon)
            #expect(try await check(daemon).0 == MineCheckResult(dead: 1, marked: 1))
            _ = try await add(["\(url)/b", "https://does-not-exist.invalid/"], daemon)
            // Nothing listens on this port of the allowed address.
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let closed = try await RawWebServer(host: TestDaemon.webServer, group: group) { _ in .silence }
            let port = closed.port
            try await closed.close()
            try await group.shutdownGracefully()
            let hex = try await add(["http://\(TestDaemon.webServer):\(port)/"], daemon)
            let (result, steps) = try await check(daemon, MineCheckRequest(hexes: [hex]))
            #expect(result == MineCheckResult(unclear: 1) && steps.flatMap(\.links).first?.reason?.known == .unreachable)
            #expect(try await found(daemon) == ["\(url)/a"])
        }
    }

    @Test("one check at a time; it ends with its connection; missing links are refused")
    func oneAtATime() async throws {
        try await withServer { _, _ in
            .silence
        } _: { daemon, server, _ in
            let hex = try await add(["http://\(TestDaemon.webServer):\(server.port)/"], daemon)
            for (request, code) in [
                (MineCheckRequest(hexes: [hex + 9]), HexlistError.Code.notFound), (MineCheckRequest(links: [[hex, 2]]), .notFound),
                (MineCheckRequest(links: [[hex]]), .badRequest),
                (MineCheckRequest(hexes: Array(repeating: hex, count: 1_001)), .badRequest),
            ] {
                let error = await #expect(throws: HexlistError.self) { try await check(daemon, request) }
                #expect(error?.code == code)
            }
            #expect(try await check(daemon, MineCheckRequest(hexes: [])).0 == MineCheckResult())
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { _ = try? await check(daemon) }
                try await eventually { server.requests.count == 1 }
                let error = await #expect(throws: HexlistError.self) { try await check(daemon) }
                #expect(error?.code == .alreadyRunning)
                tasks.cancelAll()
            }
            try await eventually { daemon.api.checks.isFree && server.openConnections == 0 }
        }
    }
}
