import DaemonTestSupport
import HexlistAPI
import HexlistClient
import HexlistModel
import Testing

@testable import HexlistDaemon

/// The change log and the trash of My Hexlist over the local API.
@Suite("Change log and trash over the local API", .timeLimit(.minutes(5)))
struct MineHistoryTests {
    private static let hex = Array(#"{"description":"Reading","links":["https://a.example/1","https://a.example/2"]}"#.utf8)

    private func refused(_ code: HexlistError.Code, _ message: String, _ body: () async throws -> Void) async {
        let error = await #expect(throws: HexlistError.self) { try await body() }
        #expect(error?.code == code && error?.message == message, "\(String(describing: error))")
    }

    @Test("changes are listed, undone, and listed as undone") func undo() async throws {
        try await TestDaemon.with("ada") { daemons in
            let client = daemons[0].client
            let hex = try await client.addMine(Self.hex, into: nil)
            let edited = try await client.editMine(
                hex.id, MineEditRequest(description: "Books", tags: ["x"], links: [LinkEdit(from: 2, linkDescription: "Two")]))
            let log = try await client.mineLog(limit: 1)
            let change = try #require(log.items.first)
            #expect(edited.change == change.number)
            #expect(change.hex == hex.id && change.subject == "Books" && change.undoable && !change.undo && change.undoneBy == nil)
            #expect(change.hexes == MineChangeCounts(changed: 1) && change.links == MineChangeCounts(deleted: 1, changed: 1))
            #expect(change.values.contains(MineChangedValue(link: nil, name: "title", before: "Reading", after: "Books")))
            #expect(change.values.contains(MineChangedValue(link: "https://a.example/1", name: "deleted", before: "", after: "")))
            let rest = try await client.mineLog(limit: 5, after: log.next)
            #expect(rest.items.map(\.hexes) == [MineChangeCounts(added: 1)] && rest.items.map(\.links) == [MineChangeCounts(added: 2)])
            let undone = try await client.undoMine([change.number])
            #expect(undone.links == MineChangeCounts(restored: 1, changed: 1) && undone.keptCount == 0)
            let back = try await client.hex(hex.id)
            #expect(back.description == "Reading" && back.links?.map(\.url) == ["https://a.example/1", "https://a.example/2"])
            let of = try await client.mineLog(hex: hex.id, since: change.at, limit: 9).items
            #expect(of.prefix(2).map(\.undo) == [true, false] && of[1].undoneBy == undone.number && !of[1].undoable)
            await refused(.badRequest, "Change \(change.number) was already undone, by change \(undone.number).") {
                _ = try await client.undoMine([change.number])
            }
            await refused(.notFound, "There is no change 999 in the log.") { _ = try await client.undoMine([999]) }
            await refused(.notFound, "There is no hex 999 in My Hexlist.") { _ = try await client.mineLog(hex: 999, limit: 9) }
            await refused(.badRequest, "One request undoes 1 to 1000 changes; 0 were named.") { _ = try await client.undoMine([]) }
            await refused(.badRequest, "One request undoes 1 to 1000 changes; 1001 were named.") {
                _ = try await client.undoMine(Array(1...1_001))
            }
        }
    }

    @Test("deleted hexes and links are listed, restored and removed for good; the bin lists the hexes") func trash() async throws {
        try await TestDaemon.with("ada") { daemons in
            let client = daemons[0].client
            let (hex, other) = (try await client.addMine(Self.hex, into: nil), try await client.addMine(Self.hex, into: nil))
            _ = try await client.editMine(hex.id, MineEditRequest(links: [LinkEdit(from: 2)]))
            _ = try await client.delete(.ids([other.id]))
            let first = try await client.mineTrash(limit: 1)
            let next = try await client.mineTrash(limit: 9, after: first.next)
            let (deleted, link) = (try #require(first.items.first), try #require(next.items.first))
            #expect(
                deleted.hex == other.id && deleted.subject == "Reading" && deleted.links == 2 && deleted.url == nil && deleted.parent == nil
            )
            #expect(link.hex == nil && link.url == "https://a.example/1" && link.parent == hex.id && link.parentSubject == "Reading")
            #expect(deleted.ends.milliseconds - deleted.deletedAt.milliseconds == 60 * 86_400_000 && next.items.count == 1)
            #expect(try await client.binnedHexes(limit: 9).items.map(\.id) == [other.id])
            await refused(.notFound, "There is no item 999 in the trash.") {
                _ = try await client.restoreMine(numbers: [link.number, 999])
            }
            let restored = try await client.restoreMine(numbers: [link.number, deleted.number]).restored
            #expect(
                restored == [
                    RestoredItemJSON(number: link.number, hex: hex.id, link: 1, parent: nil, hexRestored: false),
                    RestoredItemJSON(number: deleted.number, hex: other.id, link: nil, parent: nil, hexRestored: false),
                ])
            #expect(try await client.hex(other.id).links?.count == 2)
            _ = try await client.delete(.ids([other.id, hex.id]))
            #expect(try await client.restoreMine(hex.id).id == hex.id)
            #expect(try await client.binnedHexes(limit: 1).next == nil)
            await refused(.notFound, "Hex 999 is not in the trash.") { _ = try await client.restoreMine(hexes: [other.id, 999]) }
            #expect(try await client.restoreMine(hexes: [other.id]).restored.map(\.hex) == [other.id])
            _ = try await client.delete(.ids([other.id]))
            _ = try await client.editMine(hex.id, MineEditRequest(links: [LinkEdit(from: 2)]))
            #expect(try await client.trashCount() == ChangeCountJSON(changed: 2, links: 1))
            _ = try await client.restoreMine(numbers: client.mineTrash(limit: 9).items.filter { $0.url != nil }.map(\.number))
            #expect(try await client.emptyTrash() == ChangeCountJSON(changed: 1))
            #expect(try await client.mineTrash(limit: 9).items.isEmpty)
            #expect(try await client.mineLog(limit: 9).items.isEmpty)
            await refused(.notFound, "Hex \(other.id) is not in the trash.") { _ = try await client.restoreMine(other.id) }
            await refused(.badRequest, "One request restores 1 to 1000 hexes and links; 0 were named.") {
                _ = try await client.restoreMine(numbers: [])
            }
        }
    }
}
