import HexlistModel
import Testing

@testable import HexlistWire

/// Two state machines and the frames between them.
struct PairingFixture {
    typealias Action = PairingStateMachine.Action

    /// The lesser UUID and the greater one.
    static let low = SessionFixture.key(1)
    static let high = SessionFixture.key(200)

    let start = ContinuousClock.Instant.now
    var asking: PairingStateMachine
    var asked: PairingStateMachine?
    /// Frames in transit, oldest first.
    var toAsked: [Pairing] = []
    var toAsking: [Pairing] = []
    var askingActions: [Action] = []
    var askedActions: [Action] = []

    init(asker: Fingerprint = low, asked: Fingerprint = high) {
        let (machine, actions) = PairingStateMachine.ask(own: asker, peer: asked, nonce: .of(3), now: start)
        asking = machine
        took(actions, isAsking: true)
    }

    /// Passes an event to the state machine of the asked side.
    mutating func atAsked(_ event: (inout PairingStateMachine) -> [Action]) {
        guard var machine = asked else { return }
        let actions = event(&machine)
        asked = machine
        took(actions, isAsking: false)
    }

    mutating func took(_ actions: [Action], isAsking: Bool) {
        for action in actions {
            if case .send(let frame) = action {
                if isAsking { toAsked.append(frame) } else { toAsking.append(frame) }
            } else if isAsking {
                askingActions.append(action)
            } else {
                askedActions.append(action)
            }
        }
    }

    mutating func deliverToAsked() throws {
        let frame = try #require(toAsked.isEmpty ? nil : toAsked.removeFirst())
        guard asked != nil else {
            let (machine, actions) = try #require(
                PairingStateMachine.answer(frame, own: asking.peer, peer: asking.own, nonce: .of(4), now: start))
            asked = machine
            return took(actions, isAsking: false)
        }
        atAsked { [start] in $0.received(frame, freshNonce: .of(5), now: start) }
    }

    mutating func deliverToAsking() throws {
        let frame = try #require(toAsking.isEmpty ? nil : toAsking.removeFirst())
        took(asking.received(frame, freshNonce: .of(6), now: start), isAsking: true)
    }

    /// Delivers all frames until none is left.
    mutating func deliver() throws {
        while !toAsked.isEmpty || !toAsking.isEmpty {
            if !toAsked.isEmpty { try deliverToAsked() }
            if !toAsking.isEmpty { try deliverToAsking() }
        }
    }

    /// Runs the exchange up to the digits.
    static func shown() throws -> PairingFixture {
        var fixture = PairingFixture()
        try fixture.deliver()
        return fixture
    }

    mutating func confirm(asking isAsking: Bool, _ digits: String) {
        if isAsking {
            took(asking.confirm(digits: digits), isAsking: true)
        } else {
            atAsked { $0.confirm(digits: digits) }
        }
    }
}

extension [PairingStateMachine.Action] {
    var digits: String? { compactMap { if case .show(let digits) = $0 { digits } else { nil } }.last }
    var end: PairingStateMachine.EndReason? { compactMap { if case .ended(let end, _) = $0 { end } else { nil } }.last }
    var isFailure: Bool { contains { if case .ended(_, true) = $0 { true } else { false } } }
}

@Suite("Pairing: one exchange")
struct PairingStateMachineTests {
    @Test("both see the same digits, and each side trusts once both users confirmed", arguments: [true, false])
    func agreement(askerFirst: Bool) throws {
        var fixture = try PairingFixture.shown()
        let digits = try #require(fixture.askingActions.digits)
        #expect(fixture.askedActions.digits == digits)
        #expect(fixture.asking.stage == .comparing(digits: digits) && fixture.asked?.stage == .comparing(digits: digits))

        fixture.confirm(asking: askerFirst, digits)
        try fixture.deliver()
        #expect(!fixture.askingActions.contains(.paired) && !fixture.askedActions.contains(.paired))
        #expect((askerFirst ? fixture.asking.stage : fixture.asked?.stage) == .confirmed(digits: digits))
        fixture.confirm(asking: !askerFirst, digits)
        try fixture.deliver()
        #expect(fixture.askingActions.last == .paired && fixture.askedActions.last == .paired)
        #expect(fixture.asking.stage == .ended && fixture.asked?.stage == .ended)
        #expect(fixture.asking.nextDeadline == nil)
    }

    @Test("crossing answers also lead to trust on both sides")
    func crossingAnswers() throws {
        var fixture = try PairingFixture.shown()
        let digits = try #require(fixture.askingActions.digits)
        fixture.confirm(asking: true, digits)
        fixture.confirm(asking: false, digits)
        try fixture.deliver()
        #expect(fixture.askingActions.last == .paired && fixture.askedActions.last == .paired)
    }

    @Test("a no of either user, before or after the other's yes, is a no for both", arguments: [true, false], [true, false])
    func no(askerSaysNo: Bool, otherSaidYes: Bool) throws {
        var fixture = try PairingFixture.shown()
        let digits = try #require(fixture.askingActions.digits)
        if otherSaidYes { fixture.confirm(asking: !askerSaysNo, digits) }
        try fixture.deliver()
        if askerSaysNo {
            fixture.took(fixture.asking.reject(), isAsking: true)
        } else {
            fixture.atAsked { $0.reject() }
        }
        try fixture.deliver()
        let (no, told) = askerSaysNo ? (fixture.askingActions, fixture.askedActions) : (fixture.askedActions, fixture.askingActions)
        #expect(no.end == .rejected && no.isFailure)
        #expect(told.end == .refused && told.isFailure)
        // After the no, a yes of either user has no effect.
        fixture.confirm(asking: true, digits)
        fixture.confirm(asking: false, digits)
        #expect(fixture.toAsked.isEmpty && fixture.toAsking.isEmpty)
        #expect(!fixture.askingActions.contains(.paired) && !fixture.askedActions.contains(.paired))
    }

    @Test("digits other than those shown are a no", arguments: ["000000", "", "04066", "0406600", "040 660", "٠٤٠٦٦٠"])
    func wrongCode(entered: String) throws {
        var fixture = try PairingFixture.shown()
        #expect(fixture.askingActions.digits != entered)
        fixture.confirm(asking: true, entered)
        try fixture.deliver()
        #expect(fixture.askingActions.end == .wrongCode && fixture.askingActions.isFailure)
        #expect(fixture.askedActions.isFailure && !fixture.askedActions.contains(.paired))
    }

    @Test("before there are digits neither side's answer counts")
    func tooEarly() throws {
        var fixture = PairingFixture()
        #expect(fixture.asking.confirm(digits: "040660").isEmpty)
        try fixture.deliverToAsked()
        fixture.atAsked { $0.confirm(digits: "040660") }
        #expect(fixture.askedActions.isEmpty)
        fixture.atAsked { [start = fixture.start] in $0.received(Pairing(step: "confirm"), freshNonce: .of(9), now: start) }
        #expect(fixture.askedActions.end == .outOfOrder && !fixture.askedActions.isFailure)
        #expect(fixture.toAsking.last?.step == "cancel")
        #expect(PairingFixture().asking.nextDeadline != nil)
        var other = PairingFixture()
        other.took(other.asking.received(Pairing(step: "confirm"), freshNonce: .of(9), now: other.start), isAsking: true)
        #expect(other.askingActions.end == .outOfOrder && other.toAsked.last?.step == "cancel")
    }

    @Test("a nonce that does not match its commitment ends the exchange as a failure", arguments: [5, 0, 255] as [UInt8])
    func changedCommitment(byte: UInt8) throws {
        var fixture = PairingFixture()
        try fixture.deliverToAsked()
        try fixture.deliverToAsking()
        fixture.toAsked = [Pairing(step: "reveal", nonce: PairingNonce.of(byte).base64)]
        try fixture.deliver()
        #expect(fixture.askedActions.end == .badReveal && fixture.askedActions.isFailure)
        #expect(fixture.askedActions.digits == nil)
        // The asker has shown its digits, and is notified of the no.
        #expect(fixture.askingActions.isFailure)
    }

    @Test("a commitment for other keys, or with swapped roles, is invalid", arguments: [true, false])
    func commitmentOfOthers(isReversed: Bool) throws {
        let (low, high) = (PairingFixture.low, PairingFixture.high)
        let (asker, asked) = isReversed ? (high, low) : (SessionFixture.key(77), high)
        let commitment = Base64.encode(PairingCode.commitment(nonce: .of(3), asker: asker, asked: asked))
        var (machine, _) = try #require(
            PairingStateMachine.answer(Pairing(step: "commit", commitment: commitment), own: high, peer: low, nonce: .of(4), now: .now))
        #expect(
            machine.received(Pairing(step: "reveal", nonce: PairingNonce.of(3).base64), freshNonce: .of(9), now: .now).end == .badReveal)
    }

    @Test(
        "a commitment or nonce that is not base64 of 32 bytes",
        arguments: [
            "", "AAAA", "!!!!", String(repeating: "A", count: 43), String(repeating: "A", count: 44), String(repeating: "A", count: 4_000),
        ])
    func badBytes(text: String) throws {
        let commit = Pairing(step: "commit", commitment: text)
        #expect(PairingStateMachine.answer(commit, own: PairingFixture.low, peer: PairingFixture.high, nonce: .of(4), now: .now) == nil)
        var nonce = PairingFixture()
        nonce.took(nonce.asking.received(Pairing(step: "nonce", nonce: text), freshNonce: .of(9), now: nonce.start), isAsking: true)
        #expect(nonce.askingActions == [.ended(.outOfOrder, isFailure: false)])
        var crossing = PairingFixture()
        crossing.took(crossing.asking.received(commit, freshNonce: .of(9), now: crossing.start), isAsking: true)
        #expect(crossing.askingActions == [.ended(.outOfOrder, isFailure: false)])
        var reveal = PairingFixture()
        try reveal.deliverToAsked()
        reveal.toAsked = [Pairing(step: "reveal", nonce: text)]
        try reveal.deliverToAsked()
        #expect(reveal.askedActions == [.ended(.badReveal, isFailure: true)])
    }

    @Test("an unexpected step cancels, and is a failure once digits were shown")
    func outOfOrder() throws {
        let steps = ["commit", "nonce", "reveal", "confirm", "", "COMMIT", "later"]
        let text = PairingNonce.of(3).base64
        for step in steps {
            let frame = Pairing(step: step, commitment: text, nonce: text)
            if step != "nonce", step != "commit" {
                var committed = PairingFixture()
                committed.took(committed.asking.received(frame, freshNonce: .of(9), now: committed.start), isAsking: true)
                #expect(committed.askingActions == [.ended(.outOfOrder, isFailure: false)], "\(step)")
            }
            if step != "reveal" {
                var answered = PairingFixture()
                try answered.deliverToAsked()
                answered.toAsked = [frame]
                try answered.deliverToAsked()
                #expect(answered.askedActions == [.ended(.outOfOrder, isFailure: false)], "\(step)")
            }
            if step != "confirm" {
                var shown = try PairingFixture.shown()
                shown.toAsked = [frame]
                try shown.deliver()
                #expect(shown.askedActions.end == .outOfOrder && shown.askedActions.isFailure, "\(step)")
                #expect(shown.askingActions.end == .refused, "\(step)")
            }
        }
        var twice = try PairingFixture.shown()
        twice.toAsked = [Pairing(step: "confirm"), Pairing(step: "confirm")]
        try twice.deliver()
        #expect(twice.askedActions.end == .outOfOrder && !twice.askedActions.contains(.paired))
    }

    @Test("of two crossing requests the greater UUID's continues")
    func crossing() throws {
        let (low, high, now) = (PairingFixture.low, PairingFixture.high, ContinuousClock.Instant.now)
        #expect(low.peerID < high.peerID)
        var (lower, lowCommit) = PairingStateMachine.ask(own: low, peer: high, nonce: .of(3), now: now)
        var (greater, highCommit) = PairingStateMachine.ask(own: high, peer: low, nonce: .of(4), now: now)
        func frames(_ actions: [PairingStateMachine.Action]) -> [Pairing] {
            actions.compactMap { if case .send(let frame) = $0 { frame } else { nil } }
        }

        let ignored = greater.received(try #require(frames(lowCommit).first), freshNonce: .of(7), now: now)
        #expect(ignored.isEmpty)
        let answer = lower.received(try #require(frames(highCommit).first), freshNonce: .of(8), now: now)
        #expect(
            frames(answer) == [Pairing(step: "nonce", nonce: PairingNonce.of(8).base64)], "a nonce of its own, never the one committed to")
        let revealed = greater.received(try #require(frames(answer).first), freshNonce: .of(7), now: now)
        let shown = lower.received(try #require(frames(revealed).first), freshNonce: .of(7), now: now)
        let digits = try #require(revealed.digits)
        #expect(shown.digits == digits)
        #expect(digits == PairingCode.digits(asker: high, asked: low, askerNonce: .of(4), askedNonce: .of(8)))

        // A second request during the first is an unexpected step.
        var (again, _) = PairingStateMachine.ask(own: high, peer: low, nonce: .of(4), now: now)
        #expect(again.received(frames(lowCommit)[0], freshNonce: .of(7), now: now).isEmpty)
        #expect(again.received(frames(lowCommit)[0], freshNonce: .of(7), now: now).end == .outOfOrder)
    }

    @Test("reflected frames have no effect", arguments: [true, false])
    func reflection(isGreater: Bool) throws {
        let (own, peer) = isGreater ? (PairingFixture.high, PairingFixture.low) : (PairingFixture.low, PairingFixture.high)
        let now = ContinuousClock.Instant.now
        var (machine, actions) = PairingStateMachine.ask(own: own, peer: peer, nonce: .of(3), now: now)
        var shown: [String] = []
        for _ in 0..<6 {
            var next: [PairingStateMachine.Action] = []
            for case .send(let frame) in actions { next += machine.received(frame, freshNonce: .of(4), now: now) }
            shown += [next.digits].compactMap { $0 }
            actions = next
        }
        #expect(shown.isEmpty)
        #expect(machine.confirm(digits: "000000").isEmpty)
        // The exchange, to which no answer comes, ends by timeout.
        #expect(machine.tick(now: now + .seconds(5)).end != .some(.rejected))
        #expect(machine.stage == .ended)
    }

    @Test("frames of an earlier exchange give other digits, or none")
    func replay() throws {
        let (low, high, now) = (PairingFixture.low, PairingFixture.high, ContinuousClock.Instant.now)
        var fixture = PairingFixture()
        let commit = fixture.toAsked[0]
        try fixture.deliverToAsked()
        let nonce = fixture.toAsking[0]
        try fixture.deliverToAsking()
        let reveal = fixture.toAsked[0]
        try fixture.deliver()
        let digits = try #require(fixture.askedActions.digits)

        // Replayed to the asked side, which has a new nonce.
        var (asked, _) = try #require(PairingStateMachine.answer(commit, own: high, peer: low, nonce: .of(5), now: now))
        let again = asked.received(reveal, freshNonce: .of(9), now: now)
        #expect(again.digits != nil && again.digits != digits)
        // Replayed to the asking side, which has a new nonce too.
        var (asking, _) = PairingStateMachine.ask(own: low, peer: high, nonce: .of(6), now: now)
        let answered = asking.received(nonce, freshNonce: .of(9), now: now)
        #expect(answered.digits != nil && answered.digits != digits)
        // A reveal that does not match the commitment.
        var (other, _) = try #require(
            PairingStateMachine.answer(
                Pairing(step: "commit", commitment: Base64.encode(PairingCode.commitment(nonce: .of(6), asker: low, asked: high))),
                own: high,
                peer: low, nonce: .of(5), now: now))
        #expect(other.received(reveal, freshNonce: .of(9), now: now).end == .badReveal)
    }

    @Test("timeouts: 5 s for each machine step, 2 min for users, 10 s more after a yes")
    func time() throws {
        var fixture = PairingFixture()
        #expect(fixture.asking.tick(now: fixture.start + .milliseconds(4_999)).isEmpty)
        #expect(fixture.asking.tick(now: fixture.start + .seconds(5)).last == .ended(.timedOut, isFailure: false))

        fixture = try .shown()
        #expect(fixture.asking.nextDeadline == fixture.start + .seconds(120))
        #expect(fixture.asking.tick(now: fixture.start + .seconds(119)).isEmpty)
        fixture.confirm(asking: true, try #require(fixture.askingActions.digits))
        #expect(fixture.asking.tick(now: fixture.start + .seconds(129)).isEmpty)
        fixture.atAsked { [start = fixture.start] in $0.tick(now: start + .seconds(120)) }
        #expect(fixture.askedActions.end == .timedOut && fixture.askedActions.isFailure)
        fixture.toAsked = []
        try fixture.deliver()
        // The other user did not answer in time. That counts as a failure, as a no does.
        #expect(fixture.askingActions.end == .timedOut && fixture.askingActions.isFailure)
        #expect(fixture.asking.tick(now: fixture.start + .seconds(1_000)).isEmpty)
    }

    @Test("the exchange ends with its session, which is no failure, and sends nothing more")
    func session() throws {
        var fixture = try PairingFixture.shown()
        #expect(fixture.asking.sessionEnded() == [.ended(.lost, isFailure: false)])
        #expect(fixture.asking.sessionEnded().isEmpty)
        #expect(fixture.asking.confirm(digits: "040660").isEmpty)
        #expect(fixture.asking.received(Pairing(step: "confirm"), freshNonce: .of(9), now: .now).isEmpty)
    }

    @Test("once this side's nonce was sent, a cancel or a missing reveal counts as giving up with known digits", arguments: [true, false])
    func givenUp(byCancel: Bool) throws {
        var fixture = PairingFixture()
        try fixture.deliverToAsked()
        fixture.toAsking = []
        if byCancel {
            fixture.toAsked = [Pairing(step: "cancel", message: "no")]
            try fixture.deliverToAsked()
        } else {
            fixture.atAsked { [start = fixture.start] in $0.tick(now: start + .seconds(5)) }
        }
        #expect(fixture.askedActions == [.ended(.givenUp, isFailure: false)])
        #expect(fixture.toAsking.map(\.step) == (byCancel ? [] : ["cancel"]))
    }

    @Test("a cancel before the digits means that the peer accepts no requests, and gets no reply")
    func notTaken() {
        var fixture = PairingFixture()
        let actions = fixture.asking.received(Pairing(step: "cancel", message: "no"), freshNonce: .of(9), now: fixture.start)
        #expect(actions == [.ended(.notTaken, isFailure: false)])
        #expect(PairingFixture().asking.stage == .opening)
        var withdrawn = PairingFixture()
        withdrawn.took(withdrawn.asking.reject(), isAsking: true)
        #expect(withdrawn.askingActions == [.ended(.withdrawn, isFailure: false)])
        #expect(withdrawn.toAsked.last?.step == "cancel")
    }
}
