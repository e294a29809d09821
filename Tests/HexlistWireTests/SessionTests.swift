import HexlistModel
import Testing

@testable import HexlistWire

/// Both ends of a session and a manual clock: no socket, no waiting.
struct SessionFixture {
    static let fingerprint = key(1)
    static let otherFingerprint = key(200)
    static let own = fingerprint.peerID
    static let peer = otherFingerprint.peerID

    var session: Session
    var actions: [Session.Action] = []
    var now: ContinuousClock.Instant
    let start: ContinuousClock.Instant

    init(
        role: Session.Role = .acceptor, security: Session.Security = .tls(otherFingerprint), expected: PeerID? = nil, trusted: Bool = true
    ) {
        start = .now
        now = start
        session = Session(
            Session.Configuration(
                own: Self.own, role: role, security: security, expected: expected,
                hello: Hello(uuid: Self.own, name: "own", boot: BootNonce(1)), strangerFrameBytes: 64 << 10, isTrusted: trusted,
                strangerFramesPerSecond: 20, connectedAt: now),
            now: now)
        session.start(&actions)
    }

    /// Returns and clears the actions so far.
    mutating func take() -> [Session.Action] {
        defer { actions = [] }
        return actions
    }

    mutating func receive(
        _ operation: HexlistWire.Operation, _ object: WrapperObject = .none, message: String? = nil, sequence: Int64? = nil,
        id: MessageID? = nil
    ) {
        session.received(
            .wrapper(DecodedWrapper(operation: operation, object: object, message: message, messageID: id, sequence: sequence)), bytes: 100,
            now: now, &actions)
    }

    mutating func hello(
        uuid: PeerID? = peer, boot: BootNonce? = BootNonce(2), protocols: [Int] = [1], window: Int = 1_024, frame: Int = 1 << 20
    ) {
        receive(.hello, .hello(Hello(uuid: uuid, name: "peer", boot: boot, protocols: protocols, maxFrameBytes: frame, window: window)))
    }

    mutating func store(_ sequence: Int64?, id: MessageID? = nil) { receive(.store, .hex(HexContent()), sequence: sequence, id: id) }

    mutating func receive(_ content: HexContent, sequence: Int64, bytes: Int, id: MessageID? = nil) {
        let store = DecodedWrapper(operation: .store, object: .hex(content), messageID: id, sequence: sequence)
        session.received(.wrapper(store), bytes: bytes, now: now, &actions)
    }

    mutating func undecodable() { receive(Refusal(code: .malformed, message: "", isUndecodable: true)) }

    mutating func receive(_ refusal: Refusal) { session.received(.refused(refusal), bytes: 10, now: now, &actions) }

    /// The store takes all waiting hexes and gives each the same result.
    mutating func keepAll(_ result: DeliveryResult = .stored) {
        let batch = session.takeBatch(limit: 1_000)
        session.batchCompleted(batch.map { _ in result }, now: now)
    }

    mutating func owed() -> [Session.OutFrame] {
        actions = []
        session.takePendingFrames(&actions)
        return take().compactMap { if case .send(let frame) = $0 { frame } else { nil } }
    }

    mutating func tick(after duration: Duration, hasMore: Bool = false) -> [Session.Action] {
        now = start + duration
        session.tick(now: now, hasMoreToSend: hasMore, &actions)
        return take()
    }

    static func opened(role: Session.Role = .acceptor, trusted: Bool = true, window: Int = 1_024) -> SessionFixture {
        var fixture = SessionFixture(role: role, trusted: trusted)
        fixture.hello(window: window)
        _ = fixture.take()
        return fixture
    }

    /// A fingerprint of 32 equal bytes.
    static func key(_ byte: UInt8) -> Fingerprint {
        guard let key = Fingerprint(bytes: [UInt8](repeating: byte, count: 32)) else { fatalError("32 bytes are a fingerprint") }
        return key
    }

    static func id(_ number: UInt64) -> MessageID { MessageID(UUIDBytes(high: number, low: 7)) }
}

extension [Session.Action] {
    var end: Session.EndReason? { compactMap { if case .close(let end) = $0 { end } else { nil } }.first }
    var frames: [Session.OutFrame] { compactMap { if case .send(let frame) = $0 { frame } else { nil } } }
}

@Suite("Session: opening")
struct SessionOpeningTests {
    @Test("over TLS the Hello is sent first, within the limit of a first frame")
    func start() {
        var fixture = SessionFixture()
        let actions = fixture.take()
        #expect(actions.first == .setFrameLimit(8 << 10))
        #expect(actions.frames.count == 1)
        fixture.hello()
        #expect(fixture.take().contains(.setFrameLimit(1 << 20)))
        #expect(fixture.session.isOpen)
    }

    @Test(
        "a Hello that does not prove its sender ends the session",
        arguments: [
            (SessionFixture.own, BootNonce(2), [1], ByeCode.identityMismatch),
            (nil, BootNonce(2), [1], .identityMismatch),
            (SessionFixture.peer, nil, [1], .identityMismatch),
            (SessionFixture.peer, BootNonce(2), [2, 3], .protocolMismatch),
        ] as [(PeerID?, BootNonce?, [Int], ByeCode)])
    func refusedHello(uuid: PeerID?, boot: BootNonce?, protocols: [Int], code: ByeCode) {
        var fixture = SessionFixture()
        _ = fixture.take()
        fixture.hello(uuid: uuid, boot: boot, protocols: protocols)
        let actions = fixture.take()
        #expect(actions.end == .own(code))
        #expect(actions.frames == [.bye(code, text: "")])
    }

    @Test("the boot nonce distinguishes oneself from a clone", arguments: [(BootNonce(1), ByeCode.`self`), (BootNonce(9), .conflict)])
    func own(boot: BootNonce, code: ByeCode) {
        var fixture = SessionFixture(security: .tls(SessionFixture.fingerprint))
        fixture.hello(uuid: SessionFixture.own, boot: boot)
        #expect(fixture.take().end == .own(code))
    }

    @Test("a Bye may be the first frame of either side", arguments: [Session.Role.dialer, .acceptor])
    func byeFirst(role: Session.Role) {
        var fixture = SessionFixture(role: role)
        _ = fixture.take()
        fixture.receive(.bye, message: "limit")
        let actions = fixture.take()
        #expect(actions.end == .peer(.limit, text: ""))
        #expect(actions.frames.isEmpty)
    }

    @Test("an acceptor that begins with anything but Hello or Bye is not the expected peer")
    func dialledLegacy() {
        var fixture = SessionFixture(role: .dialer)
        _ = fixture.take()
        fixture.store(nil)
        #expect(fixture.take().end == .own(.identityMismatch))
    }

    @Test("an acceptor must answer")
    func dialled() {
        let third = SessionFixture.key(5).peerID
        var fixture = SessionFixture(role: .dialer, expected: third)
        fixture.hello()
        #expect(fixture.take().end == .own(.identityMismatch))
    }

    @Test("the Hello must arrive within 5 s")
    func timeout() {
        var fixture = SessionFixture()
        _ = fixture.take()
        #expect(fixture.tick(after: .milliseconds(4_900)).isEmpty)
        #expect(fixture.tick(after: .seconds(5)).end == .own(.helloTimeout))
    }

    @Test("undecodable bytes do not make a legacy sender; another first frame does")
    func legacy() {
        var fixture = SessionFixture()
        fixture.undecodable()
        #expect(!fixture.session.isLegacy)
        fixture.store(nil)
        #expect(fixture.session.isLegacy)
        #expect(fixture.take().contains(.legacy))
        fixture.keepAll()
        #expect(fixture.owed().isEmpty)  // a frame without a sequence number gets no receipt
    }

    @Test(
        "an unusable Hello is ignored, first or later, and the wait for one continues",
        arguments: [Session.Role.acceptor, .dialer])
    func uselessHello(role: Session.Role) {
        for code in [RefusalCode.missingObject, .unsupportedObject, .malformed] {
            var fixture = SessionFixture(role: role)
            let useless = Refusal(code: code, message: "", operation: .hello)
            fixture.receive(useless)
            #expect(!fixture.session.hasBegun && fixture.take().end == nil)
            var waiting = fixture
            #expect(waiting.tick(after: .seconds(5)).end == .own(.helloTimeout))
            fixture.hello()
            fixture.receive(useless)
            #expect(fixture.session.isOpen)
        }
    }

    @Test("while the store has a legacy sender's hexes no deadline is due: the driver would wake up repeatedly for nothing")
    func legacyWaitsForTheStore() {
        var fixture = SessionFixture(trusted: false)
        fixture.store(nil)
        #expect(
            fixture.tick(after: .seconds(61)) == [
                .setFrameLimit(8 << 10), .send(.hello(Hello(uuid: SessionFixture.own, name: "own", boot: BootNonce(1)))),
                .setFrameLimit(64 << 10), .legacy,
            ])
        #expect(fixture.session.nextDeadline == nil)
        fixture.keepAll()
        #expect(fixture.session.nextDeadline == fixture.start + .seconds(60))
        #expect(fixture.tick(after: .seconds(61)).contains(.close(.own(.idle))))
    }

    @Test("a legacy sender with numbers gets receipts and nothing else, also over plain TCP")
    func plainLegacy() {
        var fixture = SessionFixture(security: .plain)
        #expect(fixture.take().frames.isEmpty)
        fixture.store(1, id: SessionFixture.id(1))
        let batch = fixture.session.takeBatch(limit: 10)
        #expect(batch.map(\.messageID) == [nil])  // no key proves the sender, so there is no deduplication
        fixture.session.batchCompleted([.held], now: fixture.now)
        #expect(fixture.owed() == [.ack(Receipt(through: 1, status: .held))])
        fixture.receive(.ping, message: "x")
        #expect(fixture.owed().isEmpty)
        var actions: [Session.Action] = []
        fixture.session.end(.tooManyErrors, &actions)
        #expect(actions == [.close(.own(.tooManyErrors))])
    }

    @Test("a claim of this machine's identity over plain TCP ends the session without reporting a conflict")
    func plainClaim() {
        for security in [Session.Security.plain, .tls(SessionFixture.key(77))] {
            var fixture = SessionFixture(security: security)
            fixture.hello(uuid: SessionFixture.own, boot: BootNonce(9))
            #expect(fixture.session.isClosed)
            #expect(fixture.session.refusedBoot == nil)
        }
    }

    @Test("over plain TCP Hello is answered with Hello")
    func plainHello() {
        var fixture = SessionFixture(security: .plain)
        fixture.hello()
        #expect(fixture.take().frames.count == 1)
        fixture.receive(.ping, message: "x")
        #expect(fixture.owed() == [.pong(message: "x")])
    }

    @Test("a later Hello may raise limits, never lower them, and never change the identity")
    func later() {
        var fixture = SessionFixture.opened(window: 10)
        fixture.hello(window: 5, frame: 2 << 20)
        guard case .updated(let hello)? = fixture.take().first else { return #expect(Bool(false), "no update") }
        #expect(hello.window == 10)
        #expect(hello.maxFrameBytes == 2 << 20)
        fixture.hello(boot: BootNonce(3))
        #expect(fixture.take().end == .own(.identityMismatch))
    }

    @Test(
        "a later Hello with another identity, or none, ends the session",
        arguments: [
            (SessionFixture.key(9).peerID, BootNonce(2)), (nil, BootNonce(2)), (SessionFixture.peer, nil),
            (SessionFixture.peer, BootNonce(3)),
        ] as [(PeerID?, BootNonce?)])
    func laterOfAnother(uuid: PeerID?, boot: BootNonce?) {
        var fixture = SessionFixture.opened()
        fixture.hello(uuid: uuid, boot: boot)
        #expect(fixture.take().end == .own(.identityMismatch))
    }

    @Test("another Hello is sent only if it has news, or always on request; refusals are sent before it")
    func helloAgain() {
        var fixture = SessionFixture.opened()
        fixture.session.resendHello(name: "own", maxFrameBytes: 1 << 20, &fixture.actions)
        #expect(fixture.take().isEmpty)
        fixture.store(1, id: SessionFixture.id(1))
        fixture.keepAll(.refused(.notAccepting, retryAfter: 3_600))
        fixture.session.resendHello(name: "own", maxFrameBytes: 1 << 20, always: true, &fixture.actions)
        let frames = fixture.take().frames
        #expect(frames.count == 2)
        guard case .ack? = frames.first, case .hello(let hello)? = frames.last else { return #expect(Bool(false), "\(frames)") }
        #expect(hello.maxFrameBytes == 1 << 20)
        fixture.session.resendHello(name: "own", maxFrameBytes: 64 << 10, always: true, &fixture.actions)
        guard case .hello(let later)? = fixture.take().frames.first else { return #expect(Bool(false)) }
        #expect(later.maxFrameBytes == 1 << 20, "never lowered")
    }

    @Test("a card is news for the peer, and a later Hello without one keeps it") func cards() {
        var fixture = SessionFixture.opened()
        fixture.session.resendHello(name: "own", maxFrameBytes: 1 << 20, card: "card", &fixture.actions)
        guard case .hello(let hello)? = fixture.take().frames.first else { return #expect(Bool(false)) }
        #expect(hello.card == "card")
        fixture.session.resendHello(name: "own", maxFrameBytes: 1 << 20, card: "card", &fixture.actions)
        fixture.session.resendHello(name: "own", maxFrameBytes: 1 << 20, &fixture.actions)
        #expect(fixture.take().isEmpty)
    }
}

@Suite("Session: receiving")
struct SessionReceivingTests {
    @Test("nothing is acknowledged before the store answered, then once, merged")
    func receipts() {
        var fixture = SessionFixture.opened()
        for number in 1...5 { fixture.store(Int64(number)) }
        #expect(fixture.owed().isEmpty)
        fixture.keepAll()
        #expect(fixture.owed() == [.ack(Receipt(through: 5, status: .stored))])
        #expect(fixture.owed().isEmpty)
    }

    @Test("a change of status starts a new receipt")
    func statuses() {
        var fixture = SessionFixture.opened()
        for number in 1...6 { fixture.store(Int64(number)) }
        _ = fixture.session.takeBatch(limit: 100)
        fixture.session.batchCompleted(
            [
                .stored, .stored, .duplicate(of: .stored), .duplicate(of: .held), .held,
                .refused(.tooLarge, message: "m"),
            ], now: fixture.now)
        #expect(
            fixture.owed() == [
                .ack(Receipt(through: 2, status: .stored)), .ack(Receipt(through: 3, status: .duplicate, of: .stored)),
                .ack(Receipt(through: 4, status: .duplicate, of: .held)),
                .ack(Receipt(through: 6, status: .held, rejected: [HexRejection(sequence: 6, code: .tooLarge, message: "m")])),
            ])
    }

    @Test("the store has one batch at a time")
    func oneBatch() {
        var fixture = SessionFixture.opened()
        fixture.store(1)
        #expect(fixture.session.takeBatch(limit: 10).count == 1)
        fixture.store(2)
        #expect(fixture.session.takeBatch(limit: 10).isEmpty)
        fixture.session.batchCompleted([.stored], now: fixture.now)
        #expect(fixture.owed() == [.ack(Receipt(through: 1, status: .stored))])
        #expect(fixture.session.takeBatch(limit: 10).map(\.sequence) == [2])
    }

    @Test("numbers increase by one", arguments: [[1, 1], [2], [1, 3], [1, 2, 1], [Int64.max]] as [[Int64]])
    func faults(numbers: [Int64]) {
        var fixture = SessionFixture.opened()
        for number in numbers { fixture.store(number) }
        #expect(fixture.take().end == .own(.sequenceFault))
    }

    @Test("missing numbers are explained by the same number of undecodable frames")
    func gap() {
        var fixture = SessionFixture.opened()
        fixture.store(1)
        fixture.undecodable()
        fixture.undecodable()
        fixture.receive(.ping, message: "", sequence: 4)
        fixture.keepAll()
        guard case .ack(let receipt)? = fixture.owed().first else { return #expect(Bool(false), "no receipt") }
        #expect(receipt.through == 4)
        #expect(receipt.rejected.map(\.sequence) == [2, 3])
        #expect(receipt.rejected.map(\.code) == [.malformed, .malformed])
        fixture.undecodable()
        fixture.store(7)
        #expect(fixture.take().end == .own(.sequenceFault))
    }

    @Test("the 16th malformed frame ends the session; refusals of a newer peer do not count")
    func strikes() {
        var fixture = SessionFixture.opened()
        for _ in 0..<100 {
            fixture.session.received(
                .refused(Refusal(code: .unsupportedOperation, message: "")), bytes: 10, now: fixture.now, &fixture.actions)
        }
        for _ in 0..<15 { fixture.undecodable() }
        #expect(fixture.take().end == nil)
        fixture.undecodable()
        #expect(fixture.take().end == .own(.tooManyErrors))
    }

    @Test("a temporary refusal refuses later hexes until a refused one is resent")
    func temporary() {
        var fixture = SessionFixture.opened()
        fixture.store(1, id: SessionFixture.id(1))
        _ = fixture.session.takeBatch(limit: 10)
        fixture.store(2, id: SessionFixture.id(2))
        fixture.session.batchCompleted([.refused(.storageFull, message: "full", retryAfter: 60)], now: fixture.now)
        #expect(fixture.session.takeBatch(limit: 10).isEmpty)
        guard case .ack(let receipt)? = fixture.owed().first else { return #expect(Bool(false), "no receipt") }
        #expect(receipt.rejected.map(\.sequence) == [1, 2])
        #expect(receipt.status == nil)
        fixture.store(3, id: SessionFixture.id(2))
        #expect(fixture.session.takeBatch(limit: 10).map(\.sequence) == [3])
    }

    @Test("in that state a stored duplicate is refused too; a permanent refusal keeps its own code")
    func temporaryForAll() {
        var fixture = SessionFixture.opened()
        fixture.store(1, id: SessionFixture.id(1))
        fixture.keepAll(.refused(.storageFull, message: "full", retryAfter: 60))
        _ = fixture.owed()
        fixture.store(2, id: SessionFixture.id(2))  // the store is not asked after a refusal
        fixture.session.received(
            .refused(Refusal(code: .tooManyLinks, message: "", sequence: 3)), bytes: 10, now: fixture.now, &fixture.actions)
        #expect(fixture.session.takeBatch(limit: 10).isEmpty)
        guard case .ack(let receipt)? = fixture.owed().first else { return #expect(Bool(false), "no receipt") }
        #expect(receipt.rejected.map(\.code) == [.storageFull, .tooManyLinks])
    }

    @Test("a resent hex that is refused starts the state again: earlier refused ones no longer end it")
    func temporaryAgain() {
        var fixture = SessionFixture.opened()
        fixture.store(1, id: SessionFixture.id(1))
        fixture.keepAll(.refused(.storageFull))
        fixture.store(2, id: SessionFixture.id(2))
        #expect(fixture.session.takeBatch(limit: 10).isEmpty)
        fixture.store(3, id: SessionFixture.id(1))
        fixture.keepAll(.refused(.internal))
        fixture.store(4, id: SessionFixture.id(2))
        #expect(fixture.session.takeBatch(limit: 10).isEmpty, "refused before the state began anew")
        fixture.store(5, id: SessionFixture.id(2))
        #expect(fixture.session.takeBatch(limit: 10).map(\.sequence) == [5])
        #expect(fixture.owed().count == 1)
    }

    @Test("a Store without an id is refused but starts no such state")
    func temporaryWithoutID() {
        var fixture = SessionFixture.opened()
        fixture.store(1)
        fixture.keepAll(.refused(.quotaExceeded))
        fixture.store(2)
        #expect(fixture.session.takeBatch(limit: 10).count == 1)
    }

    @Test("a receipt over the peer's limit is split")
    func split() {
        var fixture = SessionFixture(role: .acceptor)
        fixture.hello(frame: 2_048)
        for number in 1...100 { fixture.store(Int64(number)) }
        fixture.keepAll(.refused(.tooLarge, message: "too long"))
        let receipts = fixture.owed().compactMap { if case .ack(let receipt) = $0 { receipt } else { nil } }
        #expect(receipts.count > 4)
        #expect(receipts.flatMap(\.rejected).map(\.sequence) == Array(1...100))
        #expect(receipts.last?.through == 100)
    }

    @Test("reading stops at a window of uncommitted frames")
    func pressure() {
        var fixture = SessionFixture.opened()
        for number in 1...1_024 { fixture.store(Int64(number)) }
        #expect(!fixture.session.mayRead(now: fixture.now))
        fixture.keepAll()
        _ = fixture.session.takeBatch(limit: 1_000)
        fixture.session.batchCompleted(Array(repeating: .stored, count: 24), now: fixture.now)
        _ = fixture.owed()
        #expect(fixture.session.mayRead(now: fixture.now))
    }

    @Test("reading stops at 16 MiB of uncommitted hexes, however few frames")
    func pressureOfBytes() {
        var fixture = SessionFixture.opened()
        for number in 1...16 {
            #expect(fixture.session.mayRead(now: fixture.now))
            fixture.receive(HexContent(), sequence: Int64(number), bytes: 1 << 20)
        }
        #expect(!fixture.session.mayRead(now: fixture.now))
        fixture.keepAll()
        #expect(fixture.session.mayRead(now: fixture.now))
    }

    @Test("the weight of a hex is its decoded size: frame, rewritten texts, links and itself")
    func weight() throws {
        let frame = Array(#"{"jmObject":{"hexColor":"\u0041\u0042","links":[{},{"url":"x"}]}}"#.utf8)
        var decoder = WrapperDecoder()
        guard case .hex(let content) = try wrapper(decoder.decode(frame)).object else { throw TestFailure() }
        #expect(content.arena.count == 2 + 7)  // "AB" and the one "Unknown" of both links
        #expect(content.weight(frame: frame.count) == frame.count + 9 + 2 * 64 + 512)
        // 15 kB on the wire, a third of a megabyte in memory.
        let links = #"{"jmObject":{"links":[\#(Array(repeating: "{}", count: 5_000).joined(separator: ","))]}}"#
        guard case .hex(let many) = try wrapper(decode(links)).object else { throw TestFailure() }
        var fixture = SessionFixture.opened()
        var count: Int64 = 0
        while fixture.session.mayRead(now: fixture.now) {
            count += 1
            fixture.receive(many, sequence: count, bytes: links.utf8.count)
        }
        #expect(count == Int64((16 << 20) / many.weight(frame: links.utf8.count) + 1) && count < 60)
    }

    @Test("the weight of a hex is released once, whatever the result")
    func givenBack() {
        var fixture = SessionFixture.opened()
        let one = HexContent().weight(frame: 100)
        for number in 1...6 { fixture.receive(HexContent(), sequence: Int64(number), bytes: 100, id: SessionFixture.id(UInt64(number))) }
        #expect(fixture.session.waitingWeight == 6 * one)
        // Hexes that wait for the store still count. After the store refused one, later ones are refused without being passed to the store.
        #expect(fixture.session.takeBatch(limit: 2).count == 2)
        #expect(fixture.session.waitingWeight == 6 * one)
        fixture.session.batchCompleted([.stored, .refused(.storageFull)], now: fixture.now)
        #expect(fixture.session.waitingWeight == 4 * one)
        #expect(fixture.session.takeBatch(limit: 10).isEmpty)
        #expect(fixture.session.waitingWeight == 0)
        // The weight falls to 0 after the end too, and after a block.
        fixture.receive(HexContent(), sequence: 7, bytes: 100, id: SessionFixture.id(2))
        _ = fixture.session.takeBatch(limit: 10)
        fixture.receive(HexContent(), sequence: 8, bytes: 100)
        fixture.session.endBlocked(ownName: "own", now: fixture.now, &fixture.actions)
        #expect(fixture.session.waitingWeight == one)
        fixture.session.connectionClosed()
        fixture.session.batchCompleted([.refused(.internal)], now: fixture.now)
        #expect(fixture.session.waitingWeight == 0)
    }

    @Test("a batch is bounded in hexes plus links, or has one hex of any size")
    func batchRows() {
        var fixture = SessionFixture.opened()
        let link = LinkContent(url: .empty, linkDescription: .empty, service: .empty)
        for (number, links) in [5_000, 10, 4_085, 1, 0, 0].enumerated() {
            var content = HexContent()
            content.links = Array(repeating: link, count: links)
            fixture.receive(content, sequence: Int64(number + 1), bytes: 100)
        }
        var batches: [[Int64?]] = []
        while true {
            let batch = fixture.session.takeBatch(limit: 1_000)
            guard !batch.isEmpty else { break }
            batches.append(batch.map(\.sequence))
            fixture.session.batchCompleted(batch.map { _ in .stored }, now: fixture.now)
        }
        #expect(batches == [[1], [2], [3, 4, 5, 6]])
    }

    @Test("a Ping with an implausible token gets no reply")
    func longToken() {
        var fixture = SessionFixture.opened()
        fixture.receive(.ping, message: String(repeating: "t", count: 512))
        #expect(fixture.owed() == [.pong(message: String(repeating: "t", count: 512))])
        fixture.receive(.ping, message: String(repeating: "t", count: 513))
        #expect(fixture.owed().isEmpty && fixture.session.isOpen)
    }

    @Test("a stranger is read at 20 frames a second")
    func strangerRate() throws {
        var fixture = SessionFixture.opened(trusted: false)
        for number in 1...4 { fixture.store(Int64(number)) }
        #expect(!fixture.session.mayRead(now: fixture.now))  // the Hello and four hexes are the permitted burst of five frames
        let again = try #require(fixture.session.nextReadTime(now: fixture.now))
        #expect(again - fixture.now <= .milliseconds(51))
        #expect(fixture.session.mayRead(now: again))
    }

    @Test("with many strangers each is read more slowly; a trusted peer is not")
    func sharedRate() throws {
        var fixture = SessionFixture.opened(trusted: false)
        for number in 1...4 { fixture.store(Int64(number)) }
        fixture.session.setStrangerRate(2, now: fixture.now)
        let again = try #require(fixture.session.nextReadTime(now: fixture.now))
        #expect(again - fixture.now == .milliseconds(500))
        fixture.session.setTrusted(true)
        #expect(fixture.session.mayRead(now: fixture.now))
    }

    @Test("receipts of a stranger are limited by the hexes sent to it and do not count as frames")
    func strangerReceipts() {
        var fixture = SessionFixture.opened(trusted: false)
        for number in 1...200 {
            _ = fixture.session.numberStore(tag: Int64(number), bytes: 1, now: fixture.now)
            fixture.receive(.ack, .receipt(Receipt(through: Int64(number), status: .stored)))
        }
        #expect(fixture.session.mayRead(now: fixture.now))
    }

    @Test("a flood of Pings gets one Pong, a flood of pairing requests one cancel")
    func merged() {
        var fixture = SessionFixture.opened()
        for number in 0..<1_000 { fixture.receive(.ping, message: "\(number)") }
        for _ in 0..<1_000 { fixture.receive(.pair, .pairing(Pairing(step: "commit"))) }
        let asked = fixture.take().compactMap { if case .pairing(let pairing) = $0 { pairing } else { nil } }
        #expect(asked.count == 1_000)
        for pairing in asked { fixture.session.refusePairing(pairing) }
        let owed = fixture.owed()
        #expect(owed.count == 2)
        #expect(owed.contains { if case .pair(let pairing) = $0 { pairing.step == "cancel" } else { false } })
        fixture.session.refusePairing(Pairing(step: "cancel"))
        #expect(fixture.owed().isEmpty, "a cancel is not answered, or two peers would go on for ever")
        for step in ["nonce", "reveal", "confirm"] { fixture.session.refusePairing(Pairing(step: step)) }
        #expect(fixture.owed().isEmpty, "what crossed with the end of its exchange is not answered, or the answer would end the next one")
    }

    @Test("refusals are sent before this side's own step")
    func refusedFirst() {
        var fixture = SessionFixture.opened()
        fixture.session.refusePairing(Pairing(step: "commit"))
        fixture.session.sendPairing(Pairing(step: "commit", commitment: "c"), &fixture.actions)
        #expect(
            fixture.take().frames == [
                .pair(Pairing(step: "cancel", message: "No request is taken now.")), .pair(Pairing(step: "commit", commitment: "c")),
            ])
        #expect(fixture.owed().isEmpty)
    }

    @Test("pairing needs TLS and a Hello: a sender without Hello is refused, one on plain TCP gets no reply")
    func pairingIsForTLS() {
        var legacy = SessionFixture()
        legacy.store(1)
        legacy.receive(.pair, .pairing(Pairing(step: "commit")))
        #expect(!legacy.take().contains { if case .pairing = $0 { true } else { false } })
        #expect(legacy.owed().contains { if case .pair(let pairing) = $0 { pairing.step == "cancel" } else { false } })
        legacy.session.sendPairing(Pairing(step: "commit"), &legacy.actions)
        #expect(legacy.take().isEmpty)

        var plain = SessionFixture(security: .plain)
        plain.hello()
        _ = plain.take()
        plain.receive(.pair, .pairing(Pairing(step: "commit")))
        #expect(plain.take().isEmpty)
        #expect(plain.owed().isEmpty)
        plain.session.sendPairing(Pairing(step: "commit"), &plain.actions)
        #expect(plain.take().isEmpty)
    }

    @Test("hexes read before the end are still stored, however it ended")
    func afterTheEnd() {
        for ends in [
            { $0.receive(.bye, message: "shutdown") }, { $0.session.connectionClosed() }, { $0.session.end(.idle, &$0.actions) },
        ] as [(inout SessionFixture) -> Void] {
            var fixture = SessionFixture.opened()
            fixture.store(1)
            _ = fixture.session.takeBatch(limit: 10)
            fixture.store(2)
            fixture.store(3)
            ends(&fixture)
            #expect(fixture.session.isClosed)
            fixture.session.batchCompleted([.stored], now: fixture.now)
            #expect(fixture.session.takeBatch(limit: 10).map(\.sequence) == [2, 3])
            fixture.session.batchCompleted([.stored, .stored], now: fixture.now)
            #expect(fixture.owed().isEmpty)  // no peer is left to notify
        }
    }

    @Test("a blocked peer is notified, and its hexes are refused")
    func blocked() {
        var fixture = SessionFixture.opened()
        fixture.store(1)
        fixture.session.endBlocked(ownName: "Ada", now: fixture.now, &fixture.actions)
        let actions = fixture.take()
        #expect(
            actions.frames == [
                .ack(Receipt(through: 1, status: nil, rejected: [HexRejection(sequence: 1, code: .blocked)])),
                .alert(message: "Ada blocked you.", sequence: 1), .bye(.blocked, text: ""),
            ])
        #expect(actions.end == .own(.blocked))
    }

    @Test("a blocked sender without Hello is notified too, on TLS; before its first frame there is only Bye")
    func blockedLegacy() {
        var legacy = SessionFixture()
        legacy.store(1)
        _ = legacy.take()
        legacy.session.endBlocked(ownName: "Ada", now: legacy.now, &legacy.actions)
        #expect(legacy.take().frames.suffix(2) == [.alert(message: "Ada blocked you.", sequence: 1), .bye(.blocked, text: "")])
        var silent = SessionFixture()
        _ = silent.take()
        silent.session.endBlocked(ownName: "Ada", now: silent.now, &silent.actions)
        #expect(silent.take().frames == [.bye(.blocked, text: "")])
        var plain = SessionFixture(security: .plain)
        plain.store(1)
        _ = plain.take()
        plain.session.endBlocked(ownName: "Ada", now: plain.now, &plain.actions)
        #expect(!plain.take().frames.contains { if case .alert = $0 { true } else { false } })
    }
}

extension Session {
    /// Whether one more Store of `bytes` bytes may be sent.
    func takes(_ bytes: Int, windowFrames: Int, windowBytes: Int) -> Bool {
        guard let room = room(windowFrames: windowFrames, windowBytes: windowBytes) else { return false }
        return room.frames > 0 && (room.isIdle || bytes <= room.bytes)
    }
}

@Suite("Session: sending and timeouts")
struct SessionSendingTests {
    @Test("the window is the smaller of both sides', and one long frame may be sent alone")
    func window() {
        var fixture = SessionFixture.opened(window: 2)
        #expect(fixture.session.takes(100 << 20, windowFrames: 1_024, windowBytes: 8 << 20))
        #expect(fixture.session.numberStore(tag: 11, bytes: 10, now: fixture.now) == 1)
        #expect(!fixture.session.takes(8 << 20, windowFrames: 1_024, windowBytes: 8 << 20))
        #expect(fixture.session.numberStore(tag: 12, bytes: 10, now: fixture.now) == 2)
        #expect(!fixture.session.takes(1, windowFrames: 1_024, windowBytes: 8 << 20))
    }

    @Test("window and bytes hold back Stores only: the numbered Ping passes both")
    func numberedPingPassesTheWindow() {
        var fixture = SessionFixture.opened(window: 1)
        _ = fixture.session.numberStore(tag: 11, bytes: 9 << 20, now: fixture.now)
        #expect(!fixture.session.takes(1, windowFrames: 1_024, windowBytes: 8 << 20))
        #expect(fixture.tick(after: .seconds(7)).frames == [.ping(message: "", sequence: 2)])
        fixture.receive(.ack, .receipt(Receipt(through: 2, status: .stored)))
        #expect(fixture.take().end == nil)
    }

    @Test("an unknown status settles no Store, and is harmless if it covers none")
    func unknownStatus() {
        var fixture = SessionFixture.opened()
        _ = fixture.session.numberStore(tag: 11, bytes: 10, now: fixture.now)
        _ = fixture.tick(after: .seconds(7))
        fixture.receive(.ack, .receipt(Receipt(through: 1, status: .stored)))
        fixture.receive(.ack, .receipt(Receipt(through: 2, status: nil)))
        #expect(fixture.take().end == nil, "number 2 is a Ping's")
    }

    @Test("receipts settle rows in order")
    func receipts() {
        var fixture = SessionFixture.opened()
        for tag in 11...14 { _ = fixture.session.numberStore(tag: Int64(tag), bytes: 10, now: fixture.now) }
        fixture.receive(.ack, .receipt(Receipt(through: 3, status: .stored, rejected: [HexRejection(sequence: 2, code: .tooLarge)])))
        #expect(
            fixture.take() == [
                .settled([
                    RowResult(id: 11, .stored),
                    RowResult(id: 12, .refused(.tooLarge, message: "", retryAfter: nil)),
                    RowResult(id: 13, .stored),
                ])
            ])
        #expect(fixture.session.unacknowledgedFrames == 1)
    }

    @Test(
        "an impossible receipt ends the session and settles nothing",
        arguments: [
            Receipt(through: 0, status: .stored), Receipt(through: 3, status: .stored), Receipt(through: -1, status: .stored),
            Receipt(through: 2, status: nil), Receipt(through: 1, status: .stored, rejected: [HexRejection(sequence: 2, code: .internal)]),
            Receipt(through: 2, status: .stored, rejected: [.init(sequence: 2, code: .internal), .init(sequence: 2, code: .internal)]),
            Receipt(through: .max, status: .stored),
        ])
    func faults(receipt: Receipt) {
        var fixture = SessionFixture.opened()
        for tag in 11...12 { _ = fixture.session.numberStore(tag: Int64(tag), bytes: 10, now: fixture.now) }
        fixture.receive(.ack, .receipt(receipt))
        let actions = fixture.take()
        #expect(actions.end == .own(.receiptFault))
        #expect(!actions.contains { if case .settled = $0 { true } else { false } })
    }

    @Test("Pings and silence depend on received frames only: sent frames do not matter")
    func receivedFrames() {
        var fixture = SessionFixture.opened()
        for second in [5, 10, 14] {
            fixture.now = fixture.start + .seconds(second)
            fixture.session.resendHello(name: "own", maxFrameBytes: 1 << 20, always: true, &fixture.actions)
        }
        _ = fixture.take()
        #expect(fixture.tick(after: .seconds(15)).frames == [.ping(message: "", sequence: nil)])
        fixture.now = fixture.start + .seconds(16)
        fixture.receive(.pong, message: "")
        #expect(fixture.session.nextDeadline == fixture.start + .seconds(31))
        #expect(fixture.tick(after: .seconds(60)).end == nil)
        #expect(fixture.tick(after: .seconds(61)).end == .own(.silent))
    }

    @Test("an idle session is pinged after 15 s and ends after 45 s")
    func silence() {
        var fixture = SessionFixture.opened()
        #expect(fixture.tick(after: .seconds(14)).isEmpty)
        #expect(fixture.tick(after: .seconds(15)).frames == [.ping(message: "", sequence: nil)])
        #expect(fixture.tick(after: .seconds(30)).frames.count == 1)
        #expect(fixture.tick(after: .seconds(45)).end == .own(.silent))
    }

    @Test("an idle session releases the memory of a bulk, whichever side pings", arguments: [true, false])
    func givesBack(asks: Bool) {
        var fixture = SessionFixture.opened()
        for number in 1...500 { fixture.store(Int64(number)) }
        fixture.keepAll()
        _ = fixture.owed()
        for tag in 1...500 { _ = fixture.session.numberStore(tag: Int64(tag), bytes: 1, now: fixture.now) }
        fixture.receive(.ack, .receipt(Receipt(through: 500, status: .stored)))
        _ = fixture.take()
        let taken = fixture.session.inbound.capacity + fixture.session.outbound.capacity
        #expect(taken >= 1_000)
        fixture.now = fixture.start + .seconds(5)
        fixture.receive(.ping, message: "")
        #expect(fixture.session.inbound.capacity + fixture.session.outbound.capacity == taken, "it may go on")
        if asks {
            _ = fixture.tick(after: .seconds(20))
        } else {
            fixture.now = fixture.start + .seconds(15)
            fixture.receive(.ping, message: "")
        }
        #expect(fixture.session.inbound.capacity + fixture.session.outbound.capacity == 0)
        fixture.store(501)
        fixture.keepAll()
        #expect(fixture.owed().contains(.ack(Receipt(through: 501, status: .stored))))
    }

    @Test("only the Ping of an idle session is deferrable")
    func late() {
        var fixture = SessionFixture.opened()
        #expect(fixture.session.mayTickLate)
        #expect(fixture.session.nextDeadline == fixture.start + .seconds(15))
        _ = fixture.tick(after: .seconds(15))
        #expect(fixture.session.mayTickLate)
        _ = fixture.tick(after: .seconds(30))
        #expect(!fixture.session.mayTickLate, "what is next is the end")

        var busy = SessionFixture.opened()
        _ = busy.session.numberStore(tag: 1, bytes: 1, now: busy.now)
        #expect(!busy.session.mayTickLate)

        var asked = SessionFixture.opened()
        asked.session.challenge("c", now: asked.now, &asked.actions)
        #expect(!asked.session.mayTickLate)

        var paused = SessionFixture.opened()
        paused.session.pausedReading(now: paused.now)
        #expect(!paused.session.mayTickLate)
    }

    @Test("with frames unacknowledged: a numbered Ping after 7 s, the end after 20 s of silence or 30 s without a receipt")
    func unacknowledged() {
        var fixture = SessionFixture.opened()
        _ = fixture.session.numberStore(tag: 1, bytes: 1, now: fixture.now)
        #expect(fixture.tick(after: .seconds(7)).frames == [.ping(message: "", sequence: 2)])
        #expect(fixture.tick(after: .seconds(20)).end == .own(.silent))

        var alive = SessionFixture.opened()
        _ = alive.session.numberStore(tag: 1, bytes: 1, now: alive.now)
        var end: Session.EndReason?
        for second in 1...30 where end == nil {
            alive.now = alive.start + .seconds(second)
            alive.receive(.pong, message: "")
            end = alive.tick(after: .seconds(second)).end
        }
        #expect(end == .own(.receiptTimeout))
    }

    @Test("time in which this side does not read does not count as silence, and it still sends signs of life")
    func paused() {
        var fixture = SessionFixture.opened()
        fixture.session.pausedReading(now: fixture.now)
        for seconds in stride(from: 5, through: 100, by: 5) {
            #expect(fixture.tick(after: .seconds(seconds)).frames == [.ping(message: "", sequence: nil)])
        }
        fixture.session.resumedReading(now: fixture.now)
        #expect(fixture.tick(after: .seconds(101)).end == nil)
        #expect(fixture.tick(after: .seconds(144)).end == nil)
        #expect(fixture.tick(after: .seconds(145)).end == .own(.silent))
    }

    @Test("a peer that does not read its receipts is dropped after 45 s, but not while the store has its hexes")
    func owedAndNotTaken() {
        var fixture = SessionFixture.opened()
        for number in 1...1_024 { fixture.store(Int64(number)) }
        #expect(!fixture.session.mayRead(now: fixture.now))
        fixture.session.pausedReading(now: fixture.now)
        #expect(fixture.tick(after: .seconds(60)).end == nil)  // no timeout, because the session waits for its own store
        while !fixture.session.takeBatch(limit: 1_000).isEmpty {
            fixture.session.batchCompleted(Array(repeating: .stored, count: 1_000), now: fixture.now)
        }
        #expect(fixture.session.hasPendingFrames)
        #expect(fixture.tick(after: .seconds(61)).end == .own(.silent))
    }

    @Test("time in which this side does not read also postpones a stranger's idle timeout")
    func pausedStranger() {
        var fixture = SessionFixture.opened(trusted: false)
        fixture.session.pausedReading(now: fixture.now)
        // Each deadline that the machine names while it does not read leads to a later one, so no timer fires repeatedly.
        for _ in 0..<30 {
            guard let deadline = fixture.session.nextDeadline else { return #expect(Bool(false), "no deadline") }
            #expect(deadline > fixture.now)
            _ = fixture.tick(after: deadline - fixture.start)
        }
    }

    @Test("a pinged stranger's session does not end as idle before the reply")
    func idleWhileAsked() {
        var fixture = SessionFixture.opened(trusted: false)
        fixture.now = fixture.start + .seconds(30)
        fixture.receive(.pong, message: "")
        fixture.now = fixture.start + .seconds(58)
        fixture.session.challenge("there?", now: fixture.now, &fixture.actions)
        #expect(fixture.tick(after: .seconds(61)).end == nil)
        fixture.receive(.pong, message: "there?")
        #expect(fixture.tick(after: .seconds(62)).end == .own(.idle))
    }

    @Test("a stranger's session ends after an idle minute; a trusted one stays, and so does one with rows to send")
    func idle() {
        var stranger = SessionFixture.opened(trusted: false)
        var trusted = SessionFixture.opened()
        var busy = SessionFixture.opened(trusted: false)
        for seconds in stride(from: 10, through: 120, by: 10) {
            for fixture in [0, 1, 2] {
                let now = Duration.seconds(seconds)
                switch fixture {
                case 0:
                    stranger.now = stranger.start + now
                    stranger.receive(.pong, message: "")
                    let end = stranger.tick(after: now).end
                    #expect((end == .own(.idle)) == (seconds == 60))
                case 1:
                    trusted.now = trusted.start + now
                    trusted.receive(.pong, message: "")
                    #expect(trusted.tick(after: now).end == nil)
                default:
                    busy.now = busy.start + now
                    busy.receive(.pong, message: "")
                    #expect(busy.tick(after: now, hasMore: true).end == nil)
                }
            }
        }
    }

    @Test("only the Pong with the same message answers a challenge")
    func challenge() {
        var fixture = SessionFixture.opened()
        fixture.session.challenge("c", now: fixture.now, &fixture.actions)
        #expect(fixture.take().frames == [.ping(message: "c", sequence: nil)])
        fixture.receive(.pong, message: "d")
        #expect(fixture.take().isEmpty)
        fixture.receive(.pong, message: "c")
        #expect(fixture.take() == [.challengeAnswered("c")])

        fixture.session.challenge("\u{E9}", now: fixture.now, &fixture.actions)
        _ = fixture.take()
        fixture.receive(.pong, message: "e\u{301}")  // equal as `String`, but other bytes
        #expect(fixture.take().isEmpty)
        fixture.receive(.pong, message: "\u{E9}")
        #expect(fixture.take() == [.challengeAnswered("\u{E9}")])

        fixture.session.challenge("e", now: fixture.now, &fixture.actions)
        _ = fixture.take()
        #expect(fixture.tick(after: .seconds(5)) == [.challengeFailed("e")])
    }

    @Test(
        "Bye returns its code and text",
        arguments: [
            ("shutdown: going down", ByeCode.shutdown, "going down"), ("idle", .idle, ""), ("somethingNew: x: y", nil, "x: y"),
            ("", nil, ""), ("limit: ", .limit, ""), ("limit:", .limit, ""), ("Limit", nil, ""),
        ] as [(String, ByeCode?, String)])
    func bye(message: String, code: ByeCode?, text: String) {
        var fixture = SessionFixture.opened()
        fixture.receive(.bye, message: message)
        #expect(fixture.take().end == .peer(code, text: text))
    }

    @Test("each deadline named by the state machine leads to an action, so its timer never spins")
    func deadlines() throws {
        for trusted in [true, false] {
            var fixture = SessionFixture.opened(trusted: trusted)
            _ = fixture.session.numberStore(tag: 1, bytes: 1, now: fixture.now)
            var steps = 0
            while let deadline = fixture.session.nextDeadline {
                steps += 1
                try #require(steps < 50)
                let actions = fixture.tick(after: deadline - fixture.start)
                #expect(!actions.isEmpty)
            }
            #expect(fixture.session.isClosed)
        }
    }

    @Test("in a stream a batch waits briefly to grow; a single hex does not wait")
    func pace() {
        var fixture = SessionFixture.opened()
        func due(_ milliseconds: Int) -> Duration? {
            fixture.session.batchDue(now: fixture.start + .milliseconds(milliseconds)).map { $0 - fixture.start }
        }
        fixture.store(1)
        #expect(due(0) == nil)
        fixture.keepAll()
        for number in 2...101 { fixture.store(Int64(number)) }
        #expect(due(0) == nil)  // the previous batch had one hex, so the next one is due immediately
        fixture.keepAll()
        fixture.now = fixture.start + .milliseconds(7)
        fixture.store(102)
        #expect(due(7) == .milliseconds(8))
        #expect(due(8) == nil)
        fixture.now = fixture.start + .milliseconds(1)
        fixture.store(103)
        #expect(due(2) == .milliseconds(3))  // 2 ms after the latest frame, because the stream may have ended
        for number in 104...700 { fixture.store(Int64(number)) }
        #expect(due(1) == nil)
    }
}
