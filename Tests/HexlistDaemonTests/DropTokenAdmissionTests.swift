import HexlistModel
import HexlistStore
import Testing

@testable import HexlistDaemon

/// The admission of requests with drop tokens: rates, and limits on wrong tokens.
@Suite("Drop gate") struct DropGateTests {
    private let start = ContinuousClock.now
    private let phone: IPAddress
    private let stranger: IPAddress

    init() throws { (phone, stranger) = (try #require(IPAddress("10.0.0.1")), try #require(IPAddress("10.0.0.2"))) }

    private func token(_ name: String, _ text: String) -> DropToken {
        DropToken(peer: PeerID(MessageID.random().uuid), name: name, sha256: GuestKey.hash(text), createdAt: 0)
    }

    private func status(_ admission: DropTokenAdmission.Admission) -> Int? {
        switch admission {
        case .admitted: nil
        case .refused(let refusal), .limitReached(let refusal): refusal.status
        }
    }

    @Test("each token is admitted as its own, until it is removed") func tokens() {
        let (first, second) = (token("first", "a"), token("second", "b"))
        var gate = DropTokenAdmission([first])
        gate.add(second)
        #expect(gate.admit("a", from: phone, now: start) == .admitted(first))
        #expect(gate.admit("b", from: phone, now: start) == .admitted(second))
        for wrong in ["", "A", "a ", "ab"] { #expect(status(gate.admit(wrong, from: phone, now: start)) == 403) }
        gate.remove(first.peer)
        #expect(status(gate.admit("a", from: phone, now: start)) == 403 && gate.count == 1)
    }

    @Test("a token is good for 60 requests in any hour, apart from other tokens") func rate() {
        var gate = DropTokenAdmission([token("first", "a"), token("second", "b")])
        func admits(_ text: String, at seconds: Int) -> Bool {
            guard case .admitted(let token) = gate.admit(text, from: phone, now: start + .seconds(seconds)) else { return false }
            gate.finish(token.peer)
            return true
        }
        for second in 0..<60 { #expect(admits("a", at: second * 10)) }
        #expect(!admits("a", at: 600) && !admits("a", at: 3_599))
        #expect(admits("b", at: 600))
        // Refused requests do not count: one place is free as soon as the first request is an hour old.
        #expect(admits("a", at: 3_600) && !admits("a", at: 3_601) && admits("a", at: 3_610))
        guard case .refused(let refusal) = gate.admit("a", from: phone, now: start + .seconds(3_611)) else {
            Issue.record("one request too many was admitted")
            return
        }
        #expect(refusal.status == 429 && refusal.message.contains("in 1 minutes"))
    }

    @Test("a token is good for eight requests at a time, apart from other tokens") func requestsAtOnce() {
        let (first, second) = (token("first", "a"), token("second", "b"))
        var gate = DropTokenAdmission([first, second])
        for _ in 0..<8 { #expect(gate.admit("a", from: phone, now: start) == .admitted(first)) }
        for _ in 0..<100 { #expect(status(gate.admit("a", from: stranger, now: start)) == 429) }
        #expect(gate.admit("b", from: phone, now: start) == .admitted(second))
        gate.finish(first.peer)
        #expect(gate.admit("a", from: phone, now: start) == .admitted(first), "refused requests do not count")
        #expect(status(gate.admit("a", from: phone, now: start)) == 429)
        gate.remove(first.peer)
        gate.finish(first.peer)
        #expect(gate.count == 1)
    }

    @Test("a token is good for 2 GiB in a day, apart from other tokens, until it is removed") func bytes() {
        let (first, second) = (token("first", "a"), token("second", "b"))
        var gate = DropTokenAdmission([first, second])
        let half = Int(DropTokenAdmission.bytesInDay / 2)
        #expect(gate.receive(half, of: first.peer, now: start) == nil)
        #expect(gate.receive(half - 1, of: first.peer, now: start + .seconds(3_600)) == nil)
        #expect(status(gate.admit("a", from: phone, now: start + .seconds(3_600))) == nil)
        let refusal = gate.receive(1, of: first.peer, now: start + .seconds(3_601))
        #expect(refusal?.status == 429 && refusal?.message.hasPrefix("2 GiB a day") == true)
        #expect(status(gate.admit("a", from: phone, now: start + .seconds(86_399))) == 429)
        #expect(status(gate.admit("b", from: phone, now: start + .seconds(86_399))) == nil)
        #expect(gate.receive(half, of: second.peer, now: start + .seconds(86_399)) == nil)
        #expect(status(gate.admit("a", from: phone, now: start + .seconds(86_400))) == nil)
        #expect(gate.receive(half, of: first.peer, now: start + .seconds(86_400)) == nil)
        gate.remove(first.peer)
        #expect(gate.receive(1, of: first.peer, now: start + .seconds(86_401))?.status == 403)
    }

    @Test("wrong tokens are limited for each address, and never keep out the right one") func wrongTokens() {
        var gate = DropTokenAdmission([token("first", "a")])
        for number in 1...DropTokenAdmission.wrongTokensInHour {
            let admission = gate.admit("x\(number)", from: stranger, now: start)
            #expect(status(admission) == 403)
            if case .limitReached = admission {
                #expect(number == DropTokenAdmission.wrongTokensInHour)
            } else {
                #expect(number < DropTokenAdmission.wrongTokensInHour)
            }
        }
        for _ in 0..<100 { #expect(status(gate.admit("x", from: stranger, now: start)) == 429) }
        #expect(status(gate.admit("x", from: phone, now: start)) == 403)
        #expect(status(gate.admit("a", from: phone, now: start)) == nil)
        // A right token is also accepted from the blocked address, because a stranger can have the same address as the phone.
        #expect(status(gate.admit("a", from: stranger, now: start)) == nil)
        #expect(status(gate.admit("x", from: stranger, now: start + .seconds(3_600))) == 403)
    }

    @Test("many addresses are reported once an hour") func reports() throws {
        var gate = DropTokenAdmission([token("first", "a")])
        var reports = 0
        for time in [start, start + .seconds(3_600)] {
            for number in 0..<100 {
                let address = try #require(IPAddress("10.1.0.\(number)"))
                for _ in 0...DropTokenAdmission.wrongTokensInHour {
                    if case .limitReached = gate.admit("x", from: address, now: time) { reports += 1 }
                }
            }
        }
        #expect(reports == 2)
    }

    @Test("the count of addresses is bounded") func addresses() throws {
        var gate = DropTokenAdmission([token("first", "a")])
        for number in 0..<10_000 {
            _ = gate.admit("x", from: try #require(IPAddress("10.1.\(number / 256).\(number % 256)")), now: start)
        }
        let mirror = Mirror(reflecting: gate).children.first { $0.label == "wrongTokens" }
        #expect((mirror?.value as? any Collection)?.count == 256)
        #expect(status(gate.admit("a", from: phone, now: start)) == nil)
    }
}
