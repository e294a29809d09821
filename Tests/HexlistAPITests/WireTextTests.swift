import HexlistAPI
import HexlistJSON
import HexlistModel
import Testing

@Suite("Queries, event streams and text")
struct WireTextTests {
    @Test("a query survives URL encoding and decoding", arguments: ["", "a b", "a&b=c", "Größe 名前 😀", "100%", "+", "a/b?c#d"])
    func query(value: String) throws {
        var query = URLQuery()
        query.add("to", value)
        query.add("to", "second")
        query.add("none", nil)
        let text = query.text
        #expect(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        #expect(try #require(URLQuery(parsing: text.dropFirst())).values("to") == [value, "second"])
    }

    @Test("a broken escape is refused", arguments: ["a=%", "a=%1", "a=%zz", "a=%ff", "%=1"])
    func brokenQuery(text: String) {
        #expect(URLQuery(parsing: text) == nil)
    }

    @Test("a flag may have no value", arguments: [("all", ""), ("all=", ""), ("all=true", "true"), ("a=b=c&all=x", "x")])
    func flags(text: String, value: String) throws {
        #expect(try #require(URLQuery(parsing: text)).values("all") == [value])
    }

    @Test("an event stream is parsed the same at any chunk size", arguments: [1, 2, 3, 7, 1_000])
    func stream(piece: Int) throws {
        let messages = [
            ServerSentEvent(id: "1", event: "hex.received", data: #"{"number":1}"#), ServerSentEvent(data: "x"),
            ServerSentEvent(event: "peers", data: "é"),
        ]
        let bytes = ServerSentEvent.comment + messages.flatMap(\.bytes) + ServerSentEvent.comment
        var parser = ServerSentEventParser()
        var read: [ServerSentEvent] = []
        for start in stride(from: 0, to: bytes.count, by: piece) {
            read += try parser.feed(bytes[start..<min(start + piece, bytes.count)])
        }
        #expect(read == messages)
    }

    @Test("event streams of other writers are parsed too")
    func foreignStream() throws {
        var parser = ServerSentEventParser()
        let text = "retry: 10\r\ndata:a\r\ndata: b\r\n\r\nid: 7\n\nevent\ndata\n\n"
        #expect(try parser.feed(text.utf8) == [ServerSentEvent(data: "a\nb"), ServerSentEvent(event: "", data: "")])
    }

    @Test("a line without an end is abandoned")
    func endlessStream() {
        var parser = ServerSentEventParser(limit: 100)
        #expect(throws: JSONFault.self) { try parser.feed([UInt8](repeating: 0x61, count: 101)) }
    }

    @Test(
        "spans of time",
        arguments: [
            ("10", 10), ("10s", 10), ("1.5m", 90), ("250ms", 0.25), ("2h", 7_200), ("1d", 86_400), ("0", 0), ("", nil), ("s", nil),
            ("-1s", nil),
            ("1e3", nil), ("10 s", nil), ("inf", nil), ("999d", nil), ("1.2.3s", nil),
        ] as [(String, Double?)])
    func durations(text: String, seconds: Double?) {
        #expect(DurationText.seconds(text) == seconds)
    }

    @Test(
        "exit codes of outcomes",
        arguments: [
            ([], .stored, 0), ([.stored, .stored], .stored, 0), ([.stored, .queued], .stored, 3), ([.stored, .held], .stored, 3),
            ([.queued, .sending], .queued, 0), ([.held, .queued], .queued, 3), ([.rejected, .queued], .stored, 4),
            ([.failed, .rejected], .stored, 1),
            ([.stored, .expired], .stored, 1), ([.cancelled], .queued, 1),
        ] as [([OutboxState], SendWaitGoal, Int32)])
    func outcomes(states: [OutboxState], wait: SendWaitGoal, code: Int32) {
        #expect(ExitStatus.combined(states.map { ExitStatus(outcome: $0, wait: wait) }).rawValue == code)
    }

    @Test(
        "exit codes of errors",
        arguments: [
            (.badRequest, 2), (.configuration, 2), (.notFound, 6), (.ambiguous, 6), (.daemonUnreachable, 5), (.keyConflict, 1),
            (.versionMismatch, 1),
            (.refused, 4), (.internal, 1), (.gone, 1), (.recentlyFailed, 1),
        ] as [(HexlistError.Code, Int32)])
    func errors(code: HexlistError.Code, status: Int32) {
        #expect(ExitStatus(code).rawValue == status)
    }

    @Test(
        "default paths",
        arguments: [
            ([:], "/home/ada/.local/share/hexlist", "/home/ada/.config/hexlist/config.yaml", "/home/ada/.local/share/hexlist/control.sock"),
            (
                ["XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/run/user/1"], "/d/hexlist", "/c/hexlist/config.yaml",
                "/run/user/1/hexlist/control.sock"
            ),
            (
                ["XDG_DATA_HOME": "relative", "XDG_RUNTIME_DIR": "/missing"], "/home/ada/.local/share/hexlist",
                "/home/ada/.config/hexlist/config.yaml", "/home/ada/.local/share/hexlist/control.sock"
            ),
            (["HEXLIST_STATE_DIR": "/s", "HEXLIST_CONFIG": "/c.yaml", "HEXLIST_SOCKET": "/k"], "/s", "/c.yaml", "/k"),
            (["HEXLIST_STATE_DIR": "/s", "HEXLIST_SOCKET": ""], "/s", "/home/ada/.config/hexlist/config.yaml", "/s/control.sock"),
        ] as [([String: String], String, String, String)])
    func paths(environment: [String: String], state: String, file: String, socket: String) {
        let paths = HexlistPaths(environment: environment.merging(["HOME": "/home/ada"]) { $1 }) { $0 == "/run/user/1" }
        #expect(paths.stateFolder == state)
        #expect(paths.configurationFile == file)
        #expect(paths.socket == socket)
    }

    @Test(
        "the configuration folder; a relative path of the environment is ignored",
        arguments: [
            (["HOME": "/home/a"], "/home/a/.config"), (["HOME": "/home/a", "XDG_CONFIG_HOME": "/c"], "/c"),
            (["HOME": "/home/a", "XDG_CONFIG_HOME": "c"], "/home/a/.config"),
        ])
    func configurationHome(environment: [String: String], path: String) {
        #expect(HexlistPaths(environment: environment).configurationHome == path)
    }

    @Test("HOME of another user is ignored, as after `sudo -E -u`")
    func foreignHome() {
        let own = HexlistPaths(environment: ["HOME": "/home/ada"], isForeignHome: { _ in false })
        #expect(own.stateFolder == "/home/ada/.local/share/hexlist")
        let foreign = HexlistPaths(environment: ["HOME": "/home/ada"], isForeignHome: { $0 == "/home/ada" })
        #expect(foreign.stateFolder == HexlistPaths.join(HexlistPaths.homeFolder(), ".local/share/hexlist"))
        #expect(!HexlistPaths.isForeignHome("/nowhere") && !HexlistPaths.isForeignHome(HexlistPaths.homeFolder()))
    }

    @Test("an option overrides the environment")
    func pathsOfTheCommandLine() {
        let environment = ["HEXLIST_STATE_DIR": "/s", "HEXLIST_CONFIG": "/c.yaml", "HEXLIST_SOCKET": "/k"]
        let paths = HexlistPaths(environment: environment, stateFolder: "/1", configurationFile: "/2", socket: "/3")
        #expect([paths.stateFolder, paths.configurationFile, paths.socket] == ["/1", "/2", "/3"])
        #expect(paths.configurationIsNamed && paths.socketIsNamed)
    }

    @Test(
        "peer text is shown with control characters replaced",
        arguments: [
            ("plain", "plain"), ("\u{1B}[31mred", "\u{FFFD}[31mred"), ("a\nb\tc\rd", "a b c d"), ("\u{7}\u{9B}31m", "\u{FFFD}\u{FFFD}31m"),
            ("\u{202E}evil", "\u{FFFD}evil"), ("\u{2066}x\u{2069}", "\u{FFFD}x\u{FFFD}"), ("a\u{2028}b", "a\u{FFFD}b"),
            ("\u{200B}\u{FEFF}", "\u{FFFD}\u{FFFD}"),
            ("👩‍💻", "👩‍💻"), ("می‌خواهم", "می‌خواهم"), ("\u{E000}\u{0}", "\u{FFFD}\u{FFFD}"), ("Größe 名前", "Größe 名前"),
        ])
    func terminalText(text: String, shown: String) {
        #expect(TerminalText.clean(text).unicodeScalars.elementsEqual(shown.unicodeScalars))
    }

    @Test(
        "long peer text is cut",
        arguments: [
            ("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("", 6, ""), ("名前名前", 3, "名前…"),
        ])
    func cutText(text: String, columns: Int, shown: String) {
        #expect(TerminalText.clean(text, columns: columns) == shown)
    }
}
