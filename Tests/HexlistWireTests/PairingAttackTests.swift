import Foundation
import HexlistModel
import TestSupport
import Testing

@testable import HexlistWire

/// A machine in the middle: it terminates both sessions with keys of its own, made in advance, and wants both users to see the same digits.
///
/// HEXLIST_LONG_TESTS=1 runs 1 000 pairings with 10^6 keys and all six digits. Otherwise there are fewer keys and only the last digits
/// count, so that the control wins as easily.
@Suite("Pairing: a machine in the middle")
struct PairingAttackTests {
    static let keys = LongTests.areWanted ? 1_000_000 : 2_000
    static let pairings = LongTests.areWanted ? 1_000 : 100
    static let compared = LongTests.areWanted ? 6 : 3

    let alice = SessionFixture.key(1)
    let bob = SessionFixture.key(200)
    private var random = SeededGenerator(seed: 2_026)

    private func isMatch(_ left: String, _ right: String) -> Bool { left.suffix(Self.compared) == right.suffix(Self.compared) }

    private mutating func fingerprint() -> Fingerprint {
        let bytes = (0..<4).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
        guard let key = Fingerprint(bytes: bytes) else { fatalError("32 bytes are a fingerprint") }
        return key
    }

    /// Alice asks the attacker, whom she takes for Bob. Her reveal fixes the digits she shows.
    private mutating func askedByAlice(as key: Fingerprint) throws -> String {
        var (machine, commit) = PairingStateMachine.ask(own: alice, peer: key, nonce: PairingNonce(using: &random), now: .now)
        #expect(commit.count == 1)
        let nonce = PairingNonce(using: &random)
        return try #require(machine.received(Pairing(step: "nonce", nonce: nonce.base64), freshNonce: .of(9), now: .now).digits)
    }

    /// Asks Bob in Alice's name, with an honest commitment.
    private mutating func honest(as key: Fingerprint) throws -> String {
        let nonce = PairingNonce(using: &random)
        let commitment = Base64.encode(PairingCode.commitment(nonce: nonce, asker: key, asked: bob))
        var (machine, _) = try #require(
            PairingStateMachine.answer(
                Pairing(step: "commit", commitment: commitment), own: bob, peer: key, nonce: PairingNonce(using: &random), now: .now))
        return try #require(machine.received(Pairing(step: "reveal", nonce: nonce.base64), freshNonce: .of(9), now: .now).digits)
    }

    /// Searches for the nonce that makes Bob show these digits. Bob has already sent his own nonce.
    private mutating func grind(_ digits: String, as key: Fingerprint, against answer: PairingNonce, tries: Int) -> PairingNonce {
        var nonce = PairingNonce(using: &random)
        for _ in 0..<tries {
            guard !isMatch(PairingCode.digits(asker: key, asked: bob, askerNonce: nonce, askedNonce: answer), digits) else { break }
            nonce = PairingNonce(using: &random)
        }
        return nonce
    }

    /// Asks Bob with a meaningless commitment, receives his nonce, and only then chooses its own.
    private mutating func late(_ digits: String, as key: Fingerprint, tries: Int) throws -> [PairingStateMachine.Action] {
        let commitment = PairingNonce(using: &random).base64
        var (machine, actions) = try #require(
            PairingStateMachine.answer(
                Pairing(step: "commit", commitment: commitment), own: bob, peer: key, nonce: PairingNonce(using: &random), now: .now))
        guard case .send(let frame)? = actions.first, let answer = PairingNonce(base64: frame.nonce) else { return [] }
        let nonce = grind(digits, as: key, against: answer, tries: tries)
        return machine.received(Pairing(step: "reveal", nonce: nonce.base64), freshNonce: .of(9), now: .now)
    }

    @Test("never shows two users the same digits")
    mutating func middle() throws {
        // The attacker's keys by the digits that Bob would show if the nonces were the guessed ones, which they never are.
        var keys: [String: Fingerprint] = [:]
        var someKey = fingerprint()
        for _ in 0..<Self.keys {
            someKey = fingerprint()
            let guess = PairingCode.digits(asker: someKey, asked: bob, askerNonce: .of(0), askedNonce: .of(0))
            keys[String(guess.suffix(Self.compared))] = someKey
        }
        var matches = 0
        var refused = 0
        for _ in 0..<Self.pairings {
            let alices = try askedByAlice(as: fingerprint())
            let key = keys[String(alices.suffix(Self.compared))] ?? someKey
            if isMatch(try honest(as: key), alices) { matches += 1 }
            // A nonce that is chosen after the commitment does not match it, so the reveal is refused.
            if try late(alices, as: key, tries: 200).end == .badReveal { refused += 1 }
        }
        #expect(matches == 0)
        #expect(refused == Self.pairings)
    }

    @Test("would succeed without commitments")
    mutating func control() throws {
        let key = fingerprint()
        var wins = 0
        for _ in 0..<10 {
            let alices = try askedByAlice(as: key)
            // Bob without commitments: he shows the digits of any two nonces.
            let answer = PairingNonce(using: &random)
            let nonce = grind(alices, as: key, against: answer, tries: LongTests.areWanted ? Self.keys : 5_000)
            if isMatch(PairingCode.digits(asker: key, asked: bob, askerNonce: nonce, askedNonce: answer), alices) { wins += 1 }
            if LongTests.areWanted, wins > 0 { break }
        }
        #expect(wins > 0)
    }
}
