import TestSupport
import Foundation
import HexlistDiscovery
import HexlistModel
import HexlistTransport
import HexlistWire
import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HexlistDelivery
@testable import HexlistSession
@testable import HexlistNode
@testable import HexlistStore

/// A scripted peer: sessions with a node, one frame at a time.
final class Guest: Sendable {
    let identity: Identity
    let transport: PeerTransport
    /// The sessions that the node dialled, in order.
    private let dialled = Mutex<[Visit]>([])

    init(_ node: TestNode) throws {
        identity = try Identity.ephemeral()
        transport = try PeerTransport(identity: identity, eventLoop: node.group.next(), logger: Logger(label: "guest"))
    }

    /// One session, after the handshake.
    final class Visit: PeerConnectionDelegate, Sendable {
        let connection: PeerConnection
        private let identity: Identity
        private let readsOn: Bool
        private let seen = Mutex<(frames: [DecodedWrapper], isOver: Bool)>(([], false))

        init(_ connection: PeerConnection, _ identity: Identity, readsOn: Bool) {
            self.connection = connection
            self.identity = identity
            self.readsOn = readsOn
        }

        var frames: [DecodedWrapper] { seen.withLock { $0.frames } }
        var isOver: Bool { seen.withLock { $0.isOver } }
        var operations: [HexlistWire.Operation] { frames.map(\.operation) }
        var bye: String? { frames.first { $0.operation == .bye }?.message?.split(separator: ":").first.map(String.init) }
        /// The frame limit in the last Hello received.
        var frameLimit: Int? {
            frames.compactMap { if case .hello(let hello) = $0.object { hello.maxFrameBytes } else { nil } }.last
        }
        var receipts: [Receipt] { frames.compactMap { if case .receipt(let receipt) = $0.object { receipt } else { nil } } }

        func write(_ encode: @escaping @Sendable (inout ByteBuffer) -> Void) async throws {
            try await connection.eventLoop.submit { [connection] in connection.write(encode) }.get()
        }

        func hello() async throws {
            let hello = Hello(uuid: identity.peerID, name: "guest", boot: BootNonce(7))
            try await write { WrapperEncoder.hello(hello, into: &$0) }
        }

        func store(_ number: Int64) async throws {
            try await write {
                WrapperEncoder.store(
                    hexJSON: Array(#"{"hexDescription":"\#(number)"}"#.utf8), messageID: MessageID(UUIDBytes(high: 1, low: UInt64(number))),
                    sequence: number, into: &$0)
            }
        }

        func received(frame: [UInt8], on connection: PeerConnection) {
            var decoder = WrapperDecoder()
            guard case .wrapper(let wrapper) = decoder.decode(frame) else { return }
            seen.withLock { $0.frames.append(wrapper) }
            if !readsOn { connection.isReading = false }
        }
        func readCompleted(on connection: PeerConnection) {}
        func frameFault(_ length: UInt32, on connection: PeerConnection) {}
        func writabilityChanged(on connection: PeerConnection) {}
        func closed(on connection: PeerConnection, error: (any Error)?) { seen.withLock { $0.isOver = true } }
    }

    /// - Returns: the newest session that the node dialled, once both sides have sent Hello.
    func visited(by node: TestNode, at port: Int) async throws -> Visit {
        let before = dialled.withLock { $0.count }
        let endpoint = Endpoint(host: "127.0.0.1", port: UInt16(port), via: .static)
        let report = try await node.node.transport.dial([DialTarget(endpoint)], expecting: identity.peerID).report.get()
        let connection = try #require(report.connection)
        await node.node.begin(dialled: connection, endpoint)
        return try await eventualValue("Hello on the session that was dialled") {
            dialled.withLock { $0.count > before ? $0.last : nil }.flatMap { $0.operations.contains(.hello) ? $0 : nil }
        }
    }

    /// - Returns: the listening port.
    func listen() async throws -> Int {
        try await transport.listen(addresses: ["127.0.0.1"], port: 0) { [self] connection in
            let visit = Visit(connection, identity, readsOn: true)
            connection.delegate = visit
            dialled.withLock { $0.append(visit) }
            let hello = Hello(uuid: identity.peerID, name: "guest", boot: BootNonce(7))
            connection.write { WrapperEncoder.hello(hello, into: &$0) }
        }
    }

    /// - Parameter readsOn: whether the guest continues to read after the first frame. Otherwise it never notices that it should
    ///   disconnect.
    func visit(_ node: TestNode, readsOn: Bool = true) async throws -> Visit {
        let port = UInt16(await node.node.status().port)
        let report = try await transport.dial([DialTarget(host: "127.0.0.1", port: port)], expecting: node.id).report.get()
        let visit = Visit(try #require(report.connection), identity, readsOn: readsOn)
        try await visit.connection.eventLoop.submit { visit.connection.delegate = visit }.get()
        return visit
    }
}

extension Node {
    fileprivate var strangerRate: Double { sessions.strangerRate }
    fileprivate var nextOmission: ContinuousClock.Instant? { events.nextOmission }

    fileprivate func recordOfStrangers(_ type: EventType) { events.record(type, peer: nil, from: .strangers, self) }

    fileprivate func begin(dialled connection: PeerConnection, _ endpoint: Endpoint) {
        begin(connection, SessionDial(endpoint: endpoint, probe: nil, expected: nil))
    }
}

@Suite("Strangers and blocked peers", .timeLimit(.minutes(5)))
struct StrangerTests {
    @Test("a stranger may send 64 KiB; one byte more ends its session; once trusted it may send 1 MiB")
    func frameLimit() async throws {
        let one = try await TestNode("one", on: nil)
        let guest = try Guest(one)
        let visit = try await guest.visit(one)
        try await visit.hello()
        try await eventually { visit.frameLimit == 64 << 10 }
        try await visit.write { $0.writeInteger(UInt32(64 << 10) + 1) }
        try await eventually { visit.isOver }
        #expect(visit.bye == "frameLength")
        let again = try await guest.visit(one)
        try await again.hello()
        try await again.store(1)
        try await eventually { again.receipts.last?.status == .held }
        _ = try await one.node.peers.setTrust(guest.identity.peerID, .trusted)
        try await eventually { again.frameLimit == 1 << 20 }
        try await again.write { $0.writeInteger(UInt32(1 << 20) + 1) }
        try await eventually { again.isOver }
        #expect(again.bye == "frameLength")
        await guest.transport.shutdown()
        try await one.stop()
    }

    @Test("a returning blocked peer is notified and disconnected, with Hello or without; its hexes are not stored")
    func blocked() async throws {
        let one = try await TestNode("one", on: nil)
        let guest = try Guest(one)
        let key = guest.identity.fingerprint
        _ = try await one.node.roster.add([RosterEntry(fingerprint: key, name: "guest", trust: .blocked)])
        let visit = try await guest.visit(one)
        try await visit.hello()
        try await visit.store(1)
        try await eventually { visit.isOver }
        #expect(visit.operations == [.hello, .alert, .bye])
        #expect(visit.frames.first { $0.operation == .alert }?.message == "one blocked you.")
        #expect(visit.bye == "blocked")
        let legacy = try await guest.visit(one)
        try await legacy.store(1)
        try await eventually { legacy.isOver }
        #expect(legacy.bye == "blocked")
        let counts = try await one.node.store.read { try $0.counts() }
        #expect((counts.held, counts.inbox) == (0, 0))
        await guest.transport.shutdown()
        try await one.stop()
    }

    /// - Parameter stride: every n-th session has no Hello.
    @Test("a key has at most two sessions, however fast it opens them, with Hello or without; the newest stay", arguments: [3, 1])
    func sessionsOfOneKey(_ stride: Int) async throws {
        let one = try await TestNode("one", on: nil)
        let guest = try Guest(one)
        var visits: [Guest.Visit] = []
        for number in 0..<8 {
            let visit = try await guest.visit(one)
            if number % stride == stride - 1 {
                try await visit.store(1)
                try await eventually { !visit.receipts.isEmpty }
            } else {
                try await visit.hello()
            }
            try await eventually { visit.operations.contains(.hello) }
            visits.append(visit)
        }
        try await eventually { await one.node.sessionCount == 2 }
        #expect(visits.prefix(6).allSatisfy { $0.bye == "limit" || $0.bye == "silent" })
        #expect(visits.suffix(2).allSatisfy { !$0.isOver })
        await guest.transport.shutdown()
        try await one.stop()
    }

    @Test("with two sessions it dialled, a key gets at most two that this side dialled, whatever it answers")
    func sessionsDialledToOneKey() async throws {
        let one = try await TestNode("one", on: nil)
        let guest = try Guest(one)
        let port = try await guest.listen()
        var legacy: [Guest.Visit] = []
        for _ in 0..<2 {
            let visit = try await guest.visit(one)
            try await visit.store(1)
            try await eventually { !visit.receipts.isEmpty }
            legacy.append(visit)
        }
        var visits: [Guest.Visit] = []
        for _ in 0..<6 { visits.append(try await guest.visited(by: one, at: port)) }
        try await eventually { visits.prefix(4).allSatisfy(\.isOver) }
        // A session that is pinged has 5 s to answer before it ends.
        #expect(visits.prefix(4).allSatisfy { $0.bye == "limit" || $0.bye == "silent" } && visits[0].bye == "limit")
        #expect(await one.node.sessionCount <= 4 && legacy.allSatisfy { !$0.isOver })
        await guest.transport.shutdown()
        try await one.stop()
    }

    @Test("a block ends all sessions of a key at once; removing trust ends it as idle", arguments: [Trust.blocked, .stranger])
    func trustTaken(_ trust: Trust) async throws {
        let one = try await TestNode("one", on: nil)
        let guest = try Guest(one)
        _ = try await one.node.roster.add([RosterEntry(fingerprint: guest.identity.fingerprint, name: "guest", trust: .trusted)])
        let visit = try await guest.visit(one)
        try await visit.hello()
        let legacy = try await guest.visit(one)
        try await legacy.store(1)
        try await eventually { legacy.receipts.last?.status == .stored && visit.operations.contains(.hello) }
        _ = try await one.node.peers.setTrust(guest.identity.peerID, trust)
        try await eventually { visit.isOver && legacy.isOver }
        for each in [visit, legacy] {
            #expect(each.bye == (trust == .blocked ? "blocked" : "idle"))
            #expect(each.operations.contains(.alert) == (trust == .blocked))
        }
        await guest.transport.shutdown()
        try await one.stop()
    }

    @Test("strangers that leave nothing cause no event and use no memory; their alerts are only counted after the twentieth")
    func passing() async throws {
        let one = try await TestNode("one", on: nil)
        for _ in 0..<24 {
            let guest = try Guest(one)
            let visit = try await guest.visit(one)
            try await visit.hello()
            try await visit.write { WrapperEncoder.alert(message: "look at me", sequence: 1, into: &$0) }
            try await visit.write { WrapperEncoder.ping(message: "there?", sequence: nil, into: &$0) }
            try await eventually { visit.operations.contains(.pong) }
            await guest.transport.shutdown()
        }
        try await eventually { await one.node.sessionCount == 0 }
        #expect(try await one.node.peers.all().isEmpty)
        #expect(await one.node.fingerprintCount == 0)
        let path = one.folder.appending(path: "hexlist.sqlite").path
        try await one.stop(removing: false)
        let store = try HexStore(path: path)
        let events = try await store.read { try $0.eventPage(since: 0, limit: 1_000).items }
        #expect(events.count { $0.type == .alertReceived } == 20)
        #expect(events.filter { $0.type != .alertReceived }.map(\.type) == [.eventsOmitted])
        #expect(events.last?.data == #"{"count":"4","of":"strangers"}"#)
        #expect(try await store.read { try $0.peers() }.isEmpty)
        try store.close()
        try FileManager.default.removeItem(at: one.folder)
    }

    @Test("an impostor at a trusted peer's announcement is reported, even if strangers used up the event allowance")
    func impostor() async throws {
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link)
        let friend = try Identity.ephemeral()
        _ = try await one.node.roster.add([RosterEntry(fingerprint: friend.fingerprint, name: "friend", trust: .trusted)])
        for _ in 0..<20 { await one.node.recordOfStrangers(.peerGhost) }
        let guest = try Guest(one)
        let port = try await guest.transport.listen(addresses: ["127.0.0.1"], port: 0) { _ in }
        let forger = InMemoryDiscovery(link: link, ipv6: nil)
        let announcement = ServiceAnnouncement(
            displayName: "friend", peer: friend.peerID, boot: BootNonce(9), port: try #require(UInt16(exactly: port)))
        forger.start(publishing: announcement) { _ in }
        try await one.until { node in
            let events = try await node.store.read { try $0.eventPage(since: 0, limit: 99).items }
            return events.contains { $0.type == .peerGhost && $0.peer == friend.peerID && $0.data?.contains("impostor") == true }
        }
        await forger.stop()
        await guest.transport.shutdown()
        try await one.stop()
    }

    @Test("a stranger that leaves a hex is reported, and listed after it has gone")
    func leavingSomething() async throws {
        let one = try await TestNode("one", on: nil)
        let guest = try Guest(one)
        let visit = try await guest.visit(one)
        try await visit.hello()
        try await visit.store(1)
        try await one.until { node in
            try await node.store.read { try $0.eventPage(since: 0, limit: 9).items }.map(\.type).contains(.peerUp)
        }
        await guest.transport.shutdown()
        try await eventually { await one.node.sessionCount == 0 }
        #expect(try await one.node.peers.all().map(\.uuid) == [guest.identity.peerID])
        try await one.stop()
    }

    @Test("events caused by peers respect the disk reserve")
    func noRoomForEvents() async throws {
        let one = try await TestNode("one", on: nil) { $0.limits.diskReserveBytes = 1 << 60 }
        let guest = try Guest(one)
        _ = try await one.node.roster.add([RosterEntry(fingerprint: guest.identity.fingerprint, name: "guest", trust: .trusted)])
        let visit = try await guest.visit(one)
        try await visit.hello()
        for number in 1...5 { try await visit.write { WrapperEncoder.alert(message: "more", sequence: Int64(number), into: &$0) } }
        try await eventually { await one.node.nextOmission != nil }
        await guest.transport.shutdown()
        try await eventually { await one.node.sessionCount == 0 }
        #expect(try await one.node.store.read { try $0.eventPage(since: 0, limit: 9).items }.isEmpty)
        try await one.stop()
    }

    /// Uses a shorter timeout than a node's minute. `SendSlotsTests` tests the minute.
    @Test("a peer that would keep its slot indefinitely loses it while another waits")
    func turns() async throws {
        let one = try await TestNode("one", on: nil)
        await one.node.setSlots(SendSlots(limit: 1, timeouts: .init(total: .milliseconds(300), idle: .seconds(3_600))))
        let (slow, other) = (try Guest(one), try Guest(one))
        var hex = HexContent()
        hex.hexDescription = hex.add("on its way")
        var visits: [Guest.Visit] = []
        for guest in [slow, other] {
            let visit = try await guest.visit(one)
            try await visit.hello()
            let count = visits.count + 1
            try await eventually { if visit.operations.contains(.hello) { await one.node.linkCount == count } else { false } }
            visits.append(visit)
            _ = try await one.node.outbox.send(SendRequest(content: .hex(hex), peers: [guest.identity.peerID]))
            if visits.count == 1 { try await eventually { visit.operations.contains(.store) } }
        }
        try await eventually { visits[1].operations.contains(.store) }
        #expect(!visits[0].isOver)
        for guest in [slow, other] { await guest.transport.shutdown() }
        try await one.stop()
    }

    @Test("strangers' sessions are limited and share a read rate; trusted peers do not count")
    func sessionsOfStrangers() async throws {
        let one = try await TestNode("one", on: nil) {
            $0.limits.strangerSessions = 3
            $0.limits.allStrangersFramesPerSecond = 12
        }
        let friend = try Guest(one)
        _ = try await one.node.roster.add([RosterEntry(fingerprint: friend.identity.fingerprint, name: "friend", trust: .trusted)])
        let trusted = try await friend.visit(one)
        try await trusted.hello()
        var guests: [Guest] = []
        var visits: [Guest.Visit] = []
        for _ in 0..<5 {
            let guest = try Guest(one)
            let visit = try await guest.visit(one)
            try await visit.hello()
            try await eventually { visit.operations.contains(.hello) }
            guests.append(guest)
            visits.append(visit)
        }
        try await eventually { [visits] in visits.prefix(2).allSatisfy(\.isOver) }
        #expect(visits.prefix(2).allSatisfy { $0.bye == "idle" })
        #expect(visits.suffix(3).allSatisfy { !$0.isOver } && !trusted.isOver)
        try await eventually { await one.node.strangerRate == 4 }
        let last = visits[4].connection
        try await last.eventLoop.submit { last.close() }.get()
        try await eventually { await one.node.strangerRate == 6 }
        for guest in guests + [friend] { await guest.transport.shutdown() }
        try await one.stop()
    }

    @Test("strangers that stay connected after their session are no more than those with a session")
    func strangersThatDoNotHangUp() async throws {
        let one = try await TestNode("one", on: nil) { $0.limits.strangerSessions = 3 }
        var guests: [Guest] = []
        for count in 1...12 {
            let guest = try Guest(one)
            guests.append(guest)
            let visit = try await guest.visit(one, readsOn: false)
            try await visit.hello()
            try await eventually { visit.operations.contains(.hello) }
            // At most these sessions are counted: the newcomer, three that stay, three that leave, and one whose connection is being
            // closed.
            #expect(await one.node.sessionCount <= min(count, 8))
        }
        for guest in guests { await guest.transport.shutdown() }
        try await one.stop()
    }

    @Test(
        "draining ends with the last receipt, or with the session that owed it, regardless of other sessions", arguments: [true, false])
    func draining(isAnswered: Bool) async throws {
        let one = try await TestNode("one", on: nil)
        let guest = try Guest(one)
        let visit = try await guest.visit(one)
        try await visit.hello()
        try await eventually { if visit.operations.contains(.hello) { await one.node.linkCount == 1 } else { false } }
        var hex = HexContent()
        hex.hexDescription = hex.add("on its way")
        _ = try await one.node.outbox.send(SendRequest(content: .hex(hex), peers: [guest.identity.peerID]))
        try await eventually { visit.operations.contains(.store) }
        // A newer session, on which no row waits for a receipt.
        let newer = try await guest.visit(one)
        try await newer.hello()
        try await eventually { newer.operations.contains(.hello) }

        async let drained: Void = one.node.outbox.drain(for: .hours(1))
        try await eventually { await one.node.isWaitingToDrain }
        if isAnswered {
            try await visit.write { WrapperEncoder.ack(Receipt(through: 1, status: .stored), into: &$0) }
        } else {
            try await visit.connection.eventLoop.submit { visit.connection.close() }.get()
        }
        await drained
        await guest.transport.shutdown()
        try await one.stop()
    }
}
