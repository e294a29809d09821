import Foundation
import Testing

/// Streams of hexes between two real daemons on loopback, sent as people and scripts do.
@Suite(
    "Bulk sends", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Checkout.hasPrograms, "needs hexlistd and hexlist: build first"))
struct BulkTests {
    @Test("2 000 lines with a few bad ones: the good ones arrive in order, the bad ones are reported with number and reason")
    func badLines() async throws {
        try await TwoDaemons.with { two in
            var lines = (1...2_000).map { Line.hex($0) }
            lines[6] = "not JSON"
            lines[899] = #"{"description":"no link"}"#
            lines[1_998] = #"{"links":["u"]"#
            try two.ada.folder.write(lines.joined(separator: "\n") + "\n", to: "in")
            let output = try await two.send("--bulk", two.path("in"))
            #expect(output.status == 2, "\(output)")
            #expect(output.out.contains("1997 stored") && output.out.contains("3 not valid"), "\(output)")
            let told = output.err.split(separator: "\n")
            #expect(told.count == 3, "\(output)")
            for (line, word) in zip(told, ["line 7: malformed", "line 900: noLink", "line 1999: malformed"]) {
                #expect(line.hasPrefix(word), "\(output)")
            }
            let expected = (1...2_000).filter { ![7, 900, 1_999].contains($0) }.map { "hex \($0)" }
            #expect(try await two.inbox() == expected)

            let json = try await two.send("--bulk", two.path("in"), "--json")
            #expect(json.status == 2)
            #expect(json.err.isEmpty, "\(json)")
            #expect(try json.refused().map(\.line) == [7, 900, 1_999])
            let summary = try json.summary()
            #expect((summary.lines, summary.invalid, summary.accepted, summary.stored) == (2_000, 3, 1_997, 1_997))
        }
    }

    @Test("with --strict a bad line prevents sending, from a file and a pipe, and all bad lines are reported")
    func strict() async throws {
        try await TwoDaemons.with { two in
            let bad = (1...100).map { $0 % 4 == 0 ? "bad" : Line.hex($0) }.joined(separator: "\n")
            try two.ada.folder.write(bad, to: "in")
            for output in [
                try await two.send("--bulk", two.path("in"), "--strict"), try await two.send("--bulk", "-", "--strict", input: bad),
            ] {
                #expect(output.status == 2, "\(output)")
                #expect(output.err.contains("line 4: ") && output.err.contains("line 100: "), "\(output)")
                #expect(output.err.contains("25 lines are not valid, of 100: nothing was sent"), "\(output)")
            }
            #expect(try await two.inbox().isEmpty)
            #expect(try await two.outbox().isEmpty)
            let good = (1...100).map { Line.hex($0) }.joined(separator: "\r\n")
            let output = try await two.send("--bulk", "-", "--strict", input: good)
            #expect(output.status == 0, "\(output)")
            #expect(try await two.inbox() == (1...100).map { "hex \($0)" })
        }
    }

    @Test("the first hexes are delivered before the input ends")
    func openPipe() async throws {
        try await TwoDaemons.with { two in
            let events = try RunningCommand(
                [Checkout.hexlist, "events", "--since", "0", "--follow", "--json"], environment: two.bob.environment)
            let (send, pipe) = try two.sendFromPipe()
            try pipe.write(contentsOf: Data("\(Line.hex(1))\n\(Line.hex(2))\n\(Line.hex(3))".utf8))
            var received = 0
            _ = try await events.first { line -> Bool? in
                if line.contains("hex.received") { received += 1 }
                return received == 2 ? true : nil
            }
            #expect(try await two.inbox() == ["hex 1", "hex 2"])
            try pipe.write(contentsOf: Data("\n".utf8))
            try pipe.close()
            #expect(await send.status() == 0)
            #expect(try await two.inbox() == ["hex 1", "hex 2", "hex 3"])
            await events.stop()
        }
    }

    @Test("an interrupted send has sent complete lines only, and reports the counts", arguments: [SIGINT, SIGTERM])
    func interrupted(signal: Int32) async throws {
        try await TwoDaemons.with { two in
            let events = try RunningCommand(
                [Checkout.hexlist, "events", "--since", "0", "--follow", "--json"], environment: two.bob.environment)
            let (send, pipe) = try two.sendFromPipe()
            try pipe.write(contentsOf: Data("\(Line.hex(1))\n\(Line.hex(2))\n\(Line.hex(3))".utf8))
            var received = 0
            _ = try await events.first { line -> Bool? in
                if line.contains("hex.received") { received += 1 }
                return received == 2 ? true : nil
            }
            kill(send.identifier, signal)
            let said = try await send.first { $0.hasPrefix("Stopped: ") ? $0 : nil }
            #expect(said.contains("2 accepted"), "\(said)")
            // The number of hexes that are stored at this time varies, but none is invalid and none is lost.
            #expect(await send.status() == 3)
            try pipe.close()
            await events.stop()
            let again = try await two.send("--bulk", "-", input: Line.hex(4))
            #expect(again.status == 0)
            #expect(try await two.inbox() == ["hex 1", "hex 2", "hex 4"])
        }
    }

    @Test("with keys a rerun sends nothing twice; a key with other content is refused with its line")
    func keys() async throws {
        try await TwoDaemons.with { two in
            let lines = (1...300).map { Line.hex($0, key: "k\($0)") }
            #expect(try await two.send("--bulk", "-", input: lines.prefix(200).joined(separator: "\n")).status == 0)
            let rerun = try await two.send("--bulk", "-", "--json", input: lines.joined(separator: "\n"))
            #expect(rerun.status == 0, "\(rerun)")
            #expect(try rerun.summary().stored == 300)
            let third = try await two.send("--bulk", "-", input: lines.joined(separator: "\n"))
            #expect(third.out.contains("300 hexes: 300 stored; 300 of them already sent with the same key"), "\(third)")
            let conflict = try await two.send("--bulk", "-", "--json", input: "\(Line.hex(301))\n\(Line.hex(999, key: "k7"))\n")
            #expect(conflict.status == 2, "\(conflict)")
            #expect(try conflict.refused() == [Line.Refused(line: 2, code: "keyConflict")])
            #expect(try await two.inbox() == (1...301).map { "hex \($0)" })
        }
    }

    @Test("an absent peer: status 3, the rows wait, can be cancelled together, and arrive when it returns")
    func absent() async throws {
        try await TwoDaemons.with(isBobThere: false) { two in
            let lines = (1...2_500).map { Line.hex($0) }.joined(separator: "\n")
            let output = try await two.send("--bulk", "-", input: lines)
            #expect(output.status == 3, "\(output)")
            #expect(output.out.contains("2500 waiting") && output.out.contains("hexlist outbox list --to"), "\(output)")
            #expect(try await two.send("--bulk", "-", "--wait", "queued", input: Line.hex(2_501)).status == 0)
            #expect(try await two.outbox().count == 2_501)
            let listed = try await two.ada.hexlist("outbox", "list", "--limit", "10")
            #expect(listed.out.split(separator: "\n").count == 11 && listed.out.contains("the peer is away"), "\(listed)")
            #expect(listed.err.contains("2491 more"), "\(listed)")

            let retried = try await two.ada.hexlist("outbox", "retry", "--to", two.uuid)
            #expect(retried.status == 0 && retried.out.contains("2501 hexes will be retried now."), "\(retried)")
            let cancelled = try await two.ada.hexlist("outbox", "cancel", "--to", two.uuid, "--json")
            #expect(cancelled.status == 0 && cancelled.out.contains(#""changed":2501"#), "\(cancelled)")
            #expect(try await two.outbox().isEmpty)
            #expect(try await two.ada.hexlist("outbox", "cancel", "--to", two.uuid).out.contains("0 hexes cancelled."))

            #expect(try await two.send("--bulk", "-", input: Line.hex(7)).status == 3)
            let events = try RunningCommand(
                [Checkout.hexlist, "events", "--since", "0", "--follow", "--json"], environment: two.ada.environment)
            try await two.bob.running("--port", "\(two.port)") {
                _ = try await events.first { $0.contains("hex.delivered") ? true : nil }
                #expect(try await two.inbox() == ["hex 7"])
            }
            await events.stop()
        }
    }

    @Test("line ends, blank lines, a missing final line end, and invalid lines")
    func forms() async throws {
        try await TwoDaemons.with { two in
            var inbox: [String] = []
            func check(_ input: [UInt8], _ arrive: [Int], refused: [Line.Refused] = [], _ arguments: String...) async throws {
                let output = try await Command.run(
                    [Checkout.hexlist, "send", "--to", two.uuid, "--timeout", "\(Patience.state)s", "--bulk", "-", "--json"] + arguments,
                    input: input, environment: two.ada.environment)
                #expect(output.status == (refused.isEmpty ? 0 : 2), "\(output)")
                #expect(try output.refused() == refused)
                #expect(try output.summary().stored == arrive.count)
                inbox += arrive.map { "hex \($0)" }
            }
            func text(_ text: String) -> [UInt8] { Array(text.utf8) }
            try await check([], [])
            try await check(text("\n\r\n \t\n"), [])
            try await check(text("\(Line.hex(1))\r\n\r\n\(Line.hex(2))\r\n"), [1, 2])
            try await check(text("\n\n\(Line.hex(3))"), [3])
            try await check(text("\u{FEFF}\(Line.hex(4))\n"), [4])
            let long = text(#"{"links":[""#) + Array(repeating: UInt8(ascii: "x"), count: 3 << 20) + text("\"]}\n")
            try await check(
                text("\(Line.hex(5))\n") + long + text("\n\(Line.hex(6))"), [5, 6], refused: [Line.Refused(line: 2, code: "tooLarge")])
            let invalid = text(#"{"description":""#) + [0xFF, 0xFE] + text("\",\"links\":[\"u\"]}\n")
            try await check(invalid + text(Line.hex(7)), [7], refused: [Line.Refused(line: 1, code: "malformed")])
            let many = text(#"{"links":[\#(Array(repeating: #""u""#, count: 5_001).joined(separator: ","))]}"#)
            try await check(many, [], refused: [Line.Refused(line: 1, code: "tooManyLinks")])
            let empty = text(#"{"description":"hex 8"}"#)
            try await check(empty, [], refused: [Line.Refused(line: 1, code: "noLink")])
            try await check(empty, [8], "--allow-empty")
            try await check(empty, [8], "--allow-empty", "--strict")
            #expect(try await two.inbox() == inbox)
        }
    }

    @Test("curl sends the same lines through the socket and gets the same reply")
    func curl() async throws {
        try await TwoDaemons.with { two in
            let input = "\(Line.hex(1))\nbad\n\(Line.hex(2))\n"
            let output = try await Command.run(
                [
                    "curl", "--silent", "--show-error", "--unix-socket", two.ada.socket, "--request", "POST", "--header",
                    "content-type: application/x-ndjson", "--upload-file", "-",
                    "http://localhost/v1/sends?to=\(two.uuid)&results=all&timeout=\(Patience.state)",
                ], input: Array(input.utf8), environment: two.ada.environment)
            #expect(output.status == 0, "\(output)")
            #expect(try output.refused().map(\.line) == [2])
            #expect(output.out.split(separator: "\n").filter { $0.contains(#""state":"stored""#) }.count == 2, "\(output)")
            #expect(try output.summary().stored == 2)
            #expect(try await two.inbox() == ["hex 1", "hex 2"])
        }
    }

    @Test("a client that writes everything before reading does not deadlock")
    func writesFirst() async throws {
        try await TwoDaemons.with { two in
            // The refusals together are larger than the buffer of a socket.
            let input = (1...40_000).map { $0 % 100 == 0 ? Line.hex($0) : "[\($0)]" }.joined(separator: "\n")
            try two.ada.folder.write(input, to: "in")
            let script = """
                import socket, sys
                body = open(sys.argv[2], "rb").read()
                s = socket.socket(socket.AF_UNIX)
                s.connect(sys.argv[1])
                s.sendall(b"POST /v1/sends?progress=true&timeout=\(Patience.state)&to=" + sys.argv[3].encode() + b" HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n"
                    b"Content-Type: application/x-ndjson\\r\\nContent-Length: " + str(len(body)).encode() + b"\\r\\n\\r\\n")
                s.sendall(body)
                reply = b""
                while piece := s.recv(65536): reply += piece
                print(reply[reply.index(b'{"summary"'):].split(b"\\n")[0].decode())
                """
            let output = try await Command.run(["python3", "-c", script, two.ada.socket, two.path("in"), two.uuid])
            #expect(output.status == 0, "\(output)")
            let summary = try output.summary()
            #expect((summary.lines, summary.invalid, summary.stored) == (40_000, 39_600, 400), "\(output)")
        }
    }

    @Test("conflicting options, unreadable input and unreachable peers are reported before anything is sent")
    func usage() async throws {
        try await TwoDaemons.with { two in
            try two.ada.folder.write((1...20_000).map { Line.hex($0) }.joined(separator: "\n"), to: "in")
            let bulk = ["--bulk", two.path("in")]
            for (arguments, status, words) in [
                (bulk + ["https://example.org"], 2, ["--bulk", "links"]), (bulk + ["--hex", "1"], 2, ["--hex"]),
                (bulk + ["--description", "d"], 2, ["--description"]), (bulk + ["--color", "red"], 2, ["--color"]),
                (bulk + ["--key", "k"], 2, ["--key"]), (bulk + ["--from", "-"], 2, ["--from"]),
                (["--strict", "u"], 2, ["--strict", "--bulk"]),
                (["--allow-empty", "u"], 2, ["--allow-empty", "--bulk"]), (["--bulk", two.path("none")], 2, ["none"]),
                (["--bulk", two.ada.folder.path], 2, ["folder"]), (bulk + ["--to", "nobody"], 6, ["nobody"]),
            ] as [([String], Int32, [String])] {
                let output = try await two.send(arguments)
                #expect(output.status == status, "\(output)")
                for word in words { #expect(output.err.contains(word), "\(output)") }
                #expect(output.out.isEmpty, "\(output)")
            }
            #expect(try await two.outbox().isEmpty)
        }
    }
}

/// A bulk send's lines and its results.
private enum Line {
    struct Refused: Decodable, Equatable {
        var line: Int
        var code: String
    }

    struct Summary: Decodable {
        var lines: Int
        var invalid: Int
        var accepted: Int
        var stored: Int
        var queued: Int
    }

    struct End: Decodable {
        var summary: Summary
    }

    static func hex(_ number: Int, key: String? = nil) -> String {
        let key = key.map { #","key":"\#($0)""# } ?? ""
        return #"{"description":"hex \#(number)","links":["https://example.org/\#(number)"]\#(key)}"#
    }
}

extension Command.Output {
    fileprivate func refused() throws -> [Line.Refused] {
        let lines = out.split(separator: "\n").filter { $0.hasPrefix(#"{"line":"#) && !$0.contains("outboxID") }
        return try JSONLines.decode(lines.joined(separator: "\n"))
    }

    /// The last line of output.
    fileprivate func summary() throws -> Line.Summary {
        let ends: [Line.End] = try JSONLines.decode(String(out.split(separator: "\n").last ?? ""))
        guard let end = ends.first else { throw Command.Failure("no summary: \(self)") }
        return end.summary
    }
}

/// Two daemons that trust each other. ada sends to bob.
struct TwoDaemons {
    let ada: LocalDaemon
    let bob: LocalDaemon
    /// The UUID of bob.
    let uuid: String
    let port: Int

    static func with(
        isBobThere: Bool = true, bobsEnvironment: [String: String] = [:], test: (TwoDaemons) async throws -> Void
    ) async throws {
        try await LocalDaemon.with(environment: bobsEnvironment) { bob in
            try await LocalDaemon.with { ada in
                func meet() async throws -> TwoDaemons {
                    let status: [StatusRow] = try JSONLines.decode(try await bob.hexlist("status", "--json").out)
                    let mine: [StatusRow] = try JSONLines.decode(try await ada.hexlist("status", "--json").out)
                    guard let bobs = status.first, let adas = mine.first else { throw Command.Failure("no status") }
                    for (daemon, other) in [(ada, bobs.uuid), (bob, adas.uuid)] {
                        let met = try await daemon.hexlist("peers", "--wait", "1", "--timeout", "\(Patience.state)s")
                        guard met.status == 0 else { throw Command.Failure("they did not meet: \(met)") }
                        let trusted = try await daemon.hexlist("peer", "trust", other)
                        guard trusted.status == 0 else { throw Command.Failure("\(trusted)") }
                    }
                    return TwoDaemons(ada: ada, bob: bob, uuid: bobs.uuid, port: bobs.port)
                }
                /// ada's configuration names bob, whose port is known once it runs.
                func configure() async throws {
                    let status: [StatusRow] = try JSONLines.decode(try await bob.hexlist("status", "--json").out)
                    guard let port = status.first?.port else { throw Command.Failure("no status") }
                    try ada.folder.write("name: ada\nlisten: [127.0.0.1]\npeers: [\"127.0.0.1:\(port)\"]\n", to: "config.yaml")
                }
                // bob gets a fixed port outside the range from which the system chooses. Another program could get one of these while bob
                // is away.
                let port = "\(try LoopbackPort.free())"
                if isBobThere {
                    try await bob.running("--port", port) {
                        try await configure()
                        try await ada.running { try await test(try await meet()) }
                    }
                } else {
                    var two: TwoDaemons?
                    try await bob.running("--port", port) {
                        try await configure()
                        try await ada.running { two = try await meet() }
                    }
                    guard let two else { return }
                    try await ada.running { try await test(two) }
                }
            }
        }
    }

    func path(_ name: String) -> String { "\(ada.folder.path)/\(name)" }

    func send(_ arguments: String..., input: String = "") async throws -> Command.Output { try await send(arguments, input: input) }

    func send(_ arguments: [String], input: String = "") async throws -> Command.Output {
        let to = arguments.contains("--to") ? [] : ["--to", uuid]
        let patience = ["--timeout", "\(Patience.state)s"]
        return try await Command.run(
            [Checkout.hexlist, "send"] + to + patience + arguments, input: Array(input.utf8), environment: ada.environment)
    }

    /// A send that reads input from the handle.
    func sendFromPipe() throws -> (RunningCommand, FileHandle) {
        guard mkfifo(path("pipe"), 0o600) == 0 else { throw Command.Failure("no pipe: \(errno)") }
        let send = try RunningCommand([Checkout.hexlist, "send", "--to", uuid, "--bulk", path("pipe")], environment: ada.environment)
        // O_CLOEXEC, so that no other child keeps it open.
        let descriptor = open(path("pipe"), O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Command.Failure("no pipe: \(errno)") }
        return (send, FileHandle(fileDescriptor: descriptor, closeOnDealloc: true))
    }

    /// Descriptions in bob's inbox, oldest first.
    func inbox() async throws -> [String] {
        let rows: [HexRow] = try JSONLines.decode(try await bob.hexlist("inbox", "--limit", "0", "--json").out)
        return rows.reversed().map(\.description)
    }

    /// The queued and failed rows in ada's outbox.
    func outbox() async throws -> [String] {
        try await ada.hexlist("outbox", "list", "--json").out.split(separator: "\n").map(String.init)
    }
}
