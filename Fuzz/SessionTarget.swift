// libFuzzer target: the session state machine. Any input is a sequence of events: frames as bytes, elapsed time, results of the store,
// calls of the driver. Must never trap, and the checks below hold after each event.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSession(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    var stage = SessionStage(&input)
    while !input.isAtEnd { stage.step(&input) }
    return 0
}

/// A session, a correctly behaving driver, and a record of frames and actions.
private struct SessionStage {
    static let own = key(1)
    static let peer = key(2)

    var session: Session
    var decoder = WrapperDecoder()
    var now = ContinuousClock.now
    var isClosed = false
    /// The highest number received, and the store's result for each Store with a number.
    var lastNumber: Int64 = 0
    var results: [Int64: DeliveryResult] = [:]
    var batch: [IncomingHex] = []
    /// The last number that the session's receipts cover.
    var through: Int64 = 0
    /// The tags of the rows that the session has in flight.
    var tags: Set<Int64> = []
    var lastTag: Int64 = 0
    var isPaused = false

    private static func key(_ byte: UInt8) -> Fingerprint {
        Fingerprint(bytes: [UInt8](repeating: byte, count: 32)) ?? { fatalError("no key") }()
    }

    init(_ input: inout FuzzInput) {
        let choice = input.byte()
        let hello = Hello(uuid: Self.own.peerID, name: "own", boot: BootNonce(1), window: choice & 16 == 0 ? 1_024 : 3)
        session = Session(
            Session.Configuration(
                own: Self.own.peerID, role: choice & 1 == 0 ? .acceptor : .dialer,
                security: choice & 2 == 0 ? .tls(choice & 64 == 0 ? Self.peer : Self.own) : .plain,
                expected: choice & 4 == 0 ? nil : Self.peer.peerID, hello: hello, strangerFrameBytes: 64 << 10, isTrusted: choice & 8 == 0,
                strangerFramesPerSecond: choice & 32 == 0 ? 20 : 1, connectedAt: now), now: now)
        act { $0.start(&$1) }
    }

    mutating func step(_ input: inout FuzzInput) {
        switch input.byte() % 24 {
        case 0: receive(input.bytes())
        case 1...9: receive(frame(&input))
        case 10: act { $0.frameFault(&$1) }
        case 11, 12: pass(.milliseconds(Int(input.word())), hasMore: input.flag())
        case 13: passToDeadline(hasMore: input.flag())
        case 14: act { $0.takePendingFrames(&$1) }
        case 15: takeBatch(limit: Int(input.byte()))
        case 16: complete(&input)
        case 17: send(bytes: Int(input.word()))
        case 18: if !isClosed { act { [now] in $0.challenge("challenge", now: now, &$1) } }
        case 19: pause(input.flag())
        case 20: act { [now] in $0.sendAlert("alert", now: now, &$1) }
        case 21: act { $0.resendHello(name: "renamed", maxFrameBytes: 2 << 20, &$1) }
        case 22: session.setTrusted(input.flag())
        default: end(input.byte())
        }
        check(session.inbound.waitingWeight >= 0, "less than nothing waits")
        check(session.unacknowledgedTags == tags, "rows on their way are not those that were sent")
        check(session.isClosed == isClosed, "it is closed without a word, or open after one")
    }

    // MARK: Events from the peer

    private mutating func receive(_ bytes: [UInt8]) {
        // The driver stops reading, apart from frames already in its buffer.
        guard session.mayRead(now: now) || bytes.count % 8 == 0 else { return }
        let decoded = decoder.decode(bytes)
        if !isClosed { lastNumber = max(lastNumber, Self.number(of: decoded) ?? 0) }
        act { [now] in $0.received(decoded, bytes: bytes.count, now: now, &$1) }
    }

    private static func number(of frame: DecodedFrame) -> Int64? {
        switch frame {
        case .wrapper(let wrapper): wrapper.sequence
        case .refused(let refusal): refusal.sequence
        }
    }

    /// A mostly valid frame, so that the state machine is reached behind its decoder.
    private func frame(_ input: inout FuzzInput) -> [UInt8] {
        let peer = input.byte() % 4
        let number = lastNumber + Int64(input.byte() % 8) - 1
        let sequence = input.byte() % 4 == 0 ? "" : #","sequence":\#(input.byte() % 16 == 0 ? number : lastNumber + 1)"#
        let uuid = (peer == 3 ? Self.own : Self.peer).peerID
        let body: String
        switch input.byte() % 12 {
        case 0, 1:
            body =
                #""Hello","jmObject":{"uuid":"\#(uuid)","boot":"\#(BootNonce(UInt64(input.byte() % 3)))","window":\#(input.word()),"#
                + #""maxFrameBytes":\#(Int(input.word()) * 64),"protocols":[\#(input.byte() % 8 == 0 ? 2 : 1)]}"#
        case 2, 3, 4:
            let id = input.byte() % 4 == 0 ? "" : #""messageID":"00000000-0000-4000-8000-0000000000\#(hex(input.byte() % 8))","#
            body = #""Store",\#(id)"jmObject":{"links":["u"]}"# + sequence
        case 5:
            let rejected = input.byte() % 3 == 0 ? #","rejected":[{"sequence":\#(input.byte()),"code":"internal"}]"# : ""
            let next = session.nextSequence
            let through = next - Int64(input.byte() % 8)
            body = #""Ack","jmObject":{"through":\#(through),"status":"stored"\#(rejected)}"#
        case 6: body = #""Ping","message":"m""# + sequence
        case 7: body = #""Pong","message":"\#(input.flag() ? "challenge" : "")""#
        case 8: body = #""Alert","message":"a""# + sequence
        case 9: body = #""Pair","jmObject":{"step":"commit"}"# + sequence
        case 10: body = input.byte() % 16 == 0 ? #""Bye","message":"shutdown""# : #""Nope""# + sequence
        default: body = #""Store","jmObject":\#(input.flag() ? "7" : #"{"links":7"#)"# + sequence
        }
        return Array((#"{"versionID":"1","operationType":"# + body + "}").utf8)
    }

    private func hex(_ byte: UInt8) -> String { Hexadecimal.encode([byte]) }

    // MARK: Time, store, driver

    private mutating func pass(_ duration: Duration, hasMore: Bool) {
        now += duration
        act { [now] in $0.tick(now: now, hasMoreToSend: hasMore, &$1) }
    }

    /// The driver sleeps until the deadline. A deadline that a tick does not change would keep it awake for ever.
    private mutating func passToDeadline(hasMore: Bool) {
        guard let deadline = session.nextDeadline else { return check(isClosed || session.isLegacy || isPaused, "it waits for nothing") }
        now = max(now, deadline)
        act { [now] in $0.tick(now: now, hasMoreToSend: hasMore, &$1) }
        if let next = session.nextDeadline { check(next > now, "the deadline stays in the past") }
    }

    private mutating func takeBatch(limit: Int) {
        let taken = session.takeBatch(limit: limit)
        guard !taken.isEmpty else { return }
        check(batch.isEmpty, "a second batch while one is with the store")
        batch = taken
    }

    private mutating func complete(_ input: inout FuzzInput) {
        guard !batch.isEmpty else { return }
        let answers = batch.map { _ -> DeliveryResult in
            switch input.byte() % 8 {
            case 0: .refused(.quotaExceeded, message: "full", retryAfter: 60)
            case 1: .refused(.tooLarge)
            case 2: .duplicate(of: .held)
            case 3: .held
            default: .stored
            }
        }
        for (hex, answer) in zip(batch, answers) { if let sequence = hex.sequence { results[sequence] = answer } }
        batch = []
        session.batchCompleted(answers, now: now)
    }

    private mutating func send(bytes: Int) {
        guard let room = session.room(windowFrames: 1_024, windowBytes: 8 << 20), room.frames > 0, room.isIdle || bytes <= room.bytes else {
            return
        }
        lastTag += 1
        tags.insert(lastTag)
        _ = session.numberStore(tag: lastTag, bytes: bytes, now: now)
        let window = session.peerHello?.window ?? 0
        check(tags.count <= max(1, window), "more rows on their way than the peer's window")
    }

    private mutating func pause(_ pauses: Bool) {
        isPaused = pauses
        if pauses { session.pausedReading(now: now) } else { session.resumedReading(now: now) }
        if let again = session.nextReadTime(now: now) { check(again > now, "a stranger's next token is in the past") }
    }

    private mutating func end(_ choice: UInt8) {
        switch choice % 16 {
        case 0: act { $0.end(.limit, &$1) }
        case 1: act { [now] in $0.endBlocked(ownName: "own", now: now, &$1) }
        case 2:
            session.connectionClosed()
            isClosed = true
        default: break
        }
    }

    // MARK: Actions

    private mutating func act(_ event: (inout Session, inout [Session.Action]) -> Void) {
        let wasClosed = isClosed
        var actions: [Session.Action] = []
        event(&session, &actions)
        check(!wasClosed || actions.isEmpty, "it acts after its end")
        for action in actions {
            check(!isClosed, "it acts after it closed")
            take(action)
        }
        check(actions.count <= 2_000, "\(actions.count) actions at once")
    }

    private mutating func take(_ action: Session.Action) {
        switch action {
        case .send(let frame):
            switch frame {
            case .hello, .bye: break
            case .ack(let receipt): take(receipt)
            case .alert, .ping, .pong, .pair, .dialBack, .dialedBack, .fileDial, .listNews:
                check(session.peerHello != nil || session.isTLS, "it speaks to a sender that said no Hello")
            }
            // A blocked legacy sender on TLS is notified.
            if session.peerHello == nil, !session.isTLS, case .alert = frame { fatalError("an Alert before Hello") }
        case .setFrameLimit(let limit): check((1...ProtocolLimits.largestFrameBytes).contains(limit), "a frame limit of \(limit)")
        case .settled(let rows):
            for row in rows { check(tags.remove(row.id) != nil, "a row is settled that was not on its way") }
        case .close: isClosed = true
        case .pairing(let pairing):
            check(session.peerHello != nil && session.isTLS, "a pairing with nobody knows whom")
            session.refusePairing(pairing)
        case .opened, .updated, .legacy, .alert, .challengeAnswered, .challengeFailed, .dialBack, .dialedBack, .fileDial, .listNews: break
        }
    }

    /// Checks that a receipt reports only results of the store.
    private mutating func take(_ receipt: Receipt) {
        check(receipt.through > through && receipt.through <= lastNumber, "a receipt through \(receipt.through) of \(lastNumber)")
        let rejected = Set(receipt.rejected.map(\.sequence))
        check(rejected.count == receipt.rejected.count, "a number rejected twice")
        for sequence in rejected { check(sequence > through && sequence <= receipt.through, "a rejection outside its receipt") }
        for sequence in through + 1...receipt.through {
            guard let result = results[sequence], result.isDelivered else { continue }
            check(!rejected.contains(sequence), "what was kept is called refused")
            check(receipt.status.map { DeliveryResult($0, of: receipt.of) } == result, "what was kept is called something else")
        }
        for sequence in through + 1...receipt.through where !rejected.contains(sequence) {
            if case .refused? = results[sequence] { fatalError("what was refused is called kept") }
        }
        // A peer's limit may be too small for any receipt.
        let limit = max(512, session.peerHello?.maxFrameBytes ?? 64 << 10)
        check(WrapperWriter.ack(receipt).count <= limit || receipt.through == through + 1, "a long receipt")
        through = receipt.through
    }

    private func check(_ holds: Bool, _ message: @autoclosure () -> String) {
        if !holds { fatalError(message()) }
    }
}
