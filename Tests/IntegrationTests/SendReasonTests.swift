import Foundation
import Testing

/// Reasons for undelivered hexes in `send`, `outbox`, `status` and `peers` of the real programs.
@Suite(
    "Why a hex is not there yet", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Checkout.hasPrograms, "needs hexlistd and hexlist: build first"))
struct SendReasonTests {
    @Test("an absent peer: the reason and since when; a cancelled row is done, and a rerun with its key reports the earlier result")
    func away() async throws {
        try await TwoDaemons.with(isBobThere: false) { two in
            let send = ["--to", "local", "--key", "k", "--description", "to read", "https://example.org/a"]
            let sent = try await two.send(send)
            #expect(sent.status == 3 && sent.out.contains("queued  local  outbox 1  the peer is away"), "\(sent)")
            #expect(sent.err.hasPrefix("local was last seen 2"), "\(sent)")
            #expect(
                sent.err.contains("It will be sent when local comes back. To cancel: `hexlist outbox cancel 1`."), "\(sent)")

            // Trusted peers are listed before strangers. This list has trusted ones only.
            let peers = try await two.ada.hexlist("peers")
            #expect(peers.out.contains("away") && peers.out.contains("last seen 2"), "\(peers)")
            #expect(try await two.ada.hexlist("peers", "--json").out.isEmpty)
            #expect(try await two.ada.hexlist("status").out.contains("1 waits"))

            let listed = try await two.ada.hexlist("outbox")
            #expect(listed.out.contains("to read") && listed.out.contains("the peer is away"), "\(listed)")
            let shown = try await two.ada.hexlist("outbox", "show", "1")
            for text in ["hex    to read", "why    the peer is away", "next   It will be sent when local comes back."] {
                #expect(shown.out.contains(text), "\(shown)")
            }
            let row = try await two.ada.hexlist("outbox", "show", "1", "--json").out
            #expect(row.contains(#""subject":"to read""#) && row.contains(#""waitingFor":"peer""#), "\(row)")

            let again = try await two.send(send)
            #expect(again.out.contains("already sent with this key; the peer is away"), "\(again)")
            let queued = try await two.send(send + ["--wait", "queued"])
            #expect(queued.status == 0 && queued.err.isEmpty, "\(queued)")

            _ = try await two.ada.hexlist("outbox", "cancel", "1")
            let done = try await two.ada.hexlist("outbox")
            #expect(done.out.isEmpty && done.err.contains("--all lists delivered hexes"), "\(done)")
            #expect(try await two.ada.hexlist("outbox", "--all").out.contains("to read"))
            #expect(try await two.ada.hexlist("status").out.contains("1 cancelled"))
        }
    }

    @Test(
        "`send` and `outbox` show the same reason of a refusal; a name stays with a peer that was blocked or is no longer trusted"
    )
    func refused() async throws {
        try await TwoDaemons.with { two in
            let ada = try #require(try JSONLines.decode(try await two.bob.hexlist("peers", "--json").out, as: PeerRow.self).first?.uuid)
            _ = try await two.bob.hexlist("peer", "block", "ada")
            let sent = try await two.send(["--to", "local", "https://example.org/no"])
            #expect(sent.status == 4, "\(sent)")
            let reason = try #require(sent.out.split(separator: "\n").first?.components(separatedBy: "  ").last)
            #expect(reason.hasPrefix("blocked: ") && sent.err.contains("local has blocked this machine"), "\(sent)")
            let listed = try await two.ada.hexlist("outbox")
            #expect(listed.out.contains("example.org") && listed.out.contains(reason), "\(listed)")
            #expect(try await two.ada.hexlist("status").out.contains("1 refused"))

            // bob blocks ada, and she keeps her alias.
            let blocked = try await two.bob.hexlist("send", "--to", "ada", "https://example.org/")
            #expect(blocked.status == 2 && blocked.err.contains("ada is blocked here") && blocked.err.contains(ada), "\(blocked)")
            #expect(try await two.bob.hexlist("peer", "unblock", "ada").out.contains("ada is now a stranger"))
            // ada has to dial bob first, because only she knows the address of the other.
            let stranger = try await two.bob.hexlist("send", "--to", "ada", "--wait", "queued", "https://example.org/1")
            #expect(stranger.status == 0 && stranger.out.contains("ada (stranger)"), "\(stranger)")
        }
    }

    @Test("a held hex is delivered: `outbox` omits it, --json and --all show it, and the message says how it gets into the inbox")
    func held() async throws {
        try await TwoDaemons.with { two in
            #expect(try await two.bob.hexlist("peer", "untrust", "ada").status == 0)
            // When bob withdrew the trust, the session ended. `send` waits for a new session.
            let sent = try await two.send(["--to", "local", "--description", "held one", "https://example.org/"])
            #expect(sent.status == 3 && sent.out.contains("delivered; waiting for approval there"), "\(sent)")
            #expect(sent.err.contains("`hexlist pair` there, `hexlist pair local` here"), "\(sent)")
            // `send` returns before the result of the row is committed, so the list is queried until it has the result.
            try await Patience.until(or: "it is listed") { try await two.ada.hexlist("outbox").out.isEmpty }
            #expect(try await two.ada.hexlist("outbox", "--all").out.contains("held one"))
            #expect(try await two.ada.hexlist("outbox", "--json").out.contains(#""state":"held""#))
            #expect(try await two.ada.hexlist("status").out.contains("1 delivered (1 waiting for approval there)"))
        }
    }

    @Test("a forwarded hex shows the forwarding peer")
    func forwarded() async throws {
        try await TwoDaemons.with { two in
            #expect(try await two.send("https://example.org/").status == 0)
            let back = try await two.bob.hexlist("send", "--to", "ada", "--timeout", "\(Patience.state)s", "--hex", "1")
            #expect(back.status == 0, "\(back)")
            let inbox = try await two.ada.hexlist("inbox")
            #expect(inbox.out.contains("local, forwarded from ada "), "\(inbox)")
        }
    }

    @Test("on a terminal the reason for waiting is shown after a second")
    func waiting() async throws {
        try await TwoDaemons.with { two in
            let status = try #require(try JSONLines.decode(try await two.bob.hexlist("status", "--json").out, as: StatusRow.self).first)
            try await stopProcess(status.pid)
            defer { kill(pid_t(status.pid), SIGCONT) }
            let command = [Checkout.hexlist, "send", "--to", "local", "--timeout", "5s", "https://example.org/"]
            let sent = try await TerminalCommand.run(
                command, environment: two.ada.environment,
                steps: [.init(wait: "Waiting for local: sent, not confirmed yet.", type: "")])
            #expect(sent.status == 3, "\(sent)")
            #expect(sent.out.contains("Ctrl-C stops waiting; it stays in the outbox."), "\(sent)")
            // If standard error is not a terminal, the reason for waiting is not printed.
            let quiet = try await Command.run(command.replacing(["5s"], with: ["2s"]), environment: two.ada.environment)
            #expect(quiet.status == 3 && !quiet.err.contains("Waiting for"), "\(quiet)")
        }
    }

    @Test("a send to a key that is gone names the key that now has its name; unnamed former installations do not interfere")
    func installedAnew() async throws {
        try await TwoDaemons.with(isBobThere: false) { two in
            try await LocalDaemon.with { anew in
                try await anew.running("--port", "\(two.port)") {
                    let found = try await two.ada.hexlist("peers", "--wait", "1", "--timeout", "\(Patience.state)s", "--json")
                    let uuid = try #require(try JSONLines.decode(found.out, as: PeerRow.self).first?.uuid)
                    let sent = try await two.send(["--to", "local", "https://example.org/"])
                    #expect(sent.status == 3, "\(sent)")
                    #expect(
                        sent.err.contains("local now has a different key (local \(uuid.prefix(8)) (stranger))"),
                        "\(sent)")
                    // The trusted peer is listed before the stranger.
                    let lines = try await two.ada.hexlist("peers").out.split(separator: "\n").dropFirst()
                    #expect(lines.map { $0.contains("away") } == [true, false], "\(lines)")
                }
            }
        }
    }

    @Test("a daemon that is not running is started by systemd's user manager if it has the unit")
    func startedBySystemd() async throws {
        try await LocalDaemon.with { daemon in
            let (home, runtime) = ("\(daemon.folder.path)/home", "\(daemon.folder.path)/run")
            let environment = ["HOME": home, "XDG_RUNTIME_DIR": runtime]
            func hint() async throws -> String {
                let output = try await Command.run([Checkout.hexlist, "status"], environment: environment)
                #expect(output.status == 5, "\(output)")
                return output.err
            }
            try FileManager.default.createDirectory(atPath: "\(runtime)/systemd", withIntermediateDirectories: true)
            try FileManager.default.createDirectory(atPath: "\(home)/.config/systemd/user", withIntermediateDirectories: true)
            #expect(try await hint().contains("Start it with `hexlistd`."))
            for file in ["\(runtime)/systemd/private", "\(home)/.config/systemd/user/hexlistd.service"] {
                #expect(FileManager.default.createFile(atPath: file, contents: nil))
            }
            #expect(try await hint().contains("Start it with `systemctl --user start hexlistd`."))
        }
    }
}
