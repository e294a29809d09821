import HexlistModel
import Testing

@testable import HexlistStore

@Suite("Shares in the store", .timeLimit(.minutes(5))) struct ShareTests {
    @Test("a share is visible to the named peers and to members of its groups, and to none once these are gone")
    func audience() async throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        _ = try test.write { try $0.addToGroup("Family", [two.id]) }
        var row = ShareRow(name: "Photos", path: "/p", showsHidden: false, isForAll: false, peers: [one.id], groups: ["family"])
        _ = try await test.store.share(row)
        #expect(try test.read { try $0.shares() }.map(\.groups) == [["Family"]])
        #expect(try test.read { try $0.share("Photos", for: one.id) }?.path == "/p")
        #expect(try test.read { try $0.shares(for: two.id) }.map(\.name) == ["Photos"])
        for name in ["photos", "Photos ", "", "Photo"] { #expect(try test.read { try $0.share(name, for: one.id) } == nil) }
        _ = try await test.store.removeFromGroup("family", [two.id])
        #expect(try test.read { try $0.share("Photos", for: two.id) } == nil)
        _ = try test.write { try $0.addToGroup("family", [two.id]) }
        _ = try await test.store.deleteGroup("family")
        #expect(try test.read { try $0.share("Photos", for: two.id) } == nil)
        // A new group of the same name is another group.
        _ = try test.write { try $0.addToGroup("family", [two.id]) }
        #expect(try test.read { try $0.share("Photos", for: two.id) } == nil)
        // A second share replaces the recipients.
        (row.peers, row.groups, row.showsHidden) = ([two.id], [], true)
        _ = try await test.store.share(row)
        #expect(try test.read { try $0.share("Photos", for: one.id) } == nil)
        #expect(try test.read { try $0.share("Photos", for: two.id) }?.showsHidden == true)
        (row.peers, row.isForAll) = ([], true)
        _ = try await test.store.share(row)
        #expect(try test.read { try $0.shares(for: one.id) }.count == 1)
        #expect(try await test.store.endShare("Photos").path == "/p")
        #expect(try test.read { try $0.shares() }.isEmpty)
    }

    @Test("a name belongs to one folder; numbers are bounded; refused changes have no effect")
    func refused() async throws {
        let test = try TestStore()
        let row = ShareRow(name: "a", path: "/a", showsHidden: false, isForAll: true)
        _ = try await test.store.share(row)
        await #expect(throws: HexlistError.self) {
            try await test.store.share(ShareRow(name: "a", path: "/b", showsHidden: false, isForAll: true))
        }
        await #expect(throws: HexlistError.self) {
            try await test.store.share(ShareRow(name: "b", path: "/b", showsHidden: false, isForAll: false, groups: ["nobody"]))
        }
        await #expect(throws: HexlistError.self) { try await test.store.endShare("b") }
        for number in 1..<ShareRow.limit {
            _ = try await test.store.share(ShareRow(name: "s\(number)", path: "/s", showsHidden: false, isForAll: true))
        }
        await #expect(throws: HexlistError.self) {
            try await test.store.share(ShareRow(name: "last", path: "/s", showsHidden: false, isForAll: true))
        }
        #expect(try test.read { try $0.shares() }.count == ShareRow.limit)
    }
}
