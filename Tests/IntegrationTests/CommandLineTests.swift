import Foundation
import Testing

/// Shell completion on a terminal, and the notification hook.
@Suite("The command line", .timeLimit(.minutes(Patience.test)), .ifBuilt)
struct CommandLineTests {
    enum Shell: String, CaseIterable, CustomTestStringConvertible {
        case bash, zsh, fish
        var testDescription: String { rawValue }
        static let installed = allCases.filter { Program.path(of: $0.rawValue) != nil }
    }

    /// Types into a shell on a terminal, and prints the screen's contents up to a mark.
    private static let typist = """
        import os, pty, select, sys
        shell, folder, line, mark = sys.argv[1:]
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm" if shell != "bash" else "dumb"
            arguments = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"],
                         "fish": ["fish", "--no-config", "-i"]}[shell]
            os.execvp(shell, arguments)
        setup = {"bash": f". {folder}/bash", "zsh": f"autoload -U compinit; compinit -u -d {folder}/dump; . {folder}/zsh",
                 "fish": f"source {folder}/fish"}[shell]
        seen = b""
        def until(text, again=b""):
            global seen
            tries = 0
            while text not in seen:
                if not select.select([terminal], [], [], 3)[0]:
                    tries += 1
                    if tries == 60:
                        break
                    # A busy machine may have had no answer of the daemon in time to offer it.
                    os.write(terminal, again)
                    continue
                try:
                    piece = os.read(terminal, 65536)
                except OSError:
                    break
                # Questions of fish to its terminal.
                if b"\\x1b[c" in piece:
                    os.write(terminal, b"\\x1b[?62c")
                seen += piece
        # What the shell prints is written in two parts, so that the echo of what is typed is not taken for it.
        os.write(terminal, (setup + "; printf 'rea''dy\\\\n'\\n").encode())
        until(b"ready")
        seen = b""
        os.write(terminal, line.encode())
        until(mark.encode(), again=b"\\t")
        os.write(terminal, b"\\x03\\x04")
        sys.stdout.buffer.write(seen)
        os.close(terminal)
        """

    @Test("Tab completes a peer's alias and a group's name, and a hostile name runs no command", arguments: Shell.installed)
    func completion(shell: Shell) async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                let folder = daemon.folder.path
                let roster = """
                    {"uuid":"ABABABAB-ABAB-8BAB-ABAB-ABABABABABAB","fingerprint":"\(String(repeating: "ab", count: 32))","name":"x","alias":"Barbara","trust":"trusted"}
                    {"uuid":"CDCDCDCD-CDCD-8DCD-8DCD-CDCDCDCDCDCD","fingerprint":"\(String(repeating: "cd", count: 16) + String(repeating: "8d", count: 16))","name":"$(touch \(folder)/owned)","alias":"$(touch \(folder)/owned)`touch \(folder)/owned`","trust":"trusted"}

                    """
                try daemon.folder.write(roster, to: "roster")
                _ = try await daemon.hexlist("peers", "import", "\(folder)/roster")
                let script = try await daemon.hexlist("--generate-completion-script", shell.rawValue)
                #expect(script.status == 0)
                try daemon.folder.write(script.out, to: shell.rawValue)
                let path = "\(Checkout.programs):/usr/bin:/bin"
                func type(_ line: String, until mark: String) async throws -> String {
                    try await Command.run(
                        ["/usr/bin/python3", "-I", "-c", Self.typist, shell.rawValue, folder, line, mark],
                        environment: daemon.environment.merging(["PATH": path]) { $1 }
                    ).out
                }
                #expect(try await type("hexlist peer show Barb\t", until: "Barbara").contains("Barbara"))
                #expect(try await type("hexlist sta\t", until: "status").contains("status"))
                let all = try await type("hexlist send --to \t\t", until: "Barbara")
                #expect(all.contains("Barbara"), "\(all)")
                for name in ["team", "$(touch \(folder)/owned)", "`touch \(folder)/owned`"] {
                    let made = try await daemon.hexlist("group", "add", name, "Barbara")
                    #expect(made.status == 0, "\(made)")
                }
                for (line, mark) in [
                    ("hexlist send --to @te\t", "@team"), ("hexlist send --to @\t\t", "team"), ("hexlist send --to x --to @te\t", "@team"),
                    ("hexlist group rm te\t", "team"), ("hexlist group add @te\t", "@team"), ("hexlist group add team Bar\t", "Barbara"),
                    ("hexlist search --from Bar\t", "Barbara"), ("hexlist export --from Bar\t", "Barbara"),
                ] {
                    let typed = try await type(line, until: mark)
                    #expect(typed.contains(mark), "\(line): \(typed)")
                }
                #expect(!FileManager.default.fileExists(atPath: "\(folder)/owned"))
            }
        }
    }

    @Test(
        "every man page renders without a warning", .enabled(if: Program.path(of: "mandoc") != nil, "mandoc is not installed"))
    func manPages() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let made = try await Command.run(["\(Checkout.root)/Scripts/man", folder.path, Checkout.hexlist, Checkout.hexlistd])
        #expect(made.status == 0, "\(made)")
        let pages = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(["hexlist.1", "hexlist-notify.1", "hexlist-peer-add.1", "hexlistd.1"].allSatisfy(pages.contains))
        let looked = try await Command.run(["mandoc", "-Tlint", "-Wwarning"] + pages.map { "\(folder.path)/\($0)" })
        #expect(looked.status == 0, "\(looked)")
    }

    /// Creates a notify-send that appends its arguments to the file `shown`.
    /// - Returns: an environment that has this notify-send only.
    private func notifier(_ daemon: LocalDaemon) throws -> [String: String] {
        let folder = daemon.folder.path
        try FileManager.default.createDirectory(atPath: "\(folder)/bin", withIntermediateDirectories: true)
        try daemon.folder.write("#!/bin/sh\nprintf '[%s]' \"$@\" >> \(folder)/shown\n", to: "bin/notify-send")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: "\(folder)/bin/notify-send")
        return daemon.environment.merging(["PATH": "\(folder)/bin:/bin", "XDG_RUNTIME_DIR": "/nowhere"]) { $1 }
    }

    @Test("the hook shows one notification for a burst of hexes, and none twice") func burst() async throws {
        try await TwoDaemons.with { two in
            for number in 1...3 {
                let sent = try await two.ada.hexlist(
                    "send", "--to", two.uuid, "--timeout", "\(Patience.state)s", "https://example.org/\(number)")
                #expect(sent.status == 0, "\(sent)")
            }
            let events = try await two.bob.hexlist("events", "--type", "hex.received", "--json").out.split(separator: "\n")
            try #require(events.count == 3)
            let environment = try notifier(two.bob)
            // The hook gets one event after another, as from hexlistd, and the last one again, as after a restart that repeats the last
            // run.
            for event in events + events.suffix(1) {
                let shown = try await Command.run([Checkout.hexlist, "notify"], input: Array(event.utf8), environment: environment)
                #expect(shown.status == 0, "\(shown)")
            }
            let text = try String(contentsOfFile: "\(two.bob.folder.path)/shown", encoding: .utf8)
            #expect(text.components(separatedBy: "[--app-name=Hexlist]").count == 2 && text.contains("3 hexes"), "\(text)")
        }
    }

    @Test("buttons of a notification save the files of a hex, and accept a request") func notificationButtons() async throws {
        try await TwoDaemons.with { two in
            let folder = two.bob.folder.path
            let environment = try notifier(two.bob)
            // Presses the button whose name is in the file `action`, once.
            let script = "#!/bin/sh\nprintf '[%s]' \"$@\" >> \(folder)/shown\ncat \(folder)/action && rm \(folder)/action\nexit 0\n"
            try two.bob.folder.write(script, to: "bin/notify-send")
            func press(_ button: String, _ type: String) async throws {
                let event = try await two.bob.hexlist("events", "--type", type, "--json").out.split(separator: "\n").last
                let line = try #require(event)
                let number = try #require(JSONLines.member("number", of: line))
                try two.bob.folder.write(button, to: "action")
                let shown = try await Command.run(
                    [Checkout.hexlist, "notify", "--show", "\(type):\(number)-\(number)"], environment: environment)
                #expect(shown.status == 0, "\(shown)")
            }
            try two.ada.folder.write("the talk", to: "talk.txt")
            let sent = try await two.send("\(two.ada.folder.path)/talk.txt")
            #expect(sent.status == 0, "\(sent)")
            try await press("save", "hex.received")
            try await Patience.until(or: "the file is saved") {
                (try? String(contentsOfFile: "\(folder)/Downloads/talk.txt", encoding: .utf8)) == "the talk"
            }
            var shown = try String(contentsOfFile: "\(folder)/shown", encoding: .utf8)
            #expect(shown.contains("[--action=save=Save file]") && shown.contains("Saving 1 file to \(folder)/Downloads"), "\(shown)")
            #expect(try await two.bob.hexlist("inbox", "--unread", "--json").out.isEmpty)

            let adas: [StatusRow] = try JSONLines.decode(try await two.ada.hexlist("status", "--json").out)
            let held = try await two.bob.hexlist("peer", "set", try #require(adas.first).uuid, "--receive", "held")
            #expect(held.status == 0, "\(held)")
            let asked = try await two.send("https://example.org/asked")
            #expect(asked.status == 3, "\(asked)")
            try await press("accept", "hex.held")
            shown = try String(contentsOfFile: "\(folder)/shown", encoding: .utf8)
            #expect(shown.contains("[--action=accept=Accept]") && shown.contains("[Request from "), "\(shown)")
            #expect(try await two.bob.hexlist("inbox", "--json").out.contains("example.org/asked"))
        }
    }

    @Test("the hook reports pairing requests, and is installed beside the user's own hooks") func notifications() async throws {
        try await LocalDaemon.with { daemon in
            let folder = daemon.folder.path
            let environment = try notifier(daemon)
            func notify(_ arguments: String..., input: String = "") async throws -> Command.Output {
                try await Command.run([Checkout.hexlist, "notify"] + arguments, input: Array(input.utf8), environment: environment)
            }
            try await daemon.running {
                let asked =
                    #"{"number":1,"at":"2026-01-01T00:00:00.000Z","type":"pairing.requested","peer":"0C6F1B22-0000-8000-8000-000000000001","name":"-x <b>","alias":null,"trust":"stranger"}"#
                let shown = try await notify(input: asked)
                #expect(shown.status == 0, "\(shown)")
                let text = try String(contentsOfFile: "\(folder)/shown", encoding: .utf8)
                #expect(text == "[--app-name=Hexlist][--][-x <b> 0C6F1B22 wants to pair][Compare the digits: `hexlist pair --list`]")
                for (input, word) in [
                    ("", "not an event"), ("{}", "not an event"), (asked.replacing("pairing.requested", with: "peer.up"), "peer.up"),
                ] {
                    let refused = try await notify(input: input)
                    #expect(refused.status == 2 && refused.err.contains(word), "\(refused)")
                }
                try daemon.folder.write("name: renamed\nlisten: [127.0.0.1]\n", to: "config.yaml")
                let installed = try await notify("--install")
                #expect(installed.status == 0 && !installed.err.contains("kill -HUP"), "\(installed)")
                // The daemon reads hooks and configuration at once.
                try await Patience.until(or: "the configuration is read again") {
                    try await daemon.hexlist("status", "--json").out.contains(#""name":"renamed""#)
                }
                let hook = "\(folder)/hooks/hex.received"
                #expect(try String(contentsOfFile: hook, encoding: .utf8).contains("notify"))
                #expect(FileManager.default.isExecutableFile(atPath: hook))
                // A hook of the user stays.
                try "#!/bin/sh\n".write(toFile: hook, atomically: true, encoding: .utf8)
                let again = try await notify("--install")
                #expect(again.status == 2 && again.err.contains(hook), "\(again)")
                #expect(try String(contentsOfFile: hook, encoding: .utf8) == "#!/bin/sh\n")
                let removed = try await notify("--remove")
                #expect(removed.status == 0 && removed.out == "Notifications are off.\n", "\(removed)")
                #expect(try FileManager.default.contentsOfDirectory(atPath: "\(folder)/hooks") == ["hex.received"])
                #expect(try await notify("--remove").out == "Nothing to remove.\n")
            }
        }
    }

    @Test("a peer that was never met is added by its URI") func add() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                let uri = "hexlist://peer/\(String(repeating: "ab", count: 32))?name=Barbara&address=127.0.0.1:9"
                let asked = try await daemon.hexlist("peer", "add", uri)
                #expect(asked.status == 2 && asked.err.contains("--yes"), "\(asked)")
                let added = try await daemon.hexlist("peer", "add", uri, "--yes")
                #expect(added.status == 0 && added.out == "Barbara is now trusted.\n", "\(added)")
                let again = try await daemon.hexlist("peer", "add", uri, "--yes")
                #expect(again.status == 0 && again.out == "Barbara is already trusted.\n", "\(again)")
                let shown = try await daemon.hexlist("peer", "show", "Barbara", "--json")
                #expect(shown.out.contains("127.0.0.1"), "\(shown)")
                _ = try await daemon.hexlist("peer", "rename", "Barbara", "Babs")
                let renamed = try await daemon.hexlist("peer", "add", uri, "--yes")
                #expect(renamed.status == 0 && renamed.out == "Babs is already trusted.\n", "\(renamed)")
                let called = try await daemon.hexlist("peer", "add", uri, "--yes", "--alias", "Barbara")
                #expect(called.out == "Barbara is already trusted.\n", "\(called)")
                let address = try await daemon.hexlist("peer", "add", uri + "%0a", "--yes")
                #expect(address.status == 2 && !address.err.contains("--alias"), "\(address)")
                _ = try await daemon.hexlist("peer", "block", "Barbara")
                let blocked = try await daemon.hexlist("peer", "add", uri, "--yes")
                #expect(blocked.status == 2 && blocked.err.contains("peer unblock"), "\(blocked)")
                let still = try await daemon.hexlist("peer", "show", "Barbara", "--json")
                #expect(still.out.contains(#""trust":"blocked""#), "\(still)")
                let own = try await daemon.hexlist("id", "--qr")
                #expect(own.status == 0 && own.out.hasPrefix("hexlist://peer/"))
                let itself = try await daemon.hexlist("peer", "add", own.out.trimmingCharacters(in: .newlines), "--yes")
                #expect(itself.status == 2 && itself.err.contains("the URI of this machine"), "\(itself)")
                let wrong = try await daemon.hexlist("peer", "add", "https://example.org")
                #expect(wrong.status == 2 && wrong.err.contains("id --qr"), "\(wrong)")
            }
        }
    }
}
