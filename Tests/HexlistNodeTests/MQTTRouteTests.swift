import Foundation
import HexlistEnvelope
import HexlistMQTT
import HexlistModel
import HexlistStore
import TestSupport
import Testing

@testable import HexlistNode

/// Nodes that reach each other through a real mosquitto only, without encryption on loopback. `Tests/Faults/away` has TLS, logins and kills.
@Suite("MQTT route", .serialized, .timeLimit(.minutes(5)), .enabled(if: Broker.program != nil, "mosquitto is not installed"))
struct MQTTRouteTests {
    private static func node(_ name: String, _ port: Int, on link: InMemoryLink? = nil, state: URL? = nil, query: String = "") async throws
        -> TestNode
    {
        let address = try #require(MQTTAddress("mqtt://127.0.0.1:\(port)\(query)"))
        return try await TestNode(name, on: link, folder: state) { configuration in
            configuration.routes.list = [RouteConfiguration(name: "office", place: .broker(address))]
            configuration.routes.awayTime = .zero
            configuration.routes.startTime = .zero
            configuration.routes.batchTime = .milliseconds(20)
        }
    }

    /// Two nodes that met, have each other's card, and were stopped.
    private static func apart(_ port: Int) async throws -> (one: TestNode, two: TestNode) {
        let link = InMemoryLink()
        let (one, two) = (try await node("one", port, on: link), try await node("two", port, on: link))
        try await one.untilListed(two)
        try await two.untilListed(one)
        _ = try await two.node.peers.setTrust(one.id, .trusted)
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        for (here, there) in [(one, two), (two, one)] {
            try await eventually { try await here.node.store.read { try $0.peer(there.id)?.card } != nil }
            try await eventually { await here.node.routeList.all().first?.state.known == .working }
        }
        try await one.stop(removing: false)
        try await two.stop(removing: false)
        return (one, two)
    }

    private static func descriptions(_ node: TestNode) async throws -> [String] {
        try await node.node.store.read { try $0.hexPage(HexFilter(location: .inbox), limit: 1_000, after: nil) }.items.map(\.description)
    }

    @Test("two nodes that are never awake together exchange hexes, and the rows are settled") func neverTogether() async throws {
        try await Broker.with { broker in
            let (first, second) = try await Self.apart(broker.port)
            var one = try await Self.node("one", broker.port, state: first.folder)
            var rows: [Int64] = []
            for number in 0..<5 { rows.append(try await one.send(2, to: second, description: "hex \(number)", wait: .zero).outboxID) }
            for row in rows {
                try await eventually { [node = one.node] in
                    let view = try await node.outbox.row(row)
                    return view.waitingFor?.known == .receipt && view.via == "office" && view.posts == 1
                }
            }
            #expect(await one.node.routeList.all().first?.waiting.map(\.peer) == [second.id])
            try await one.stop(removing: false)

            let two = try await Self.node("two", broker.port, state: second.folder)
            try await eventually { try await Self.descriptions(two).count == 5 }
            #expect(try await Self.descriptions(two).sorted() == (0..<5).map { "hex \($0)" })
            // The receipt is posted before the envelope is removed.
            try await eventually { await two.node.routeList.all().first?.lastOut != nil }
            try await two.stop()

            one = try await Self.node("one", broker.port, state: first.folder)
            #expect(try await one.ends(of: rows).allSatisfy { $0 == .stored })
            #expect(await one.node.routeList.all().first?.waiting.isEmpty == true)
            try await one.stop()
        }
    }

    @Test("a test letter comes back; a broker that is gone is reported, and found again") func testsAndFaults() async throws {
        try await Broker.with { broker in
            let one = try await Self.node("one", broker.port)
            try await eventually { await one.node.routeList.all().first?.state.known == .working }
            let first = try await one.node.routeList.test("office")
            #expect(first.milliseconds != nil, "\(first)")
            await #expect(throws: HexlistError.self) { try await one.node.routeList.test("home") }
            try await broker.stop()
            try await eventually { await one.node.routeList.all().first?.state.known == .failing }
            let result = try await one.node.routeList.test("office")
            #expect(result.milliseconds == nil && result.message?.contains("unreachable") == true, "\(result)")
            #expect(await one.node.status().routeProblems.map(\.route) == ["office"])
            try broker.start()
            try await eventually { await one.node.routeList.all().first?.state.known == .working }
            let again = try await one.node.routeList.test("office")
            #expect(again.milliseconds != nil, "\(again)")
            try await one.stop()
        }
    }

    @Test("two machines with one client id are recognised, and one of them pauses") func secondClient() async throws {
        try await Broker.with { broker in
            let one = try await Self.node("one", broker.port, query: "?id=same")
            let two = try await Self.node("two", broker.port, query: "?id=same")
            try await eventually {
                var problems: [String] = []
                for node in [one, two] { problems += await node.node.routeList.all().compactMap(\.problem) }
                return problems.contains { $0.contains("another machine is using this mailbox") }
            }
            try await one.stop()
            try await two.stop()
        }
    }

    @Test("`max` divides the hexes into envelopes that fit; a longer one waits for a session") func maximum() async throws {
        try await Broker.with { broker in
            let (first, second) = try await Self.apart(broker.port)
            let one = try await Self.node("one", broker.port, state: first.folder, query: "?max=20000")
            var small: [Int64] = []
            for number in 0..<4 { small.append(try await one.send(60, to: second, description: "s\(number)", wait: .zero).outboxID) }
            let long = try await one.send(1_000, to: second, description: "long", wait: .zero).outboxID
            for row in small { try await eventually { try await one.node.outbox.row(row).waitingFor?.known == .receipt } }
            let waiting = await one.node.routeList.all().first?.waiting.first
            #expect((waiting?.envelopes ?? 0) >= 2)
            #expect(try await one.node.outbox.row(long).waitingFor?.known == .peer)
            try await one.stop(removing: false)
            let two = try await Self.node("two", broker.port, state: second.folder)
            try await eventually { try await Self.descriptions(two).sorted() == ["s0", "s1", "s2", "s3"] }
            try await two.stop()
        }
    }
}

/// A mosquitto on a port of its own.
final class Broker: @unchecked Sendable {
    static let program = ["/usr/sbin/mosquitto", "/usr/bin/mosquitto", "/usr/local/sbin/mosquitto"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    let port: Int
    private let configuration: String
    private var process: ChildProcess?

    private init(_ folder: TemporaryFolder) throws {
        let free = try #require(RefusingPort())
        port = Int(free.port)
        free.close()
        configuration = "\(folder.path)/mosquitto.conf"
        let text = "listener \(port) 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location \(folder.path)/\nuser root\n"
        try Data(text.utf8).write(to: URL(filePath: configuration))
    }

    static func with(_ body: (Broker) async throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            let broker = try Broker(folder)
            try broker.start()
            do {
                try await body(broker)
            } catch {
                try await broker.stop()
                throw error
            }
            try await broker.stop()
        }
    }

    func start() throws {
        process = try ChildProcess(try #require(Self.program), ["-c", configuration])
    }

    /// Stops mosquitto, so that it saves its sessions.
    func stop() async throws {
        guard let process else { return }
        self.process = nil
        process.signal(SIGTERM)
        _ = await process.status()
    }
}
