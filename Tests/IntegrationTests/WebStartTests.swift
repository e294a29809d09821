import Foundation
import Testing

/// `hexlist web --start` without systemd, as on a machine whose session does not run it.
@Suite("hexlist web --start", .timeLimit(.minutes(Patience.test)), .ifBuilt)
struct WebStartTests {
    private struct Status: Decodable {
        var pid: Int32
    }

    @Test("it starts hexlistd once, now and at login, and opens the page") func start() async throws {
        try await LocalDaemon.with { daemon in
            try daemon.folder.write("name: local\nlisten: [127.0.0.1]\nport: \(LoopbackPort.free())\nannounce: false\n", to: "config.yaml")
            let first = try await daemon.hexlist("web", "--start", "--print")
            #expect(first.status == 0 && first.out.hasSuffix("/started\n"), "\(first)")
            let status = try JSONDecoder().decode(Status.self, from: Data(try await daemon.hexlist("status", "--json").out.utf8))
            defer { kill(status.pid, SIGKILL) }
            let entry = try daemon.folder.text("autostart/hexlist.desktop")
            #expect(entry.contains("Exec=\"\(Checkout.hexlistd)\""), "\(entry)")

            let second = try await daemon.hexlist("web", "--start", "--at", "pair", "--print")
            #expect(second.status == 0 && second.out.hasSuffix("/pair\n"), "\(second)")
            let third = try await daemon.hexlist("web", "--send", "--print", daemon.folder.path + "/config.yaml")
            #expect(third.status == 0 && third.out.contains(/#[0-9a-f]{64}\/draft\/[0-9a-f]{32}\n/), "\(third)")
        }
    }

    @Test("it says why hexlistd does not start") func refused() async throws {
        try await LocalDaemon.with { daemon in
            try daemon.folder.write("nonsense: 1\n", to: "config.yaml")
            let answer = try await daemon.hexlist("web", "--start", "--print")
            #expect(answer.status == 5 && answer.err.contains("ended at once") && answer.err.contains("run `hexlistd`"), "\(answer)")
            #expect(!FileManager.default.fileExists(atPath: daemon.folder.path + "/autostart"))
        }
    }

    @Test("files that do not exist, and options that exclude each other, are refused") func wrong() async throws {
        try await LocalDaemon.with { daemon in
            for (arguments, text) in [
                (["--send"], "Which files?"), (["a.txt"], "--send"), (["--start", "--socket", "x"], "another one"),
                (["--send", "a", "--at", "new"], "do not go together"),
            ] {
                let answer = try await Command.run([Checkout.hexlist, "web"] + arguments, environment: daemon.environment)
                #expect(answer.status == 2 && answer.err.contains(text), "\(answer)")
            }
        }
    }
}
