import Foundation
import HexlistModel
import Testing

extension StrangeMachines {
    /// A sender that implements only the frames (Examples/foreign-sender.py).
    @Suite("A foreign program")
    struct ForeignProgram {
        private static let program = "\(Checkout.root)/Examples/foreign-sender.py"

        /// The first line the program prints.
        private struct Identity: Decodable {
            var uuid: String
        }

        /// A frame of the original app: no messageID, no sequence, no reply expected.
        private static let original =
            #"{"versionID":"1.4.2","operationType":"Store","jmObjectType":"Hex","jmObject":{"senderUUID":"6F9619FF-8B86-4011-B42D-00CF4FC964FF","#
            + ##""senderName":"Ada L.","hexDescription":"reading list","hexColor":"#3366CC","##
            + #""links":[{"url":"https://example.org/a","linkDescription":"A","service":"Dropbox"}],"mood":"sunny"}}"#

        @Test("a frame without Hello, over TLS, is held under its key; trusting the key accepts it")
        func withoutHello() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.start("h1")
                let port = try await lab.status("h1").port
                let sent = try await lab.run(["exec", "h2", Self.program, try await lab.path("address", on: "h1"), "\(port)"])
                let uuid = try #require(try JSONLines.decode(String(sent.out.prefix { $0 != "\n" }), as: Identity.self).first).uuid
                #expect(PeerID(uuid) != nil)
                // The frame has a `sequence`, so it gets a receipt.
                #expect(sent.out.contains("\"held\""))

                let held: [HexRow] = try await lab.rows("h1", "inbox", "--held")
                #expect(held.map(\.description) == ["Where names come from"])
                #expect(held.map(\.peerUUID) == [uuid])
                #expect(held.map(\.senderName) == ["A foreign program"])
                #expect(held.map(\.linkCount) == [2])
                try await lab.hexlist("h1", "peer", "trust", uuid)
                let inbox: [HexRow] = try await lab.rows("h1", "inbox")
                #expect(inbox.map(\.description) == ["Where names come from"])
            }
        }

        @Test("the original app's frame, over TLS, is held too")
        func originalFrameOnTLS() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.start("h1")
                try await send("h2", to: "h1", [], lab)
                try await lab.awaitEvent("h1", "hex.held")
                try await expectTheOriginalHex(lab)
            }
        }

        @Test("with `transport: tls+plain` a plain TCP frame of the original app is held")
        func plain() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.configure("h1", "name: h1\ntransport: tls+plain\n")
                try await lab.start("h1")
                try await send("h2", to: "h1", ["--plain"], lab)
                try await lab.awaitEvent("h1", "hex.held")
                let hex = try await expectTheOriginalHex(lab)
                // Held hexes of an address are accepted one at a time, because an address cannot be trusted.
                try await lab.hexlist("h1", "accept", "\(hex.id)")
                let inbox: [HexRow] = try await lab.rows("h1", "inbox")
                #expect(inbox.map(\.description) == ["reading list"])
            }
        }

        @Test("with `transport: tls`, the default, plain TCP is closed and nothing is stored")
        func plainIsRefused() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.start("h1")
                try await send("h2", to: "h1", ["--plain"], lab)
                try await send("h2", to: "h1", [], lab)
                // The second hex, sent over TLS, is held. If the first one had been accepted, it would be held by now, too.
                try await lab.awaitEvent("h1", "hex.held")
                #expect(try await lab.status("h1").held == 1)
            }
        }

        @Test("invalid bytes end their own connection and affect no other")
        func garbage() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.configure("h1", "name: h1\ntransport: tls+plain\n")
                let uuid = try await lab.startAndMeet()
                try await lab.hexlist("h1", "peer", "trust", uuid.other)
                let before = try await lab.status("h1").pid
                for arguments in [[], ["--plain"]] {
                    let lines = ["{", "\u{FEFF}[]", String(repeating: "[", count: 4_000), "null", #"{"operationType":7}"#].joined(
                        separator: "\n")
                    try await send("h2", to: "h1", arguments, frames: lines, lab)
                }
                let port = try await lab.status("h1").port
                let address = try await lab.path("address", on: "h1")
                // A length of nearly 4 GiB, an HTTP request, and no bytes at all.
                for bytes in ["\\377\\377\\377\\377", "GET / HTTP/1.1\\r\\n\\r\\n", ""] {
                    let script = "exec 3<>/dev/tcp/\(address)/\(port) && printf '\(bytes)' >&3; exec 3>&-"
                    try await lab.run(["exec", "h2", "bash", "-c", script], expecting: nil)
                }
                #expect(try await lab.status("h1").pid == before)
                #expect(try await lab.status("h1").held == 0)
                try await lab.hexlist("h2", "send", "--to", uuid.one, "https://example.org/still-here")
            }
        }

        private func send(_ from: String, to host: String, _ arguments: [String], frames: String = original, _ lab: Lab) async throws {
            let address = try await lab.path("address", on: host)
            let port = try await lab.status(host).port
            // The exit status does not matter, because the other side may close before everything is written.
            try await lab.run(
                ["exec", from, Self.program, address, "\(port)", "--frames"] + arguments, input: Array("\(frames)\n".utf8), expecting: nil)
        }

        @discardableResult
        private func expectTheOriginalHex(_ lab: Lab) async throws -> HexRow {
            let held: [HexRow] = try await lab.rows("h1", "inbox", "--held")
            #expect(held.count == 1)
            let shown = try await lab.show("h1", try #require(held.first).id)
            #expect(shown.row.description == "reading list")
            #expect(shown.row.senderName == "Ada L.")
            #expect(shown.row.senderUUID == "6F9619FF-8B86-4011-B42D-00CF4FC964FF")
            #expect(shown.row.links == [LinkRow(url: "https://example.org/a", linkDescription: "A", service: "Dropbox")])
            #expect(shown.json.contains(#""mood":"sunny""#))
            return shown.row
        }
    }
}

/// A complete peer written from Docs/Protocol.md alone (Examples/foreign-peer.py), and hexlistd, on loopback.
@Suite(
    "A peer written from the page", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Checkout.hasPrograms, "needs hexlistd and hexlist: build first"),
    .enabled(if: ForeignPeer.missing.isEmpty, "needs \(ForeignPeer.missing.joined(separator: " and "))"))
struct ForeignProgramPeerTests {
    @Test("it requests pairing; then 1 000 hexes travel each way and are stored once, also if they are resent")
    func pairsAndExchanges() async throws {
        try await LocalDaemon.with(environment: ["NO_COLOR": "1"]) { local in
            let foreign = ForeignPeer(folder: local.folder)
            let uuid = try await foreign.uuid()
            let hexes = try foreign.writeHexes(1_000)
            try await local.running {
                let status = try await local.status()
                try await pair(foreign, uuid, with: local, port: status.port)
                #expect(try await local.trust(of: uuid) == "trusted")
                #expect(try foreign.trusted().contains(status.uuid))

                #expect(try await foreign.send(toPort: status.port) == ["stored": 1_000])
                #expect(try await foreign.send(toPort: status.port) == ["duplicate of stored": 1_000])
                #expect(try await local.inbox() == hexes)
            }
            try await foreign.listening { port in
                try local.configure(peerAt: port)
                try await local.running {
                    try await local.send(to: uuid, foreign.hexes)
                    try await local.awaitDelivered()
                    #expect(try foreign.kept() == hexes.map { "stored \($0)" })
                }
            }
        }
    }

    @Test("it refuses temporarily three times: hexlistd's hexes arrive all the same, once each, in order")
    func refuses() async throws {
        try await LocalDaemon.with { local in
            let foreign = ForeignPeer(folder: local.folder)
            let uuid = try await foreign.uuid()
            let hexes = try foreign.writeHexes(20)
            try await foreign.listening("--refuse", "3") { port in
                try local.configure(peerAt: port)
                try await local.running {
                    try await local.send(to: uuid, foreign.hexes)
                    // Waits for three refusals, each with a retryAfter of 5 s.
                    try await Patience.until(or: "no hex was refused") {
                        try await local.outbox().contains { $0.lastError?.contains("quotaExceeded") == true }
                    }
                    try await local.awaitDelivered()
                    #expect(try foreign.kept() == hexes.map { "held \($0)" })
                }
            }
        }
    }

    /// The foreign peer requests pairing, on a terminal. hexlistd's side is a script.
    private func pair(_ foreign: ForeignPeer, _ uuid: String, with local: LocalDaemon, port: Int) async throws {
        let taking = try RunningCommand([Checkout.hexlist, "pair", "--json"], environment: local.environment)
        async let asking = TerminalCommand.run(
            foreign.command(["pair", "127.0.0.1", "\(port)"]), environment: [:], steps: [.init(wait: #""event": "digits""#, type: "yes\n")])
        let shown = try await taking.first { JSONLines.member("state", of: $0) == #""comparing""# ? $0 : nil }
        let digits = try #require(JSONLines.member("digits", of: shown)).replacing("\"", with: "")
        let confirmed = try await local.hexlist("pair", "--confirm", uuid, digits)
        #expect(confirmed.status == 0, "\(confirmed)")
        let asked = try await asking
        #expect(asked.status == 0, "\(asked)")
        #expect(asked.out.contains(#""digits": "\#(digits)""#), "\(asked)")
        #expect(await taking.status() == 0)
    }
}

/// Examples/foreign-peer.py with its state in a folder.
private struct ForeignPeer {
    /// A line of its output; of most lines only some members are decoded.
    private struct Event: Decodable {
        var event: String
        /// The port in a `listening` line.
        var port: Int?
        /// The counts in a `summary` line.
        var counts: [String: Int]?
    }

    static let missing = ["python3", "openssl"].filter { Program.path(of: $0) == nil }

    let folder: TemporaryFolder

    var hexes: String { "\(folder.path)/hexes" }

    func command(_ arguments: [String]) -> [String] {
        ["\(Checkout.root)/Examples/foreign-peer.py", "--state", "\(folder.path)/foreign"] + arguments
    }

    private func run(_ arguments: String...) async throws -> Command.Output {
        let output = try await Command.run(command(arguments))
        #expect(output.status == 0, "\(output)")
        return output
    }

    func uuid() async throws -> String {
        struct Identity: Decodable { var uuid: String }
        return try #require(try JSONLines.decode(try await run("id").out, as: Identity.self).first).uuid
    }

    /// Writes a file of HexJMs, one per line.
    /// - Returns: their descriptions.
    func writeHexes(_ count: Int) throws -> [String] {
        let descriptions = (1...count).map { "hex \($0)" }
        try folder.write(
            descriptions.map { #"{"hexDescription":"\#($0)","links":[{"url":"https://example.org/a"}]}"# + "\n" }.joined(), to: "hexes")
        return descriptions
    }

    /// Sends the hexes of the file that `writeHexes` wrote.
    /// - Returns: the number of hexes in each final state.
    func send(toPort port: Int) async throws -> [String: Int]? {
        let output = try await run("send", "127.0.0.1", "\(port)", hexes)
        return try JSONLines.decode(output.out, as: Event.self).last?.counts
    }

    /// Runs the peer as a listener while `test` runs.
    func listening(_ arguments: String..., test: (_ port: Int) async throws -> Void) async throws {
        let running = try RunningCommand(command(["listen"] + arguments), seconds: Patience.server)
        do {
            try await test(try await running.first { try? JSONDecoder().decode(Event.self, from: Data($0.utf8)).port })
        } catch {
            await running.stop()
            throw error
        }
        await running.stop()
    }

    /// State and description of each stored hex, in order.
    func kept() throws -> [String] {
        struct Line: Decodable {
            struct Hex: Decodable { var hexDescription: String }
            /// The state and the hex. A line about moved held hexes has neither.
            var state: String?
            var hex: Hex?
        }
        return try JSONLines.decode(try folder.text("foreign/inbox.jsonl"), as: Line.self)
            .compactMap { line in line.hex.map { "\(line.state ?? "") \($0.hexDescription)" } }
    }

    /// The text of the peer's list of trusted peers.
    func trusted() throws -> String { try folder.text("foreign/trusted.json") }
}

extension LocalDaemon {
    fileprivate func status() async throws -> StatusRow {
        try JSONDecoder().decode(StatusRow.self, from: Data(try await hexlist("status", "--json").out.utf8))
    }

    fileprivate func trust(of uuid: String) async throws -> String? {
        let peers = try JSONLines.decode(try await hexlist("peers", "--all", "--json").out, as: PeerRow.self)
        return peers.first { $0.uuid == uuid }?.trust
    }

    fileprivate func configure(peerAt port: Int) throws {
        try folder.write("name: local\nlisten: [127.0.0.1]\npeers: ['127.0.0.1:\(port)']\n", to: "config.yaml")
    }

    /// Queues the hexes of a file once the peer is known.
    fileprivate func send(to uuid: String, _ file: String) async throws {
        for arguments in [["peers", "--wait", "1"], ["send", "--to", uuid, "--bulk", file, "--wait", "queued"]] {
            let output = try await Command.run(
                [Checkout.hexlist] + arguments + ["--timeout", "\(Patience.state)s"], environment: environment)
            #expect(output.status == 0, "\(output)")
        }
    }

    fileprivate func outbox() async throws -> [OutboxRowShape] {
        try JSONLines.decode(try await hexlist("outbox", "list", "--json").out)
    }

    fileprivate func awaitDelivered() async throws {
        try await Patience.until(or: "hexes still wait") { try await status().outbox["queued", default: 0] == 0 }
        let left = try await outbox()
        #expect(left.allSatisfy { $0.state == "held" }, "\(left)")
    }

    /// Descriptions of the whole inbox, oldest first.
    fileprivate func inbox() async throws -> [String] {
        try JSONLines.decode(try await hexlist("inbox", "--limit", "0", "--json").out, as: HexRow.self).reversed().map(\.description)
    }
}
