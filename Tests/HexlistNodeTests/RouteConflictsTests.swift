import HexlistEnvelope
import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Identity conflicts in letters") struct RouteConflictsTests {
    private let day = RouteConflicts.pause

    @Test("a conflict lasts until a day after the last letter of the second machine, also in the next run") func life() throws {
        let peer = try #require(PeerID("5E3C0000-0000-8000-8000-000000000000"))
        var conflicts = RouteConflicts()
        func record(_ boot: UInt64, _ signedAt: UInt64, now: Int64) -> RouteConflicts.Change {
            conflicts.record(BootNonce(boot), of: peer, signedAt: signedAt, on: "office", now: now)
        }
        #expect(record(1, 10, now: 10) == .history)
        #expect(record(1, 20, now: 20) == .none)
        #expect(record(2, 30, now: 30) == .history)
        #expect(conflicts.route(of: peer, now: 30) == nil)
        #expect(record(1, 40, now: 40) == .conflict)
        #expect(conflicts.route(of: peer, now: 40) == "office" && conflicts.peers(on: "office", now: 40) == [peer])
        #expect(conflicts.peers(on: "home", now: 40).isEmpty)
        #expect(record(1, 45, now: 45) == .none, "the other machine is silent")
        #expect(record(2, 50, now: 50) == .history, "the same conflict, which is extended")
        let text = try #require(conflicts.text(of: peer))
        let later = RouteConflicts([peer: try #require(RouteConflicts.Entry(text: text))])
        #expect(later.text(of: peer) == text)
        for conflicts in [conflicts, later] {
            #expect(conflicts.route(of: peer, now: 49 + day) == "office")
            #expect(conflicts.route(of: peer, now: 50 + day) == nil)
            #expect(conflicts.route(of: peer, now: 49) == nil, "the clock was set back")
        }
        #expect(record(1, 60, now: 60 + day) == .conflict, "another conflict")
        conflicts.forget(peer)
        #expect(conflicts.route(of: peer, now: 61 + day) == nil && conflicts.text(of: peer) == nil)
    }

    @Test(
        "text of another form is not read",
        arguments: [
            "", "0000000000000001 1 0", "0000000000000001 1 0 - 5", "0000000000000001 1 0 - x office", "1 1 0 -", "0000000000000001 -1 0 -",
            "0000000000000001 1 x -", "0000000000000001 1 0 x",
        ])
    func malformed(_ text: String) { #expect(RouteConflicts.Entry(text: text) == nil) }

    @Test("the remaining machine of two is posted to after a day, although its letters continue") func resolved() throws {
        let peer = try #require(PeerID("5E3C0000-0000-8000-8000-000000000000"))
        var conflicts = RouteConflicts()
        for (boot, at) in [(1, 10), (2, 30), (1, 40)] as [(UInt64, Int64)] {
            _ = conflicts.record(BootNonce(boot), of: peer, signedAt: UInt64(at), on: "office", now: at)
        }
        for at in stride(from: 50, to: day, by: 3_600_000) {
            #expect(conflicts.record(BootNonce(1), of: peer, signedAt: UInt64(at), on: "office", now: at) == .none)
        }
        #expect(conflicts.route(of: peer, now: 40 + day) == nil)
        #expect(conflicts.record(BootNonce(2), of: peer, signedAt: 35, on: "office", now: 41 + day) == .none, "a letter that is read again")
    }
}
