import HexlistModel
import HexlistSession
import HexlistTransport
import HexlistWire
import NIOCore
import Synchronization
import TestSupport
import Testing

/// One peer: its transport, its session table, and a delegate that records events.
private final class Side: SessionDelegate {
    struct Seen {
        var sessions: [PeerSession] = []
        var hexes: [String] = []
        var settled: [RowResult] = []
        var pairings: [Pairing] = []
        var refusals = 0
        var ends: [Session.EndReason] = []
    }

    let identity: Identity
    let transport: PeerTransport
    let table: SessionTable
    private let answer: DeliveryResult
    private let givesWay: Bool
    private let seen = Mutex(Seen())

    init(answer: DeliveryResult = .stored, limits: SessionLimits = SessionLimits(), givesWay: Bool = true) throws {
        identity = try Identity.ephemeral()
        transport = try PeerTransport(identity: identity)
        table = SessionTable(own: identity.peerID, limits: limits, on: transport.eventLoop)
        self.answer = answer
        self.givesWay = givesWay
    }

    var now: Seen { seen.withLock { $0 } }
    var ends: [Session.EndReason] { now.ends }

    func listen() async throws -> UInt16 {
        UInt16(try await transport.listen(addresses: ["127.0.0.1"], port: 0) { [self] in begin($0, expecting: nil) })
    }

    func dial(_ port: UInt16, _ peer: PeerID) async throws {
        let report = try await transport.dial([DialTarget(host: "127.0.0.1", port: port)], expecting: peer).report.get()
        let connection = try #require(report.connection)
        try await onLoop { [self] in begin(connection, expecting: peer) }
    }

    private func begin(_ connection: PeerConnection, expecting peer: PeerID?) {
        let hello = Hello(uuid: identity.peerID, name: "test", boot: BootNonce(7))
        PeerSession(connection, hello: hello, expected: peer, isTrusted: false, in: table, delegate: self).start()
    }

    func onLoop<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await transport.eventLoop.submit(body).get()
    }

    func act(_ event: @escaping @Sendable (PeerSession) throws -> Void) async throws {
        let session = try #require(now.sessions.first)
        try await onLoop { try event(session) }
    }

    func opened(_ session: PeerSession, hello: Hello, version: String) { seen.withLock { $0.sessions.append(session) } }

    func received(hexes: [IncomingHex], on session: PeerSession) {
        seen.withLock { $0.hexes += hexes.map { $0.content.string($0.content.hexDescription) } }
        session.batchCompleted(Array(repeating: answer, count: hexes.count))
    }

    func settled(_ hexes: [RowResult], on session: PeerSession) { seen.withLock { $0.settled += hexes } }
    func received(pairing: Pairing, on session: PeerSession) {
        seen.withLock { $0.pairings.append(pairing) }
        session.refuse(pairing)
    }

    func sending(refusals receipt: Receipt, on session: PeerSession) { seen.withLock { $0.refusals += receipt.rejected.count } }
    func ended(_ session: PeerSession, end: Session.EndReason, closedByPeer: Bool) { seen.withLock { $0.ends.append(end) } }
    func mayGiveWay(_ session: PeerSession) -> Bool { givesWay }

    static func hex(_ description: String) -> ArraySlice<UInt8> {
        var hex = HexContent()
        hex.hexDescription = hex.add(description)
        return HexEncoder.encode(hex)[...]
    }
}

@Suite("Sessions over TLS on loopback", .timeLimit(.minutes(5)))
struct PeerSessionTests {
    /// Two sides with one session, opened by `dialer`.
    private static func open(_ dialer: Side, _ acceptor: Side) async throws {
        try await dialer.dial(try await acceptor.listen(), acceptor.identity.peerID)
        try await eventually("both said Hello") { dialer.now.sessions.count == 1 && acceptor.now.sessions.count == 1 }
    }

    private static func shutDown(_ sides: Side...) async {
        for side in sides { await side.transport.shutdown() }
    }

    @Test(
        "hexes arrive in order, and the delegate's result is sent back",
        arguments: [
            DeliveryResult.stored, .held, .duplicate(of: .held), .refused(.storageFull, retryAfter: 60),
        ])
    func answers(_ answer: DeliveryResult) async throws {
        let (one, two) = (try Side(), try Side(answer: answer))
        try await Self.open(one, two)
        try await one.act { session in
            for id in 1...3 where session.canSend(bytes: 1_000) {
                session.send(
                    id: Int64(id), messageID: MessageID(milliseconds: 0, random: 0, UInt64(id)), body: Side.hex("hex \(id)"))
            }
            session.updateState()
        }
        try await eventually("each hex is answered") { one.now.settled.count == 3 }
        #expect(one.now.settled == (1...3).map { RowResult(id: $0, answer) })
        #expect(two.now.hexes.first == "hex 1")
        if answer.isDelivered { #expect(two.now.hexes.count == 3 && two.now.refusals == 0) } else { #expect(two.now.refusals == 3) }
        try await one.act { session in session.act { $0.end(.shutdown, &$1) } }
        try await eventually("both ended") { one.ends == [.own(.shutdown)] && two.ends == [.peer(.shutdown, text: "")] }
        for side in [one, two] { #expect(try await side.onLoop { side.table.values.isEmpty }) }
        await Self.shutDown(one, two)
    }

    @Test("a refused pairing request is answered with one `cancel`")
    func pairing() async throws {
        let (one, two) = (try Side(), try Side())
        try await Self.open(one, two)
        let (own, peer) = (one.identity.fingerprint, two.identity.fingerprint)
        try await one.act { session in
            let (_, actions) = PairingStateMachine.ask(own: own, peer: peer, nonce: .random(), now: .now)
            for case .send(let request) in actions { session.act { $0.sendPairing(request, &$1) } }
        }
        try await eventually("the request is refused") { one.now.pairings.map(\.step) == ["cancel"] }
        #expect(two.now.pairings.map(\.step) == ["commit"])
        await Self.shutDown(one, two)
    }

    @Test("over the limit of strangers one session ends, if the delegate allows it", arguments: [true, false])
    func strangers(_ givesWay: Bool) async throws {
        var limits = SessionLimits()
        limits.strangerSessions = 1
        let host = try Side(limits: limits, givesWay: givesWay)
        let (one, two) = (try Side(), try Side())
        try await Self.open(one, host)
        let port = try await host.listen()
        try await two.dial(port, host.identity.peerID)
        try await eventually("the second is here") { two.now.sessions.count == 1 }
        if givesWay {
            try await eventually("the first is ended") { one.ends == [.peer(.idle, text: "Others need the place.")] }
        } else {
            try await eventually("both are open") { try await host.onLoop { host.table.values.count(where: \.machine.isOpen) } == 2 }
            #expect(one.ends.isEmpty)
        }
        await Self.shutDown(one, two, host)
    }

    @Test("a refused session gets the reason but no Hello")
    func refused() async throws {
        let (one, two) = (try Side(), try Side())
        let port = UInt16(
            try await two.transport.listen(addresses: ["127.0.0.1"], port: 0) { connection in
                let hello = Hello(uuid: two.identity.peerID, name: "test", boot: BootNonce(7))
                PeerSession(connection, hello: hello, isTrusted: false, in: two.table, delegate: two).refuse(.idle, text: "Not now.")
            })
        try await one.dial(port, two.identity.peerID)
        try await eventually("it ended") { one.ends.count == 1 }
        #expect(one.now.sessions.isEmpty && two.now.sessions.isEmpty)
        #expect(one.ends == [.peer(.idle, text: "Not now.")])
        await Self.shutDown(one, two)
    }
}
