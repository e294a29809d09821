import TestSupport
import Foundation
import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistStore
import HexlistTransport
import Logging
import NIOPosix

@testable import HexlistNode
@testable import HexlistTransfers

/// A complete node without Avahi: real TLS over loopback, real SQLite in its own folder.
struct TestNode {
    let node: Node
    let folder: URL
    let group: MultiThreadedEventLoopGroup

    var id: PeerID { node.id }
    var transfers: FileTransfers { node.transfers }

    init(
        _ name: String, on link: InMemoryLink?, identity: Identity? = nil, folder: URL? = nil,
        remotes: (any RemoteServices)? = nil, _ configure: (inout NodeConfiguration) -> Void = { _ in }
    ) async throws {
        let folder = folder ?? FileManager.default.temporaryDirectory.appending(path: "hexlist-node-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        self.folder = folder
        var configuration = NodeConfiguration(name: name)
        configuration.listen = ["127.0.0.1", "::1"]
        configuration.port = 0
        configure(&configuration)
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var logger = Logger(label: name)
        logger.logLevel = .error
        let identity = try identity ?? Identity.load(from: folder.path) ?? Identity.create(in: folder.path)
        node = try Node(
            configuration: configuration, identity: identity, store: HexStore(path: folder.appending(path: "hexlist.sqlite").path),
            discovery: link.map { InMemoryDiscovery(link: $0) }, remotes: remotes, eventLoop: group.next(), logger: logger)
        try await node.start()
    }

    func stop(removing: Bool = true) async throws {
        await node.stop()
        try node.store.close()
        try await group.shutdownGracefully()
        if removing { try FileManager.default.removeItem(at: folder) }
    }

    /// Checks a condition at each change of the node until it holds.
    /// - Throws: `NotInTime`; `CancellationError` if the node stops, or by the test's time limit.
    func until(file: String = #fileID, line: Int = #line, _ holds: (Node) async throws -> Bool) async throws {
        let changes = node.changes()
        let (checks, check) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await _ in changes { check.yield() }
                check.finish()
            }
            group.addTask {
                try await Task.sleep(for: .longestWait)
                check.finish()
            }
            defer { group.cancelAll() }
            let deadline = ContinuousClock.now + .longestWait
            var iterator = checks.makeAsyncIterator()
            while try await !holds(node) {
                guard await iterator.next() == nil else { continue }
                throw ContinuousClock.now < deadline ? CancellationError() : NotInTime("the node's changes", .longestWait, file, line)
            }
        }
    }

    func verified() async throws -> [PeerID] { try await node.peers.all().filter { $0.state == .verified }.compactMap(\.uuid) }

    /// Waits until no row is queued.
    /// - Returns: the final state of each row, in order.
    func ends(of rows: [Int64]) async throws -> [OutboxState] {
        var states: [OutboxState] = []
        try await until { node in
            states = try await node.store.read { try $0.outboxRows(rows) }.map(\.state)
            return !states.contains(.queued)
        }
        return states
    }

    func untilListed(_ other: TestNode) async throws {
        try await until { try await $0.peers.all().contains { $0.uuid == other.id && $0.state == .verified } }
    }

    func send(_ links: Int = 1, to other: TestNode, description: String = "d", key: String? = nil, wait: Duration = .seconds(20))
        async throws -> SendOutcome
    {
        var hex = HexContent()
        hex.hexDescription = hex.add(description)
        for number in 0..<links {
            hex.links.append(
                LinkContent(url: hex.add("https://example.org/\(number)"), linkDescription: .empty, service: hex.add("Unknown")))
        }
        return try await node.outbox.send(SendRequest(content: .hex(hex), peers: [other.id], key: key), until: .now + wait)[0]
    }
}

/// Two nodes that found each other. The second trusts the first.
func trustingNodes(
    on link: InMemoryLink, _ configureOne: (inout NodeConfiguration) -> Void = { _ in }
) async throws -> (one: TestNode, two: TestNode) {
    let one = try await TestNode("one", on: link, configureOne)
    let two = try await TestNode("two", on: link)
    try await one.untilListed(two)
    try await two.untilListed(one)
    _ = try await two.node.peers.setTrust(one.id, .trusted)
    return (one, two)
}

/// Two nodes that trust each other. The second one has stopped, and its folder remains.
func nodesApart(
    on link: InMemoryLink, _ configureOne: (inout NodeConfiguration) -> Void = { _ in }
) async throws -> (one: TestNode, two: TestNode) {
    let (one, two) = try await trustingNodes(on: link, configureOne)
    // A stranger without a hex would be forgotten with its last session.
    _ = try await one.node.peers.setTrust(two.id, .trusted)
    try await two.stop(removing: false)
    try await one.until { try await $0.peers.all().allSatisfy { $0.state != .verified } }
    return (one, two)
}

/// Two nodes that found each other.
func withTwoNodes(_ body: (TestNode, TestNode) async throws -> Void) async throws {
    let link = InMemoryLink()
    let one = try await TestNode("one", on: link)
    let two = try await TestNode("two", on: link)
    try await one.untilListed(two)
    try await two.untilListed(one)
    try await body(one, two)
    try await one.stop()
    try await two.stop()
}

extension PairingView {
    /// The state of a pairing as one value.
    enum Stage: Equatable {
        case waiting, paired
        case comparing(digits: String)
        case confirmed(digits: String)
        case ended(Reason?)
    }

    var stage: Stage {
        switch state {
        case .waiting: .waiting
        case .comparing: .comparing(digits: digits ?? "")
        case .confirmed: .confirmed(digits: digits ?? "")
        case .paired: .paired
        case .ended: .ended(reason?.known)
        }
    }
}
