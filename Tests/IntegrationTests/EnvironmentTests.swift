import Foundation
import TestSupport
import Testing

/// The programs in incomplete environments: without session variables, without /proc and /dev, with closed descriptors.
@Suite("The environment", .timeLimit(.minutes(Patience.test)), .ifBuilt)
struct EnvironmentTests {
    private struct Status: Decodable {
        var pid: Int
    }

    /// Runs a daemon whose socket is in a runtime folder that only its own environment names.
    /// - Parameter test: gets the daemon, whose commands have no runtime folder, and the runtime folder.
    private static func inSession(test: (LocalDaemon, String) async throws -> Void) async throws {
        try await LocalDaemon.with(environment: ["HEXLIST_SOCKET": "", "XDG_RUNTIME_DIR": ""]) { daemon in
            let runtime = try folder("run", in: daemon)
            var session = daemon
            session.set("XDG_RUNTIME_DIR", runtime)
            try await session.running { try await test(daemon, runtime) }
        }
    }

    private static func folder(_ name: String, in daemon: LocalDaemon) throws -> String {
        let path = "\(daemon.folder.path)/\(name)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        return path
    }

    private static func status(_ daemon: LocalDaemon, _ variables: [String: String] = [:]) async throws -> Command.Output {
        var daemon = daemon
        for (name, value) in variables { daemon.set(name, value) }
        return try await daemon.hexlist("status", "--json")
    }

    @Test("a session's daemon is found from cron, with another runtime folder, and through a linked state folder")
    func otherEnvironment() async throws {
        try await Self.inSession { daemon, runtime in
            let other = try Self.folder("other", in: daemon)
            let link = "\(daemon.folder.path)/link"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: daemon.state)
            var pids: Set<Int> = []
            for variables in [
                [:], ["XDG_RUNTIME_DIR": runtime], ["XDG_RUNTIME_DIR": other], ["XDG_RUNTIME_DIR": "/nowhere"], ["HEXLIST_STATE_DIR": link],
                ["HEXLIST_STATE_DIR": "/nowhere", "HEXLIST_SOCKET": "\(runtime)/hexlist/control.sock"],
            ] {
                let output = try await Self.status(daemon, variables)
                #expect(output.status == 0, "\(variables): \(output)")
                if output.status == 0 { pids.insert(try JSONDecoder().decode(Status.self, from: Data(output.out.utf8)).pid) }
            }
            #expect(pids.count == 1)
            // A named socket has precedence over the recorded one.
            let named = try await Self.status(daemon, ["HEXLIST_SOCKET": "\(other)/none.sock"])
            #expect(named.status == 5 && named.err.contains("Nothing listens on \(other)/none.sock."), "\(named)")
            #expect(named.err.contains("pid \(pids.first ?? 0)") && named.err.contains("\(runtime)/hexlist/control.sock"), "\(named)")
        }
    }

    @Test(
        "a daemon whose runtime folder was removed listens in its state folder; until then its process is reported, after its end it is not"
    )
    func deletedSocket() async throws {
        try await Self.inSession { daemon, runtime in
            let before = try await Self.status(daemon)
            let pid = try JSONDecoder().decode(Status.self, from: Data(before.out.utf8)).pid
            // The daemon is stopped, so that it cannot listen elsewhere yet.
            try await stopProcess(pid)
            try FileManager.default.removeItem(atPath: runtime)
            for variables in [[:], ["XDG_RUNTIME_DIR": try Self.folder("run", in: daemon)]] {
                let output = try await Self.status(daemon, variables)
                #expect(output.status == 5 && output.err.contains("hexlistd (pid \(pid)) uses the state folder"), "\(output)")
                #expect(output.err.contains("kill \(pid)") && !output.err.contains("Start it with"), "\(output)")
            }
            let second = try await daemon.refused()
            #expect(second.status == 1 && second.err.contains("pid \(pid)") && second.err.contains(runtime), "\(second)")
            kill(pid_t(pid), SIGCONT)
            for variables in [[:], ["XDG_RUNTIME_DIR": runtime]] {
                try await Patience.until(or: "it does not listen elsewhere") { try await Self.status(daemon, variables).status == 0 }
            }
            // The socket that replaced the removed one is watched too.
            for _ in 0..<2 {
                try FileManager.default.removeItem(atPath: "\(daemon.state)/control.sock")
                try await Patience.until(or: "it does not listen again") { try await Self.status(daemon).status == 0 }
            }
            #expect(FileManager.default.fileExists(atPath: "\(daemon.state)/control.sock"))
            kill(pid_t(pid), SIGKILL)
            try await Patience.until(or: "it is named after its end") {
                try await Self.status(daemon).err.contains("Start it with")
            }
        }
    }

    @Test("a daemon whose socket in the state folder was deleted creates it again, and removes it at its end")
    func deletedInState() async throws {
        try await LocalDaemon.with(environment: ["HEXLIST_SOCKET": "", "XDG_RUNTIME_DIR": ""]) { daemon in
            let socket = "\(daemon.state)/control.sock"
            let status = try await daemon.running {
                for _ in 0..<2 {
                    try FileManager.default.removeItem(atPath: socket)
                    try await Patience.until(or: "it does not listen again") { try await Self.status(daemon).status == 0 }
                }
            }
            #expect(status == 0 && !FileManager.default.fileExists(atPath: socket))
        }
    }

    @Test("two daemons with separate state folders are each found by folder, whatever is in the runtime folder")
    func twoDaemons() async throws {
        try await Self.inSession { daemon, runtime in
            let second = try Self.folder("second", in: daemon)
            var other = daemon
            other.set("HEXLIST_STATE_DIR", second)
            try await other.running("--socket", "\(second)/own.sock") {
                var found: [String: Int] = [:]
                for state in [daemon.state, second] {
                    let output = try await Self.status(daemon, ["HEXLIST_STATE_DIR": state, "XDG_RUNTIME_DIR": runtime])
                    #expect(output.status == 0, "\(output)")
                    found[state] = try JSONDecoder().decode(Status.self, from: Data(output.out.utf8)).pid
                }
                #expect(found[second] != found[daemon.state])
            }
        }
    }

    // MARK: Missing parts of the system

    /// Runs a command in its own mount namespace, after a shell script.
    private static func apart(_ script: String, _ command: [String]) async throws -> Command.Output {
        let enter = geteuid() == 0 ? ["unshare", "--mount"] : ["unshare", "--map-root-user", "--mount"]
        return try await Command.run(enter + ["/bin/sh", "-c", script + " && exec \"$@\"", "sh"] + command)
    }

    private static let namespaces: Bool = {
        let enter = geteuid() == 0 ? ["--mount"] : ["--map-root-user", "--mount"]
        return (try? ChildProcess.answer("/usr/bin/unshare", enter + ["/bin/true"]).status) == 0
    }()

    @Test(
        "without /proc, /sys and /dev both programs work, and neither traps",
        .enabled(if: namespaces, "no mount namespaces here"),
        arguments: ["mount -t tmpfs none /proc", "mount -t tmpfs none /proc && mount -t tmpfs none /sys && mount -t tmpfs none /dev"])
    func withoutSystem(script: String) async throws {
        for (command, status, words) in [
            ([Checkout.hexlist, "--version"], 0, "."), ([Checkout.hexlistd, "--version"], 0, "."),
            ([Checkout.hexlist, "--help"], 0, "SUBCOMMANDS"), ([Checkout.hexlistd, "--help"], 0, "--state-dir"),
            ([Checkout.hexlist, "send", "--help"], 0, "--to"), ([Checkout.hexlist, "frobnicate"], 2, "frobnicate"),
            ([Checkout.hexlistd, "--frobnicate"], 2, "frobnicate"),
            ([Checkout.hexlistd, "--check", "--config", "/nowhere"], 2, "/nowhere"),
            ([Checkout.hexlist, "status", "--socket", "/nowhere/control.sock"], 1, "/proc is not mounted"),
            ([Checkout.hexlist, "send", "--to", "bob", "https://a.example/"], 1, "/proc is not mounted"),
            ([Checkout.hexlistd, "--state-dir", "/nowhere"], 1, "/proc is not mounted"),
        ] as [([String], Int32, String)] {
            let output = try await Self.apart(script, command)
            #expect(output.status == status && (output.out + output.err).contains(words), "\(output)")
        }
    }

    @Test("with closed standard descriptors, an empty environment and an empty argv[0] both programs exit normally")
    func withoutDescriptors() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
            for (command, status) in [
                ("\(Checkout.hexlist) --version", 0), ("\(Checkout.hexlistd) --version", 0), ("\(Checkout.hexlist) frobnicate", 2),
                ("\(Checkout.hexlist) status --socket \(folder.path)/none", 5), ("\(Checkout.hexlistd) --frobnicate", 2),
            ] {
                let output = try await Command.run(["/bin/sh", "-c", "\(command) \(closed)"])
                #expect(output.status == status, "\(closed): \(output)")
            }
        }
        for program in [Checkout.hexlist, Checkout.hexlistd] {
            let bare = try await Command.run(["env", "-i", program, "--version"])
            #expect(bare.status == 0 && bare.out.contains("."), "\(bare)")
            let unnamed = try await Command.run(["bash", "-c", "exec -a '' \"$0\" --version", program])
            #expect(unnamed.status == 0 && unnamed.out.contains("."), "\(unnamed)")
        }
    }

    @Test("a command with closed output does not write into its connection to the daemon")
    func closedOutput() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                for closed in ["<&- >&-", "<&- 2>&-", "<&- >&- 2>&-", ">&-"] {
                    let output = try await Command.run(
                        ["/bin/sh", "-c", "\(Checkout.hexlist) status \(closed)"], environment: daemon.environment)
                    #expect([0, 1].contains(output.status), "\(closed): \(output)")
                }
                #expect(try await daemon.hexlist("status").status == 0)
            }
        }
    }

    @Test(
        "a user missing from the user database has no home; the message names the paths used",
        .enabled(if: geteuid() == 0 && Program.path(of: "setpriv") != nil, "only root can be another user"))
    func unknownUser() async throws {
        let command = ["env", "-i", "setpriv", "--reuid=4242", "--regid=4242", "--clear-groups", Checkout.hexlist]
        guard try await Command.run(command + ["--version"]).status == 0 else { return }  // the checkout is not accessible to other users
        let output = try await Command.run(command + ["status"])
        #expect(output.status == 5 && output.err.contains("/.local/share/hexlist/control.sock"), "\(output)")
    }
}
