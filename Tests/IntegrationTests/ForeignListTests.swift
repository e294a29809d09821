import Foundation
import HexlistModel
import TestSupport
import Testing

/// A machine written from Docs/Lists.md, Docs/Sharing.md and Docs/Protocol.md (Examples/foreign-list.py), and hexlistd, on loopback: an own
/// machine, and that of another person.
@Suite(
    "A machine with lists written from the pages", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Checkout.hasPrograms, "needs hexlistd and hexlist: build first"),
    .enabled(if: ForeignList.missing.isEmpty, "needs \(ForeignList.missing.joined(separator: " and "))"))
struct ForeignListTests {
    @Test(
        "it joins, changes and converges through cuts and a restart, whichever collection remains; a third machine gets everything",
        arguments: [false, true])
    func converges(foreignIsOlder: Bool) async throws {
        try await LocalDaemon.with { local in
            let foreign = ForeignList(folder: local.folder, name: "foreign")
            if foreignIsOlder { _ = try await foreign.identity() }
            try await local.running {
                let machine = try await local.machine()
                try await addDifferentHexes(local, foreign)
                try await join(foreign, local, machine)
                let list = try await foreign.shown()
                // Of each pair of equal hexes and links, only that of the older collection remains, at its place.
                #expect(
                    list.tree.map(\.hexDescription)
                        == (foreignIsOlder ? ["Field", "Common", "Old", "Desk"] : ["Field", "Old", "Desk", "Common"]))
                let common = list.tree.first { $0.hexDescription == "Common" }
                #expect(common?.links.map(\.url) == ["https://c.example/1", "https://c.example/2"])
                #expect(list.tree == (try await local.tree()))
                try await changeWhileApart(local, foreign)
            }
            // The daemon runs again, on the same store.
            try await local.running {
                let machine = try await local.machine()
                let events = try await foreign.exchange(machine.port, "--cut-in", "300", "--cut-out", "300")
                #expect(events.count { $0.event == "cut" } == 2)
                try await foreign.run("delete", "Field")
                try await local.succeed("mine", "edit", "2", "--description", "Desk 2")
                let inSync = try #require(try await foreign.exchange(machine.port).last { $0.event == "inSync" })
                let list = try await foreign.shown()
                #expect(inSync.digest == list.digest)
                try expectTheMergedTree(list)
                #expect(list.tree == (try await local.tree()))

                let third = ForeignList(folder: local.folder, name: "third")
                try await join(third, local, machine)
                let copy = try await third.shown()
                #expect(copy.digest == list.digest && copy.nodes == list.nodes)
                #expect(copy.tree == list.tree && copy.unknown == list.unknown)
            }
        }
    }

    @Test("changes of each side arrive on the other one while both are connected, and several pages in both directions")
    func connected() async throws {
        try await LocalDaemon.with { local in
            let foreign = ForeignList(folder: local.folder, name: "foreign")
            try await local.running {
                let machine = try await local.machine()
                let lines = (1...5).map { hex in
                    let links = (1...500).map { #"{"url":"https://d.example/\#(hex)/\#($0)"}"# }
                    return #"{"hexDescription":"desk \#(hex)","links":[\#(links.joined(separator: ","))]}"# + "\n"
                }
                try local.folder.write(lines.joined(), to: "hexes.ndjson")
                try await local.succeed("import", "\(local.folder.path)/hexes.ndjson")
                try await foreign.run("add", "--title", "field")
                try await foreign.run("add", "--in", "field", "--url", "https://f.example/", "--copies", "2500")
                try await join(foreign, local, machine)
                #expect(try await foreign.shown().nodes >= 5_000)
                #expect(try await local.tree() == foreign.shown().tree)

                // Both are connected while the desk adds a hex. Its node is the only change.
                try await foreign.running(machine.port) { running in
                    _ = try await running.event("inSync")
                    try await local.succeed("mine", "add", "--description", "later")
                    #expect(try await running.event("changed").nodes == 1)
                    _ = try await running.event("inSync")
                }
                #expect(try await local.tree() == foreign.shown().tree)
            }
        }
    }

    @Test("it joins a shared hex and changes it through cuts and a restart; rows of a later version reach another member unchanged")
    func member() async throws {
        try await LocalDaemon.with { local in
            let foreign = ForeignList(folder: local.folder, name: "foreign")
            try await local.running {
                let machine = try await local.machine()
                try await local.succeed("mine", "add", "--description", "Reading", "https://r.example/1 one", "https://r.example/2 two")
                let uuid = try await trust(foreign, local, machine)
                try await foreign.running(machine.port) { running in
                    _ = try await running.event("session")
                    try await local.succeed("mine", "share", "1", "--with", uuid, "--write")
                    // The daemon requests the overview because it shares a hex now, not after the Hello of a person without shared hexes.
                    #expect(try await running.events(before: "offered").count { $0.event == "overview" } <= 1)
                }
                try await foreign.run("join", "Reading")
                _ = try await foreign.exchange(machine.port)
                try await expectEqual("Reading", local, foreign)
                try await foreign.run("add", "--list", "Reading", "--title", "Inner")
                try await foreign.run("add", "--list", "Reading", "--in", "Inner", "--url", "https://f.example/1", "--register", "later=1")
                try await foreign.run("add", "--list", "Reading", "--in", "Inner", "--kind", "9", "--register", "later=1")
                try await foreign.run("delete", "--list", "Reading", "https://r.example/1")
                try await local.succeed("mine", "edit", "1", "--add", "https://r.example/3 three")
            }
            // The daemon runs again, on the same store.
            try await local.running {
                let machine = try await local.machine()
                let events = try await foreign.exchange(machine.port, "--cut-in", "300", "--cut-out", "300")
                #expect(events.count { $0.event == "cut" } == 2)
                let list = try await expectEqual("Reading", local, foreign)
                #expect(list.tree[0].links.map(\.url) == ["https://r.example/2", "https://r.example/3"])
                #expect(list.tree[0].children?.map(\.hexDescription) == ["Inner"])

                let reader = ForeignList(folder: local.folder, name: "reader")
                try await local.succeed("mine", "share", "1", "--with", try await trust(reader, local, machine))
                _ = try await reader.exchange(machine.port)
                try await reader.run("join", "Reading")
                _ = try await reader.exchange(machine.port)
                let copy = try #require(try await reader.shown().shared.first)
                #expect(copy.access == "read" && copy.digest == list.digest && copy.tree == list.tree)
                #expect(copy.unknown == list.unknown && copy.unknown.count == 1)
                try await loseAccess(foreign, local, machine, list)
            }
        }
    }

    @Test("hexlistd joins a hex that it shares, and changes it through cuts and a restart; rows of a later version reach an own machine")
    func owner() async throws {
        try await LocalDaemon.with { local in
            let foreign = ForeignList(folder: local.folder, name: "foreign")
            try await foreign.run("add", "--title", "Reading", "--register", "color=#112233")
            try await foreign.run("add", "--in", "Reading", "--url", "https://f.example/", "--copies", "2100")
            try await local.running {
                let machine = try await local.machine()
                try await trust(foreign, local, machine)
                try await foreign.run("share", "Reading", "--with", machine.uuid, "--access", "write")
                try await foreign.running(machine.port) { running in
                    try await Patience.until(or: "the hex is not offered") {
                        try await local.hexlist("mine", "join", "Reading", "--yes").status == 0
                    }
                    _ = try await running.event("inSync")
                }
                try await expectEqual("Reading", local, foreign)
                try await local.succeed("mine", "edit", "1", "--description", "Renamed", "--add", "https://d.example/1 one")
                try await foreign.run("add", "--list", "Reading", "--kind", "9", "--title", "later", "--register", "later=1")
                try await foreign.run("set", "--list", "Reading", "https://f.example/1", "--title", "first", "--register", "later=1")
            }
            // The daemon runs again, on the same store.
            try await local.running {
                let machine = try await local.machine()
                let events = try await foreign.exchange(machine.port, "--cut-in", "300", "--cut-out", "300")
                #expect(events.count { $0.event == "cut" } == 2)
                let list = try await expectEqual("Renamed", local, foreign)
                #expect(list.tree[0].links.count == 2_101 && list.unknown.count == 1)

                let desk = ForeignList(folder: local.folder, name: "desk")
                try await join(desk, local, machine)
                _ = try await desk.exchange(machine.port)
                let copy = try #require(try await desk.shown().shared.first)
                #expect(copy.digest == list.digest && copy.unknown == list.unknown)

                // Without the access to write, changes of both machines of the member are in one hex of My Hexlist.
                try await local.succeed("mine", "edit", "1", "--add", "https://d.example/late late")
                try await desk.run("add", "--list", "Renamed", "--url", "https://desk.example/late")
                try await foreign.run("share", "Renamed", "--with", machine.uuid, "--access", "read")
                _ = try await foreign.exchange(machine.port)
                let readOnly = try await expectEqual("Renamed", local, foreign)
                #expect(readOnly.digest == list.digest)
                _ = try await desk.exchange(machine.port)
                let rejected = try await desk.shown()
                #expect(rejected.shared.first?.digest == list.digest)
                let notAccepted = rejected.tree.filter { $0.hexDescription == "Renamed (not accepted)" }
                #expect(notAccepted.map { $0.links.map(\.url) } == [["https://d.example/late", "https://desk.example/late"]])
                let sameHex = try await local.tree().filter { $0.hexDescription == "Renamed (not accepted)" }
                #expect(sameHex == notAccepted)

                try await local.succeed("mine", "rm", "1", "--yes")
                let last = try await foreign.exchange(machine.port)
                #expect(last.contains { $0.event == "left" })
            }
        }
    }

    /// The member makes a change while the owner takes the access away, then the sharing ends, begins again, and the member leaves.
    private func loseAccess(_ foreign: ForeignList, _ local: LocalDaemon, _ machine: StatusRow, _ list: ForeignList.Shared) async throws {
        let uuid = try await foreign.identity()
        try await foreign.run("add", "--list", "Reading", "--in", "Inner", "--url", "https://f.example/late")
        try await local.succeed("mine", "share", "1", "--with", uuid)
        _ = try await foreign.exchange(machine.port)
        let readOnly = try await expectEqual("Reading", local, foreign)
        #expect(readOnly.digest == list.digest)
        let copies = try await foreign.shown().tree
        #expect(copies.map(\.hexDescription) == ["Reading (not accepted)"])
        #expect(copies.first?.children?.first?.links.map(\.url) == ["https://f.example/late"])

        try await local.succeed("mine", "unshare", "1", "--with", uuid)
        try await local.succeed("mine", "edit", "1", "--add", "https://r.example/4 four")
        _ = try await foreign.exchange(machine.port)
        let ended = try #require(try await foreign.shown().shared.first)
        #expect(ended.access == "none" && ended.digest == list.digest)

        try await local.succeed("mine", "share", "1", "--with", uuid, "--write")
        _ = try await foreign.exchange(machine.port)
        try await expectEqual("Reading", local, foreign)
        try await foreign.run("leave", "Reading")
        // It stays until the owner has read its overview: `exchange` may end while the overview is on its way.
        try await foreign.running(machine.port) { _ in
            try await Patience.until(or: "the member has not left") {
                try await local.hexlist("mine", "share", "1").out.contains(" left ")
            }
        }
    }

    /// Makes each trust the other, as machines of different persons.
    /// - Returns: the UUID of `foreign`.
    @discardableResult
    private func trust(_ foreign: ForeignList, _ local: LocalDaemon, _ machine: StatusRow) async throws -> String {
        let uuid = try await foreign.identity()
        try await foreign.run("trust", try await local.fingerprint())
        try await foreign.running(machine.port) { running in
            _ = try await running.event("session")
            try await local.succeed("peer", "trust", uuid)
        }
        return uuid
    }

    /// Expects that both have the same shared hex.
    @discardableResult
    private func expectEqual(_ title: String, _ local: LocalDaemon, _ foreign: ForeignList) async throws -> ForeignList.Shared {
        let shared = try #require(try await foreign.shown().shared.first)
        let hexes = try await local.tree().filter { $0.hexDescription == title }
        #expect(shared.title == title && shared.tree == hexes)
        return shared
    }

    private func addDifferentHexes(_ local: LocalDaemon, _ foreign: ForeignList) async throws {
        // The hexes get the numbers 1, 2 and 3.
        try await local.succeed("mine", "add", "--description", "Common", "https://c.example/1 one", "https://c.example/2 two")
        try await local.succeed("mine", "add", "--description", "Desk", "https://d.example/1 desk")
        try await local.succeed("mine", "add", "--description", "Old", "https://o.example/1 old")
        try await foreign.run("add", "--title", "Common", "--register", "color=#112233")
        try await foreign.run("add", "--in", "Common", "--url", "https://c.example/2", "--title", "zwei", "--register", #"later=ü"\"#)
        try await foreign.run("add", "--title", "Field")
        try await foreign.run("add", "--in", "Field", "--kind", "9", "--title", "of a later version", "--register", "later=1")
    }

    /// Makes the machines own machines of each other, and waits until they have one collection.
    private func join(_ foreign: ForeignList, _ local: LocalDaemon, _ machine: StatusRow) async throws {
        let uuid = try await foreign.identity()
        try await foreign.run("own", try await local.fingerprint())
        try await foreign.running(machine.port) { running in
            _ = try await running.event("session")
            try await local.succeed("peer", "trust", uuid)
            try await local.succeed("own", "add", uuid, "--yes", "--wait", "\(Patience.state)s")
            _ = try await running.event("inSync")
        }
    }

    private func changeWhileApart(_ local: LocalDaemon, _ foreign: ForeignList) async throws {
        // The later title wins, and the earlier one of two moves that would make a cycle.
        try await foreign.run("set", "Common", "--title", "of the field")
        try await local.succeed("mine", "edit", "1", "--description", "of the desk", "--add", "https://c.example/3 three")
        try await local.succeed("mine", "move", "2", "--in", "1")
        try await foreign.run("move", "of the field", "--in", "Desk")
        // A link in a hex that the other side deletes, and different values of one link and one hex.
        try await foreign.run("add", "--in", "Old", "--url", "https://o.example/2", "--title", "added")
        try await local.succeed("mine", "rm", "3", "--yes")
        try await foreign.run("set", "https://d.example/1", "--register", "later=2")
        try await local.succeed("mine", "tag", "2", "red")
        try await foreign.run("delete", "https://c.example/1")
        try await foreign.run("add", "--in", "Field", "--url", "https://f.example/1")
    }

    private func expectTheMergedTree(_ list: ForeignList.Shown) throws {
        // The ignored move is the later one. Its order key counts nevertheless, so the hex is the first.
        #expect(list.tree.map(\.hexDescription) == ["of the desk", "Old"])
        let common = try #require(list.tree.first)
        #expect(common.hexColor == "#112233")
        #expect(common.links.map(\.url) == ["https://c.example/2", "https://c.example/3"])
        #expect(common.links.map(\.linkDescription) == ["zwei", "three"])
        #expect(common.children?.map(\.hexDescription) == ["Desk 2"] && common.children?[0].tags == ["red"])
        #expect(list.tree.last?.links.map(\.url) == ["https://o.example/2"])
        // The hex with this node was deleted. The node is still there, with its register.
        #expect(list.unknown.count == 1 && list.unknown[0].contains(#","r":{"later":[["#))
    }
}

/// Examples/foreign-list.py with its state in a folder.
private struct ForeignList {
    /// A line of its output; of most lines only some members are decoded.
    struct Event: Decodable {
        var event: String
        var digest: String?
        /// The number of changed nodes in a `changed` line.
        var nodes: Int?
    }

    /// The output of `show`.
    struct Shown: Decodable {
        var digest: String
        var nodes: Int
        var tree: [HexText]
        /// The canonical form of the nodes of unknown kinds.
        var unknown: [String]
        var shared: [Shared]
    }

    /// A shared hex in the output of `show`.
    struct Shared: Decodable {
        var title: String
        var access: String
        var digest: String
        var tree: [HexText]
        var unknown: [String]
    }

    static let missing = ["python3", "openssl"].filter { Program.path(of: $0) == nil }

    let folder: TemporaryFolder
    let name: String

    private func command(_ arguments: [String]) -> [String] {
        ["\(Checkout.root)/Examples/foreign-list.py", "--state", "\(folder.path)/\(name)"] + arguments
    }

    @discardableResult
    func run(_ arguments: String...) async throws -> String { try await run(arguments) }

    private func run(_ arguments: [String]) async throws -> String {
        let output = try await Command.run(command(arguments))
        guard output.status == 0 else { throw Command.Failure("\(output)") }
        return output.out
    }

    /// The UUID. The first call creates the identity and the list.
    func identity() async throws -> String {
        struct Identity: Decodable { var uuid: String }
        return try JSONLines.decode(try await run("id"), as: Identity.self)[0].uuid
    }

    func shown() async throws -> Shown { try JSONDecoder().decode(Shown.self, from: Data(try await run("show").utf8)) }

    /// Exchanges until both sides have all changes of each other.
    func exchange(_ port: Int, _ arguments: String...) async throws -> [Event] {
        try JSONLines.decode(try await run(["exchange", "127.0.0.1", "\(port)"] + arguments))
    }

    /// Exchanges while `test` runs.
    func running(_ port: Int, test: (RunningCommand) async throws -> Void) async throws {
        let running = try RunningCommand(command(["exchange", "127.0.0.1", "\(port)", "--stay"]), seconds: Patience.server)
        do {
            try await test(running)
        } catch {
            await running.stop()
            throw error
        }
        #expect(await running.stop() == 0)
    }
}

extension RunningCommand {
    /// Waits for an event of Examples/foreign-list.py.
    fileprivate func event(_ name: String) async throws -> ForeignList.Event {
        try await first { line in
            let event = try? JSONDecoder().decode(ForeignList.Event.self, from: Data(line.utf8))
            return event?.event == name ? event : nil
        }
    }

    /// Waits for an event, and returns those before it.
    fileprivate func events(before name: String) async throws -> [ForeignList.Event] {
        var events: [ForeignList.Event] = []
        return try await first { line in
            guard let event = try? JSONDecoder().decode(ForeignList.Event.self, from: Data(line.utf8)) else { return nil }
            if event.event == name { return events }
            events.append(event)
            return nil
        }
    }
}

/// The members of a HexJM that both programs print.
private struct HexText: Decodable, Equatable {
    struct Link: Decodable, Equatable {
        var url: String
        var linkDescription: String
        var service: String
        var tags: [String]?
        var note: String?
    }

    var hexDescription: String
    var hexColor: String
    var tags: [String]?
    var note: String?
    var links: [Link]
    var children: [HexText]?
}

extension LocalDaemon {
    fileprivate func machine() async throws -> StatusRow {
        try JSONDecoder().decode(StatusRow.self, from: Data(try await hexlist("status", "--json").out.utf8))
    }

    fileprivate func fingerprint() async throws -> String {
        struct Identity: Decodable { var fingerprint: String }
        return try JSONLines.decode(try await hexlist("id", "--json").out, as: Identity.self)[0].fingerprint
    }

    fileprivate func succeed(_ arguments: String...) async throws {
        let output = try await Command.run([Checkout.hexlist] + arguments, environment: environment)
        guard output.status == 0 else { throw Command.Failure("\(output)") }
    }

    /// My Hexlist with everything inside, in order.
    fileprivate func tree() async throws -> [HexText] {
        try JSONLines.decode(try await hexlist("export", "--mine", "--format", "ndjson").out)
    }
}
