import DaemonTestSupport
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import Testing

@testable import HexlistDaemon

/// Own machines over the local API: two daemons with real TLS and stores.
@Suite("Own machines over the local API", .serialized, .timeLimit(.minutes(5)))
struct OwnMachineAPITests {
    private static func hex(_ title: String, _ links: [String]) -> [UInt8] {
        let urls = links.map { "\"https://a.example/\($0)\"" }.joined(separator: ",")
        return Array(#"{"description":"\#(title)","links":[\#(urls)]}"#.utf8)
    }

    /// Waits on the event stream until the other machine is in a state.
    @discardableResult
    private static func machine(_ daemon: TestDaemon, _ state: OwnMachineView.State) async throws -> OwnMachineView {
        var found: OwnMachineView?
        try await daemon.client.watchOwnMachines { machines in
            found = machines.first { $0.state.known == state }
            return found == nil
        }
        return try #require(found)
    }

    private static func trusting(_ one: TestDaemon, _ two: TestDaemon) async throws {
        for (here, there) in [(one, two), (two, one)] {
            try await here.awaitPeers(1)
            _ = try await here.client.trust(there.uuid, fingerprint: nil)
        }
    }

    private static func titles(_ daemon: TestDaemon) async throws -> [String] {
        try await daemon.client.hexes(.init(location: "mine"), limit: 20).items.map { "\($0.description) \($0.linkCount)" }.sorted()
    }

    @Test("nothing is exchanged before both users agreed; then both have one My Hexlist, until one removes the other")
    func agreement() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            try await one.awaitPeers(1)
            await #expect { _ = try await one.client.addOwnMachine("two") } throws: { ($0 as? HexlistError)?.code == .badRequest }
            await #expect { _ = try await one.client.addOwnMachine("nobody") } throws: { ($0 as? HexlistError)?.code == .notFound }
            try await Self.trusting(one, two)
            _ = try await one.client.addMine(Self.hex("Reading", ["1", "2"]), into: nil)
            _ = try await two.client.addMine(Self.hex("Reading", ["2", "3"]), into: nil)
            _ = try await two.client.addMine(Self.hex("Two", ["4"]), into: nil)
            #expect(try await one.client.ownMachines().isEmpty)
            let preview = try await one.client.previewOwnMachine("two")
            #expect(!preview.own && preview.online && preview.confirmed == false && preview.there == nil && preview.same == nil)
            #expect(preview.here == CollectionSize(hexes: 1, links: 2) && preview.problem == nil && preview.trustedThere == true)

            _ = try await one.client.addOwnMachine("two")
            let waiting = try await Self.machine(one, .waiting)
            #expect(waiting.uuid == two.node.id && waiting.label.shown == "two" && waiting.receivedAt == nil)
            #expect(try await one.client.peer("two").own)
            #expect(try await Self.titles(two) == ["Reading 2", "Two 1"])
            let other = try await two.client.previewOwnMachine("one")
            #expect(!other.own && other.confirmed == true && other.there == CollectionSize(hexes: 1, links: 2) && other.same == false)

            _ = try await two.client.addOwnMachine("one")
            for daemon in daemons {
                let synced = try await Self.machine(daemon, .inSync)
                #expect(synced.behind == 0)
                #expect(try await Self.titles(daemon) == ["Reading 3", "Two 1"])
                var paths: [String?] = []
                _ = try await daemon.client.events(.last(5), types: ["list.joined"], limit: 5) {
                    paths.append($0.data?.members?.first?.value.string)
                }
                #expect(paths.count == 1 && paths[0]?.contains("/before-join-") ?? false)
            }
            let again = try await two.client.addOwnMachine("one")
            #expect(again.uuid == one.node.id)

            let later = try await one.client.addMine(Self.hex("Later", ["5"]), into: nil)
            try await two.client.watchOwnMachines { _ in try await !Self.titles(two).contains("Later 1") }
            let change = try #require(try await two.client.mineLog(from: "one", limit: 1).items.first)
            #expect(change.by == one.node.id && change.tag?.alias == "one" && change.undoable && !change.joined)
            #expect(try await one.client.mineLog(hex: later.id, limit: 9).items.first?.by == nil)
            for own in ["here", "two", two.uuid, String(two.uuid.prefix(8))] {
                let changes = try await two.client.mineLog(from: own, limit: 20).items
                #expect(changes.count == 2 && changes.allSatisfy { $0.by == nil })
            }
            await #expect { _ = try await two.client.mineLog(from: "nobody", limit: 1) } throws: {
                ($0 as? HexlistError)?.code == .notFound
            }

            let removed = try await one.client.removeOwnMachine("two")
            #expect(removed.uuid == two.node.id && removed.state.known == .removed && removed.message == nil)
            #expect(try await Self.machine(two, .waiting).receivedAt != nil)
            await #expect { _ = try await one.client.removeOwnMachine("two") } throws: { ($0 as? HexlistError)?.code == .notFound }
            _ = try await two.client.addMine(Self.hex("Apart", ["6"]), into: nil)
            #expect(try await Self.titles(one) == ["Later 1", "Reading 3", "Two 1"])
            #expect(try await !one.client.peer("two").own)
            #expect(try await one.client.ownMachines().isEmpty)

            _ = try await two.client.untrust("one")
            #expect(try await two.client.ownMachines().isEmpty)
            await #expect { _ = try await two.client.previewOwnMachine("one") } throws: {
                ($0 as? HexlistError)?.code == .badRequest && ($0 as? HexlistError)?.message.contains("is not trusted") ?? false
            }
        }
    }

    @Test("a machine that is no longer trusted by the other one learns the reason") func untrusted() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            try await Self.trusting(one, two)
            _ = try await one.client.addOwnMachine("two")
            _ = try await two.client.addOwnMachine("one")
            try await Self.machine(one, .inSync)
            _ = try await two.client.untrust("one")
            var failed: OwnMachineView?
            try await one.client.watchOwnMachines { machines in
                failed = machines.first { $0.message?.contains("does not trust this machine") ?? false }
                return failed == nil
            }
            #expect(
                [.failed, .away].contains(failed?.state.known)
                    && failed?.message?.contains("hexlist own add \(one.uuid.prefix(8))") ?? false)
            let preview = try await one.client.previewOwnMachine("two")
            #expect(preview.trustedThere == false && preview.own && preview.confirmed == nil)
        }
    }

    @Test("a machine that deletes many links is reported, with the change to undo") func largeDeletion() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            try await Self.trusting(one, two)
            let hex = try await one.client.addMine(Self.hex("Many", (0..<150).map { "\($0)" }), into: nil)
            _ = try await one.client.addMine(Self.hex("Few", ["x"]), into: nil)
            _ = try await one.client.addOwnMachine("two")
            _ = try await two.client.addOwnMachine("one")
            try await Self.machine(one, .inSync)
            try await Self.machine(two, .inSync)
            _ = try await one.client.delete(.ids([hex.id]))
            var deletion: EventJSON?
            try await two.client.followEvents(.oldest, types: ["list.deleted"]) { event in
                deletion = event
                return false
            }
            let data = try #require(deletion?.data?.members)
            func value(_ name: String) -> String? { data.first { $0.name == name }?.value.string }
            #expect(deletion?.peer == one.node.id && value("links") == "150" && value("of") == "151")
            let change = try #require(value("changes").flatMap { Int64($0) })
            #expect(try await two.client.undoMine([change]).links == MineChangeCounts(restored: 150))
            try await one.client.watchOwnMachines { _ in try await Self.titles(one) != ["Few 1", "Many 150"] }
        }
    }
}

extension PeerDisplayName {
    fileprivate var shown: String { text() }
}
