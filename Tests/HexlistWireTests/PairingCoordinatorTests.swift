import HexlistModel
import Testing

@testable import HexlistWire

/// A coordinator, a clock and any number of peers. Each peer's side of an exchange is a state machine of its own.
private struct Stage {
    /// Stands for a session.
    final class Token {}

    static let own = key(100)
    static let peer = key(7)

    var coordinator = PairingCoordinator(own: own)
    var now = ContinuousClock.Instant.now
    var random = SystemRandomNumberGenerator()
    /// The tokens of all sessions so far. They are retained, because another token could get the address of a freed one.
    var tokens: [Token] = []
    var out: [PairingCoordinator.Action] = []

    static func key(_ number: Int) -> Fingerprint {
        var bytes = [UInt8](repeating: 0, count: 32)
        bytes[0] = UInt8(truncatingIfNeeded: number >> 8)
        bytes[1] = UInt8(truncatingIfNeeded: number)
        guard let key = Fingerprint(bytes: bytes) else { fatalError("32 bytes are a fingerprint") }
        return key
    }

    mutating func session() -> ObjectIdentifier {
        let token = Token()
        tokens.append(token)
        return ObjectIdentifier(token)
    }

    mutating func did(_ actions: [PairingCoordinator.Action]) { out += actions }

    mutating func took() -> [PairingCoordinator.Action] {
        defer { out = [] }
        return out
    }

    mutating func open() { did(coordinator.open(now: now)) }

    mutating func ask(_ peer: Fingerprint = peer) -> Bool {
        guard let actions = coordinator.ask(peer.peerID, now: now) else { return false }
        did(actions)
        return true
    }

    mutating func receive(_ frame: Pairing, from peer: Fingerprint = peer, on session: ObjectIdentifier, canAnswer: Bool = true) {
        did(
            coordinator.received(
                frame, from: peer, on: session, canAnswer: canAnswer, freshNonce: PairingNonce(using: &random), now: now))
    }

    mutating func tick(_ seconds: Double = 0) {
        now += .milliseconds(Int64(seconds * 1_000))
        did(coordinator.tick(now: now))
    }

    /// A peer asks and follows the protocol.
    /// - Returns: its state machine; `nil` if it was refused.
    mutating func asked(by peer: Fingerprint = peer, on session: ObjectIdentifier) -> PairingStateMachine? {
        var (machine, actions) = PairingStateMachine.ask(own: peer, peer: Self.own, nonce: PairingNonce(using: &random), now: now)
        var taken = false
        for _ in 0..<2 {
            for case .send(let frame) in actions {
                receive(frame, from: peer, on: session)
                actions = []
                for case .send(let answer, session) in out {
                    taken = true
                    actions += machine.received(answer, freshNonce: PairingNonce(using: &random), now: now)
                }
                out.removeAll { if case .send = $0 { true } else { false } }
            }
        }
        return taken ? machine : nil
    }

    var digits: String? { coordinator.items.compactMap { if case .comparing(let digits) = $0.stage { digits } else { nil } }.first }
    var isOn: Bool { coordinator.openUntil != nil || coordinator.items.contains { $0.isOwn } }
}

/// The ways a peer can end an exchange once it has this side's nonce.
private enum GivingUp: CaseIterable {
    case cancel, close, stall, nonsense
}

extension Stage {
    /// The peer gives up on this session before its reveal.
    fileprivate mutating func giveUp(_ how: GivingUp, _ peer: Fingerprint, on session: ObjectIdentifier) {
        switch how {
        case .cancel: receive(Pairing(step: "cancel"), from: peer, on: session)
        case .close: did(coordinator.sessionEnded(session, now: now))
        case .stall: tick(5)
        case .nonsense: receive(Pairing(step: "nonce", nonce: commit.commitment), from: peer, on: session)
        }
    }

    /// Sends commits of these keys in turn and gives up each exchange once this side's nonce was sent.
    /// - Returns: the number of nonces received.
    fileprivate mutating func noncesGiven(to keys: [Fingerprint], _ how: GivingUp, times: Int = 100) -> Int {
        var nonces = 0
        for number in 0..<times {
            let (key, session) = (keys[number % keys.count], session())
            receive(commit, from: key, on: session)
            guard out.nonces(on: session) == 1 else { continue }
            nonces += 1
            giveUp(how, key, on: session)
        }
        return nonces
    }
}

extension [PairingCoordinator.Action] {
    /// Frames that contain this side's nonce.
    fileprivate func nonces(on session: ObjectIdentifier) -> Int {
        count { if case .send(let frame, session) = $0 { !frame.nonce.isEmpty } else { false } }
    }
    fileprivate var outcomes: [PairingCoordinator.FinishedPairing] {
        compactMap { if case .finished(let outcome) = $0 { outcome } else { nil } }
    }
    var prompts: Int { count { if case .shown = $0 { true } else { false } } }
    var refusals: Int { count { if case .refuse = $0 { true } else { false } } }
    var trusts: Int { count { if case .trust = $0 { true } else { false } } }
    fileprivate var results: [PairingCoordinator.FinishedPairing.Result] {
        compactMap { if case .finished(let outcome) = $0 { outcome.result } else { nil } }
    }
}

private let commit = Pairing(step: "commit", commitment: "dzxNRkEIm9SUOS2rf5DpVyi3T5IRYpQ3js0UQ2C9rYA=")

@Suite("Pairing: admission and limits")
struct PairingCoordinatorTests {
    @Test("while pairing is off requests are refused without state or timers")
    func off() {
        var stage = Stage()
        let session = stage.session()
        for step in ["commit", "nonce", "reveal", "confirm", "cancel", "other"] {
            stage.receive(Pairing(step: step, commitment: commit.commitment, nonce: commit.commitment), on: session)
        }
        #expect(stage.took() == Array(repeating: .refuse(session), count: 6))
        #expect(stage.coordinator.items.isEmpty && stage.coordinator.outcomes.isEmpty && stage.coordinator.nextDeadline == nil)
    }

    @Test("10 000 requests of 1 000 keys: none is shown while pairing is off; while it is on one at a time, and none after three failures")
    func flood() {
        var stage = Stage()
        let sessions = (0..<1_000).map { _ in stage.session() }
        for number in 0..<10_000 { stage.receive(commit, from: Stage.key(1_000 + number % 1_000), on: sessions[number % 1_000]) }
        #expect(stage.took().refusals == 10_000)

        stage.open()
        var (prompts, trusts, failures) = (0, 0, 0)
        for number in 0..<10_000 {
            _ = stage.asked(by: Stage.key(1_000 + number % 1_000), on: sessions[number % 1_000])
            #expect(stage.coordinator.items.count <= 1)
            let actions = stage.took()
            prompts += actions.prompts
            trusts += actions.trusts
            // The user answers each hundredth with no.
            if number % 100 == 99, let item = stage.coordinator.items.first {
                stage.did(stage.coordinator.reject(item.peer, now: stage.now) ?? [])
                failures += 1
            }
        }
        #expect(prompts == 3 && failures == 3 && trusts == 0)
        #expect(!stage.isOn)
        #expect(stage.coordinator.outcomes.count == 3)
    }

    @Test("the window is open for two minutes; an exchange in progress continues after it")
    func window() throws {
        var stage = Stage()
        stage.open()
        stage.tick(119)
        let session = stage.session()
        _ = try #require(stage.asked(on: session) as PairingStateMachine?)
        stage.tick(1)
        #expect(stage.coordinator.openUntil == nil)
        let digits = try #require(stage.digits)
        #expect(stage.coordinator.confirm(Stage.peer.peerID, digits: digits, number: nil, now: stage.now).0 == .accepted)
        stage.receive(Pairing(step: "confirm"), on: session)
        #expect(stage.took().trusts == 1)
        stage.receive(commit, from: Stage.key(8), on: stage.session())
        #expect(stage.took().refusals == 1)
    }

    @Test("one exchange at a time: others are refused, the first continues")
    func oneAtATime() throws {
        var stage = Stage()
        stage.open()
        let session = stage.session()
        _ = try #require(stage.asked(on: session) as PairingStateMachine?)
        #expect(stage.asked(by: Stage.key(8), on: stage.session()) == nil)
        #expect(stage.asked(on: stage.session()) == nil, "not even the same peer, on another session")
        #expect(stage.ask(Stage.key(8)) == false)
        #expect(stage.took().refusals == 2)
        #expect(stage.coordinator.items.map(\.peer) == [Stage.peer.peerID])
    }

    @Test("a frame on another session does not affect the exchange")
    func otherSession() throws {
        var stage = Stage()
        stage.open()
        let session = stage.session()
        _ = try #require(stage.asked(on: session) as PairingStateMachine?)
        let digits = try #require(stage.digits)
        _ = stage.coordinator.confirm(Stage.peer.peerID, digits: digits, number: nil, now: stage.now)
        let other = stage.session()
        for step in ["confirm", "cancel", "reveal"] { stage.receive(Pairing(step: step), from: Stage.key(8), on: other) }
        #expect(stage.took().trusts == 0)
        stage.receive(Pairing(step: "confirm"), on: session)
        #expect(
            stage.took().contains { if case .trust(Stage.peer.peerID, Stage.peer, _, _) = $0 { true } else { false } },
            "the whole key of the session")
    }

    @Test("the remaining tries are reported at each end: of the key, and until pairing turns off")
    func triesLeft() throws {
        var stage = Stage()
        stage.open()
        #expect(stage.coordinator.triesLeft == 3)
        for left in [2, 1, 0] {
            _ = try #require(stage.asked(on: stage.session()) as PairingStateMachine?)
            let rejected = stage.coordinator.reject(Stage.peer.peerID, now: stage.now)
            stage.did(try #require(rejected))
            #expect(stage.took().outcomes.map(\.triesLeft) == [left])
            #expect(stage.coordinator.triesLeft == left)
        }
        // The loss of a session is not counted as a failure of a key.
        stage.now += .seconds(601)
        stage.open()
        let session = stage.session()
        _ = try #require(stage.asked(on: session) as PairingStateMachine?)
        stage.did(stage.coordinator.sessionEnded(session, now: stage.now))
        #expect(stage.took().outcomes.map(\.triesLeft) == [nil])
    }

    @Test("this side's own request accepts that peer only, whichever asks first")
    func ownRequest() throws {
        var stage = Stage()
        #expect(stage.ask() == true)
        #expect(stage.took().contains(.reach(Stage.peer.peerID)))
        #expect(stage.asked(by: Stage.key(8), on: stage.session()) == nil)
        #expect(stage.ask(Stage.key(8)) == false, "one request at a time")
        let session = stage.session()
        _ = try #require(stage.asked(on: session) as PairingStateMachine?)
        #expect(stage.coordinator.items.first?.isOwn == true)
        #expect(
            stage.coordinator.begin(on: stage.session(), with: Stage.peer, nonce: PairingNonce(using: &stage.random), now: stage.now)
                .isEmpty)
    }

    @Test("an unanswered request is repeated every two seconds, for two minutes")
    func retry() throws {
        var stage = Stage()
        #expect(stage.ask() == true)
        let session = stage.session()
        var tries = 0
        for _ in 0..<60 {
            guard stage.took().contains(.reach(Stage.peer.peerID)) else { break }
            tries += 1
            stage.did(stage.coordinator.begin(on: session, with: Stage.peer, nonce: PairingNonce(using: &stage.random), now: stage.now))
            stage.receive(Pairing(step: "cancel", message: "not now"), on: session)
            #expect(stage.coordinator.items.first?.obstacle == .notTaken)
            stage.tick(2)
        }
        #expect(tries == 60)
        #expect(stage.took().results == [.expired(.notTaken)])
        #expect(!stage.isOn && stage.coordinator.failures == 0)
    }

    @Test("an exchange outlives its session: no failure, new digits on the remaining session; but only for a limited time")
    func survives() throws {
        var stage = Stage()
        #expect(stage.ask() == true)
        var seen: Set<String> = []
        var numbers: [Int] = []
        for round in 1...5 {
            #expect(stage.took().contains(.reach(Stage.peer.peerID)))
            let session = stage.session()
            stage.did(stage.coordinator.begin(on: session, with: Stage.peer, nonce: PairingNonce(using: &stage.random), now: stage.now))
            // An exchange protects its session from the first step on, because the other side may see the digits slightly earlier or later.
            #expect(stage.coordinator.hasExchange(on: session) && !stage.coordinator.hasExchange(on: stage.session()))
            stage.receive(Pairing(step: "nonce", nonce: commit.commitment), on: session)
            seen.insert(try #require(stage.digits))
            numbers.append(try #require(stage.coordinator.items.first?.number))
            #expect(stage.coordinator.hasExchange(on: session))
            _ = stage.took()
            stage.did(stage.coordinator.sessionEnded(session, now: stage.now))
            #expect(!stage.coordinator.hasExchange(on: session))
            #expect(stage.coordinator.failures == 0)
            if round < 5 {
                #expect(stage.coordinator.items.first?.obstacle == .lost)
                #expect(stage.coordinator.items.first?.number != numbers.last)
                #expect(stage.took().outcomes.map(\.isLast) == [false])
                stage.did(stage.coordinator.sessionsChanged(of: Stage.peer.peerID, now: stage.now))
            }
        }
        #expect(seen.count == 5 && numbers == numbers.sorted())
        // A machine that can cut sessions must not see digits without limit.
        let last = stage.took().outcomes
        #expect(last.map(\.result) == [.ended(.lost)] && last.map(\.isLast) == [true])
        #expect(!stage.isOn)
    }

    @Test("the window also closes for a peer that cuts its session whenever the digits do not fit")
    func cutsWindow() {
        var stage = Stage()
        stage.open()
        var prompts = 0
        for number in 0..<100 {
            let session = stage.session()
            guard stage.asked(by: Stage.key(number + 1_000), on: session) != nil else { break }
            prompts += stage.took().prompts
            stage.did(stage.coordinator.sessionEnded(session, now: stage.now))
            stage.tick(10)
        }
        #expect(prompts == 5)
        #expect(!stage.isOn)
    }

    @Test("after a session is lost during the comparison, its peer may come back; no other peer's digits are shown for ten seconds")
    func nobodySlipsIn() throws {
        var stage = Stage()
        stage.open()
        let session = stage.session()
        _ = try #require(stage.asked(on: session) as PairingStateMachine?)
        stage.did(stage.coordinator.sessionEnded(session, now: stage.now))
        stage.tick(9)
        #expect(stage.asked(by: Stage.key(8), on: stage.session()) == nil)
        #expect(stage.asked(on: stage.session()) != nil)
        stage.did(stage.coordinator.reject(Stage.peer.peerID, now: stage.now) ?? [])
        stage.tick(1)
        let other = stage.session()
        #expect(stage.asked(by: Stage.key(8), on: other) != nil)
        // A peer that the user names is expected.
        stage.did(stage.coordinator.sessionEnded(other, now: stage.now))
        #expect(stage.ask(Stage.key(9)) == true)
        #expect(stage.asked(by: Stage.key(9), on: stage.session()) != nil)
    }

    @Test("a request that has shown no digits gives way to the user's command, and ends with the window")
    func unseen() throws {
        var stage = Stage()
        stage.open()
        let session = stage.session()
        stage.receive(commit, from: Stage.key(8), on: session)
        #expect(stage.ask() == true)
        #expect(stage.took().contains { if case .send(let frame, session) = $0 { frame.step == "cancel" } else { false } })
        #expect(stage.coordinator.items.map(\.peer) == [Stage.peer.peerID])
        stage.did(stage.coordinator.reject(Stage.peer.peerID, now: stage.now) ?? [])

        stage.tick(118)
        stage.receive(commit, from: Stage.key(9), on: session)
        #expect(stage.coordinator.items.count == 1)
        stage.tick(2)
        #expect(stage.coordinator.items.isEmpty && !stage.isOn && stage.coordinator.failures == 0)
    }

    @Test("three failures of a key within ten minutes block it until they are over; other keys are accepted")
    func failuresPerKey() throws {
        var stage = Stage()
        for round in 0..<3 {
            stage.open()
            _ = try #require(stage.asked(on: stage.session()) as PairingStateMachine?, "\(round)")
            stage.did(stage.coordinator.reject(Stage.peer.peerID, now: stage.now) ?? [])
            _ = stage.took()
            stage.tick(121)
        }
        stage.open()
        #expect(stage.asked(on: stage.session()) == nil)
        #expect(stage.coordinator.mayTry(Stage.peer, now: stage.now) != nil)
        _ = try #require(stage.asked(by: Stage.key(8), on: stage.session()) as PairingStateMachine?)
        stage.did(stage.coordinator.reject(Stage.key(8).peerID, now: stage.now) ?? [])
        stage.tick(600 - 3 * 121)
        stage.open()
        #expect(stage.coordinator.mayTry(Stage.peer, now: stage.now) == nil)
        #expect(stage.asked(on: stage.session()) != nil)
    }

    @Test("the number of remembered keys is bounded; then no other key is accepted")
    func boundedKeys() {
        var stage = Stage()
        stage.coordinator.limits.failuresPerKey = 1
        var taken = 0
        for number in 0..<400 {
            if !stage.isOn { stage.open() }
            let key = Stage.key(1_000 + number)
            guard stage.asked(by: key, on: stage.session()) != nil else { continue }
            taken += 1
            stage.did(stage.coordinator.reject(key.peerID, now: stage.now) ?? [])
        }
        #expect(taken == 256)
        #expect(stage.coordinator.mayTry(Stage.key(1_000), now: stage.now) != nil, "the first one is still known")
        stage.now += .seconds(601)
        stage.open()
        #expect(stage.asked(by: Stage.key(9_000), on: stage.session()) != nil)
    }

    @Test("wrong digits, a no, giving up, a timeout and an unexpected step count as failures once digits were shown", arguments: 0..<6)
    func whatFails(how: Int) throws {
        var stage = Stage()
        stage.open()
        let session = stage.session()
        _ = try #require(stage.asked(on: session) as PairingStateMachine?)
        switch how {
        case 0: stage.did(stage.coordinator.confirm(Stage.peer.peerID, digits: "x", number: nil, now: stage.now).1)
        case 1: stage.did(stage.coordinator.reject(Stage.peer.peerID, now: stage.now) ?? [])
        case 2: stage.receive(Pairing(step: "cancel"), on: session)
        case 3: stage.tick(121)
        case 4: stage.receive(Pairing(step: "nonce"), on: session)
        default: stage.did(stage.coordinator.close(now: stage.now))
        }
        #expect(stage.coordinator.failures == 1)
        #expect(stage.coordinator.items.isEmpty)
        #expect(stage.took().trusts == 0)
    }

    @Test("an exchange without digits is no failure and causes no prompt, but is reported", arguments: GivingUp.allCases)
    fileprivate func whatDoesNotFail(how: GivingUp) {
        var stage = Stage()
        stage.open()
        let session = stage.session()
        stage.receive(commit, on: session)
        #expect(stage.coordinator.items.count == 1)
        stage.giveUp(how, Stage.peer, on: session)
        #expect(stage.coordinator.failures == 0 && stage.coordinator.items.isEmpty)
        let end: PairingStateMachine.EndReason =
            switch how {
            case .cancel, .stall: .givenUp
            case .close: .lost
            case .nonsense: .outOfOrder
            }
        let told = stage.took()
        #expect(told.prompts == 0 && told.results == [.ended(end)] && told.outcomes.map(\.isLast) == [false])
        #expect(stage.coordinator.outcomes.map(\.result) == [.ended(end)])
        #expect(stage.asked(by: Stage.key(8), on: stage.session()) != nil)
    }

    @Test(
        "five nonces are sent while pairing is on, for 50 keys that give up; then it turns off and reports that",
        arguments: GivingUp.allCases)
    fileprivate func manyKeysGiveUp(how: GivingUp) {
        var stage = Stage()
        stage.open()
        #expect(stage.noncesGiven(to: (0..<50).map { Stage.key(1_000 + $0) }, how) == 5)
        #expect(!stage.isOn)
        let told = stage.took()
        #expect(told.outcomes.map(\.isLast) == [false, false, false, false, true])
        #expect(stage.coordinator.outcomes.count == 5 && told.refusals == 95)
        // The user's next command starts another request.
        stage.open()
        #expect(stage.noncesGiven(to: (50..<100).map { Stage.key(1_000 + $0) }, how) == 5)
    }

    @Test("one key gets three nonces, because giving up is a failure of the key; all five if its sessions are lost")
    func oneKeyGivesUp() {
        for how in GivingUp.allCases {
            var stage = Stage()
            stage.open()
            #expect(stage.noncesGiven(to: [Stage.peer], how) == (how == .close ? 5 : 3))
            #expect((stage.coordinator.mayTry(Stage.peer, now: stage.now) == nil) == (how == .close))
            #expect(stage.isOn == (how != .close), "others may go on")
        }
    }

    @Test("a request to one peer has as many tries, and its end is reported", arguments: GivingUp.allCases)
    fileprivate func namedGivesUp(how: GivingUp) {
        var stage = Stage()
        #expect(stage.ask() == true)
        #expect(stage.noncesGiven(to: [Stage.peer], how) == (how == .close ? 5 : 3))
        #expect(!stage.isOn)
        let told = stage.took().outcomes
        #expect(told.count(where: \.isLast) == 1 && told.last?.isLast == true && told.last?.isOwn == true)
        #expect(Set(told.map(\.number)).count == told.count)
    }

    @Test("a request to one peer accepts no other's commit, which uses no try: the two pair regardless")
    func namedHearsNobodyElse() throws {
        for isAsked in [true, false] {
            var stage = Stage()
            #expect(stage.ask() == true)
            _ = stage.took()
            #expect(stage.noncesGiven(to: (0..<50).map { Stage.key(1_000 + $0) }, .cancel) == 0)
            #expect(stage.took() == stage.tokens.map { .refuse(ObjectIdentifier($0)) })
            #expect(stage.coordinator.outcomes.isEmpty)
            let session = stage.session()
            if isAsked {
                _ = try #require(stage.asked(on: session) as PairingStateMachine?)
            } else {
                stage.did(stage.coordinator.begin(on: session, with: Stage.peer, nonce: PairingNonce(using: &stage.random), now: stage.now))
                stage.receive(Pairing(step: "nonce", nonce: commit.commitment), on: session)
            }
            #expect(stage.noncesGiven(to: (0..<50).map { Stage.key(1_000 + $0) }, .cancel) == 0)
            let digits = try #require(stage.digits)
            stage.did(stage.coordinator.confirm(Stage.peer.peerID, digits: digits, number: nil, now: stage.now).1)
            stage.receive(Pairing(step: "confirm"), on: session)
            #expect(stage.took().trusts == 1)
        }
    }

    @Test("the fifth exchange may still lead to trust, and so may a request after the fifth exchange of another")
    func fifth() throws {
        for isNewRequest in [false, true] {
            var stage = Stage()
            stage.open()
            for number in 0..<(isNewRequest ? 5 : 4) { _ = stage.noncesGiven(to: [Stage.key(1_000 + number)], .nonsense, times: 1) }
            #expect(stage.isOn == !isNewRequest)
            if isNewRequest { #expect(stage.ask() == true) }
            let session = stage.session()
            _ = try #require(stage.asked(on: session) as PairingStateMachine?)
            _ = stage.took()
            stage.receive(Pairing(step: "confirm"), on: session)
            stage.did(stage.coordinator.confirm(Stage.peer.peerID, digits: try #require(stage.digits), number: nil, now: stage.now).1)
            #expect(stage.took().trusts == 1)
        }
    }

    @Test("digits still shown when a user starts again count as one of the new five")
    func runsOn() throws {
        var stage = Stage()
        stage.open()
        stage.tick(119)
        let session = stage.session()
        _ = try #require(stage.asked(on: session) as PairingStateMachine?)
        stage.tick(1)
        #expect(!stage.isOn)
        stage.open()
        stage.did(stage.coordinator.sessionEnded(session, now: stage.now))
        stage.tick(10)
        #expect(stage.noncesGiven(to: (0..<50).map { Stage.key(1_000 + $0) }, .close) == 4)
    }

    @Test("an answer to outdated digits is not a failure; an answer without digits is ignored")
    func outdated() throws {
        var stage = Stage()
        stage.open()
        #expect(stage.coordinator.confirm(Stage.peer.peerID, digits: "123456", number: nil, now: stage.now).0 == .noDigits)
        let first = stage.session()
        _ = try #require(stage.asked(on: first) as PairingStateMachine?)
        let (old, number) = (try #require(stage.digits), try #require(stage.coordinator.items.first?.number))
        stage.did(stage.coordinator.sessionEnded(first, now: stage.now))
        #expect(stage.coordinator.confirm(Stage.peer.peerID, digits: old, number: number, now: stage.now).0 == .outdated)
        _ = try #require(stage.asked(on: stage.session()) as PairingStateMachine?)
        #expect(stage.coordinator.confirm(Stage.peer.peerID, digits: old, number: number, now: stage.now).0 == .outdated)
        #expect(stage.coordinator.failures == 0 && stage.digits != nil)
        #expect(stage.coordinator.confirm(Stage.key(8).peerID, digits: old, number: nil, now: stage.now).0 == .noDigits)
    }

    @Test("a peer that does not read gets no more frames")
    func cannotAnswer() {
        var stage = Stage()
        stage.open()
        stage.receive(commit, on: stage.session(), canAnswer: false)
        #expect(stage.took().refusals == 1)
        #expect(stage.coordinator.items.isEmpty)
    }

    @Test("pairing is off after a success, which is reported once the store has committed", arguments: [nil, "the disk is full"])
    func success(failure: String?) throws {
        var stage = Stage()
        stage.open()
        let session = stage.session()
        _ = try #require(stage.asked(on: session) as PairingStateMachine?)
        let digits = try #require(stage.digits)
        stage.receive(Pairing(step: "confirm"), on: session)
        #expect(stage.took().trusts == 0, "the other one's yes alone is nothing")
        stage.did(stage.coordinator.confirm(Stage.peer.peerID, digits: digits, number: 1, now: stage.now).1)
        let actions = stage.took()
        #expect(actions.trusts == 1 && actions.results.isEmpty)
        #expect(!stage.isOn)
        stage.did(stage.coordinator.stored(1, failure: failure))
        #expect(stage.took().results == [failure.map { .notStored($0) } ?? .paired])
    }

    @Test("the number of kept results is small")
    func outcomes() {
        var stage = Stage()
        for number in 0..<100 {
            stage.now += .seconds(1)
            #expect(stage.ask(Stage.key(number + 1_000)) == true)
            stage.did(stage.coordinator.reject(Stage.key(number + 1_000).peerID, now: stage.now) ?? [])
        }
        #expect(stage.coordinator.outcomes.count == 8)
    }
}
