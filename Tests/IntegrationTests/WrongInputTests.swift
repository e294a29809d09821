import Foundation
import Testing

/// Each kind of wrong input gives a message with advice and the documented exit code, and loses no data. On loopback, without namespaces.
@Suite(
    "Wrong input", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Checkout.hasPrograms, "needs hexlistd and hexlist: build first"))
struct WrongInput {
    @Test(
        "no daemon: status 5, with a message of one or two lines that names it",
        arguments: [["status"], ["peers"], ["inbox"], ["send", "--to", "x", "https://a.example"]])
    func noDaemon(arguments: [String]) async throws {
        try await LocalDaemon.with { local in
            let output = try await Command.run([Checkout.hexlist] + arguments, environment: local.environment)
            #expect(output.status == 5, "\(output)")
            #expect(output.err.contains("hexlistd"))
            #expect(output.out.isEmpty)
            #expect(isShort(output.err))
        }
    }

    @Test(
        "an invalid configuration: status 2, with the file and the error",
        arguments: [
            (yaml: "name: local\nrecieveFrom: held\n", words: ["recieveFrom", "receiveFrom"]),
            (yaml: "limits:\n  heldHexPerPeer: 3\n", words: ["heldHexPerPeer", "heldHexesPerPeer"]),
            (yaml: "receiveFrom: nobody\n", words: ["receiveFrom", "nobody"]),
            (yaml: "port: 99999\n", words: ["port", "99999"]),
            (yaml: "transport: plain\n", words: ["transport", "tls"]),
            (yaml: "name: [\n", words: ["config.yaml"]),
        ])
    func configuration(yaml: String, words: [String]) async throws {
        try await LocalDaemon.with { local in
            try local.folder.write(yaml, to: "config.yaml")
            let output = try await local.refused()
            #expect(output.status == 2, "\(output)")
            for word in words + ["config.yaml"] { #expect(output.err.contains(word), "\(output)") }
            #expect(isShort(output.err))
            #expect(!FileManager.default.fileExists(atPath: local.socket))
        }
    }

    @Test("a configuration is checked without a daemon, and reported as refused by a running one; each value shows its source")
    func checkedConfiguration() async throws {
        try await LocalDaemon.with { local in
            let path = "\(local.folder.path)/config.yaml"
            let good = try await local.hexlist("config", "--check", path)
            #expect(good.status == 0 && good.out.contains("\(path) can be used."), "\(good)")
            try local.folder.write("name: local\nlimits.heldDay: 3\n", to: "wrong.yaml")
            let wrong = try await local.hexlist("config", "--check", "\(local.folder.path)/wrong.yaml")
            #expect(wrong.status == 2 && wrong.err.contains("wrong.yaml, line 2: there is no key `limits.heldDay`"), "\(wrong)")
            #expect(wrong.err.contains("Did you mean `limits.heldDays`?") && isShort(wrong.err), "\(wrong)")
            let json = try await local.hexlist("config", "--json", "--check", "\(local.folder.path)/none.yaml")
            #expect(json.status == 2 && json.out.contains(#""ok":false"#), "\(json)")
            try await local.running {
                let shown = try await local.hexlist("config")
                #expect(shown.status == 0 && shown.out.contains("the file, line 1") && shown.out.contains("the command line"), "\(shown)")
                try local.folder.write("name: local\nlimits.heldDay: 3\n", to: "config.yaml")
                let pid = try #require(JSONLines.member("pid", of: try await local.hexlist("status", "--json").out).flatMap(Int32.init))
                kill(pid, SIGHUP)
                try await Patience.until(or: "the status says nothing") {
                    try await local.hexlist("status").out.contains("the file has an error, the previous configuration stays: ")
                }
                let doctor = try await local.hexlist("doctor")
                #expect(doctor.out.contains("The changed configuration has an error"), "\(doctor)")
                try local.folder.write("name: other\nport: 4711\n", to: "config.yaml")
                kill(pid, SIGHUP)
                try await Patience.until(or: "the name stays") { try await local.hexlist("status").out.contains("other") }
                #expect(try await !local.hexlist("status").out.contains("the file has an error"))
            }
        }
    }

    @Test("hexlist without a command: status 0, with news and suggestions, or how to start a daemon")
    func alone() async throws {
        try await LocalDaemon.with { local in
            let without = try await Command.run([Checkout.hexlist], environment: local.environment)
            #expect(without.status == 0 && without.err.contains("hexlistd") && without.err.contains("hexlist --help"), "\(without)")
            try await local.running {
                let with = try await Command.run([Checkout.hexlist], environment: local.environment)
                for words in ["something is wrong  hexlist doctor", "hexlist --help"] {
                    #expect(with.status == 0 && with.out.contains(words), "\(with)")
                }
            }
        }
    }

    @Test("a typing error in a command, an option or a peer's name gets a suggestion")
    func slips() async throws {
        try await LocalDaemon.with { local in
            try await local.running {
                for (arguments, status, words) in [
                    (["inbx"], 2, "Did you mean `hexlist inbox`?"), (["inbox", "--unraed"], 2, "Did you mean `--unread`?"),
                    (["nonsense"], 2, "More: `hexlist --help`."), (["doctor", "a", "--peer", "b"], 2, "Give one peer"),
                ] as [([String], Int32, String)] {
                    let output = try await Command.run([Checkout.hexlist] + arguments, environment: local.environment)
                    #expect(output.status == status && output.err.contains(words) && isShort(output.err), "\(output)")
                }
                let doctor = try await local.hexlist("doctor", "nobody")
                #expect(doctor.status == 6 && doctor.out.contains("There is no peer \"nobody\"."), "\(doctor)")
            }
        }
    }

    @Test("a port in use: status 1, with its number and advice")
    func portInUse() async throws {
        try await LocalDaemon.with { first in
            try await first.running {
                let port = try await port(of: first)
                try await LocalDaemon.with { second in
                    try second.folder.write("name: second\nlisten: [127.0.0.1]\nport: \(port)\n", to: "config.yaml")
                    let output = try await Command.run([Checkout.hexlistd], environment: second.environment)
                    #expect(output.status == 1, "\(output)")
                    #expect(output.err.contains("\(port)"))
                    let pid = try #require(JSONLines.member("pid", of: try await first.hexlist("status", "--json").out))
                    #expect(output.err.contains("hexlistd (pid \(pid)) listens there."), "\(output)")
                    #expect(isShort(output.err))
                }
                #expect(try await first.hexlist("status").status == 0)
            }
        }
    }

    @Test("a second daemon on the same folder is refused with the first one's process id")
    func secondDaemon() async throws {
        try await LocalDaemon.with { local in
            try await local.running {
                let pid = try #require(JSONLines.member("pid", of: try await local.hexlist("status", "--json").out))
                let output = try await local.refused()
                #expect(output.status == 1, "\(output)")
                #expect(output.err.contains(pid))
                #expect(try await local.hexlist("status").status == 0)
            }
        }
    }

    @Test("an unusable state folder: status 1, with its path", arguments: [StateFault.isFile, .isClosed])
    func stateFolder(fault: StateFault) async throws {
        try await LocalDaemon.with { local in
            switch fault {
            case .isFile: try local.folder.write("not a folder", to: "state")
            case .isClosed:
                // Root may open a folder of any mode, so for root the state folder is put below a regular file instead.
                guard getuid() != 0 else {
                    try local.folder.write("not a folder", to: "parent")
                    let output = try await local.refused("--state-dir", "\(local.folder.path)/parent/state")
                    #expect(output.status == 1, "\(output)")
                    #expect(output.err.contains("\(local.folder.path)/parent/state"))
                    return
                }
                try FileManager.default.createDirectory(
                    atPath: local.state, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o000])
            }
            let output = try await local.refused()
            #expect(output.status == 1, "\(output)")
            #expect(output.err.contains(local.state))
            #expect(isShort(output.err))
        }
    }

    enum StateFault: Sendable { case isFile, isClosed }

    @Test(
        "a file that is not a database, or not ours, is refused and left unchanged", arguments: [StoreFault.isText, .isAnotherProgrammes])
    func database(fault: StoreFault) async throws {
        try await LocalDaemon.with { local in
            // A first start creates the state folder with its identity.
            try await local.running {}
            for file in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: local.store + file) {
                try FileManager.default.removeItem(atPath: local.store + file)
            }
            switch fault {
            case .isText:
                try Data(String(repeating: "This is a letter to my aunt.\n", count: 100).utf8).write(to: URL(fileURLWithPath: local.store))
            case .isAnotherProgrammes:
                let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('CREATE TABLE recipe(name)'); c.commit()"
                let made = try await Command.run(["/usr/bin/python3", "-I", "-c", script, local.store])
                #expect(made.status == 0, "\(made)")
            }
            let bytes = try Data(contentsOf: URL(fileURLWithPath: local.store))
            let output = try await local.refused()
            #expect(output.status == 1, "\(output)")
            #expect(output.err.contains(local.store))
            #expect(isShort(output.err))
            #expect(try Data(contentsOf: URL(fileURLWithPath: local.store)) == bytes)
        }
    }

    enum StoreFault: Sendable { case isText, isAnotherProgrammes }

    @Test("a store on an unmounted disk is refused until it is mounted; a lost one is only recreated on request")
    func absentStore() async throws {
        try await LocalDaemon.with { local in
            try await local.running {
                let added = try await local.hexlist("mine", "add", "https://example.org/kept")
                #expect(added.status == 0, "\(added)")
            }
            let (disk, unmounted) = ("\(local.folder.path)/disk", "\(local.folder.path)/unmounted")
            let files = FileManager.default
            try files.createDirectory(atPath: disk, withIntermediateDirectories: false)
            try files.moveItem(atPath: local.store, toPath: "\(disk)/hexlist.sqlite")
            try files.createSymbolicLink(atPath: local.store, withDestinationPath: "\(disk)/hexlist.sqlite")
            try files.moveItem(atPath: disk, toPath: unmounted)
            for arguments in [[], ["--begin-anew"]] {
                let output = try await Command.run([Checkout.hexlistd] + arguments, environment: local.environment)
                #expect(output.status == 1 && output.err.contains("\(disk)/hexlist.sqlite"), "\(output)")
                #expect(isShort(output.err))
            }
            try files.moveItem(atPath: unmounted, toPath: disk)
            try await local.running {
                let kept = try await local.hexlist("mine")
                #expect(kept.out.contains("example.org"), "\(kept)")
            }

            try files.removeItem(atPath: local.store)
            let refused = try await local.refused()
            #expect(refused.status == 1 && refused.err.contains("identity.pem") && refused.err.contains("--begin-anew"), "\(refused)")
            let anew = try await local.refused("--begin-anew")
            #expect(anew.status == 0 && anew.out.contains("new and empty") && anew.out.contains("as before"), "\(anew)")
            let again = try await local.refused("--begin-anew")
            #expect(again.status == 2, "\(again)")
            try await local.running {
                let empty = try await local.hexlist("mine")
                #expect(empty.status == 0 && !empty.out.contains("example.org"), "\(empty)")
            }
        }
    }

    @Test("an identity that is damaged, or readable by others, is refused and left unchanged", arguments: [true, false])
    func identity(isDamaged: Bool) async throws {
        try await LocalDaemon.with { local in
            try await local.running {}
            let path = "\(local.state)/identity.pem"
            let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            let kept = isDamaged ? bytes.prefix(bytes.count / 2) : bytes
            try kept.write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: isDamaged ? 0o600 : 0o644], ofItemAtPath: path)
            let output = try await local.refused()
            #expect(output.status == 1, "\(output)")
            #expect(output.err.contains(path))
            #expect(isShort(output.err))
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == kept)
        }
    }

    @Test("usage errors have status 2, an unknown hex or peer status 6, each with its name")
    func usage() async throws {
        try await LocalDaemon.with { local in
            try await local.running {
                for arguments in [["nonsense"], ["peers", "--nonsense"], ["show", "seven"], ["send", "https://example.org"]] {
                    let output = try await Command.run([Checkout.hexlist] + arguments, environment: local.environment)
                    #expect(output.status == 2, "\(output)")
                    #expect(!output.err.isEmpty)
                }
                for (arguments, word) in [
                    (["show", "4711"], "4711"), (["delete", "4711"], "4711"), (["peer", "block", "nobody"], "nobody"),
                    (["peer", "show", "AAAA"], "AAAA"),
                ] {
                    let output = try await Command.run([Checkout.hexlist] + arguments, environment: local.environment)
                    #expect(output.status == 6, "\(output)")
                    #expect(output.err.contains(word))
                    #expect(isShort(output.err))
                }
            }
        }
    }

    @Test("without a D-Bus bus the daemon runs and reports that; SIGTERM ends it with status 0")
    func withoutBus() async throws {
        try await LocalDaemon.with { local in
            let status = try await local.running {
                var row: StatusRow?
                // The daemon looks for D-Bus in parallel to its start, so the status may not have the result yet.
                try await Patience.until(or: "\(String(describing: row))") {
                    row = try JSONLines.decode(try await local.hexlist("status", "--json").out, as: StatusRow.self).first
                    return row?.avahi.state == "unavailable"
                }
                #expect(row?.avahi.message?.isEmpty == false)
                #expect(row?.name == "local")
            }
            #expect(status == 0)
            #expect(!FileManager.default.fileExists(atPath: local.socket))
        }
    }

    private func port(of local: LocalDaemon) async throws -> Int {
        let output = try await local.hexlist("status", "--json")
        return try #require(try JSONLines.decode(output.out, as: StatusRow.self).first).port
    }

    /// Whether a text is one or two readable lines, apart from earlier log lines: no stack trace, no Swift type.
    private func isShort(_ text: String) -> Bool {
        let lines = text.split(separator: "\n")
        return !lines.isEmpty && lines.count <= 6 && !text.contains("HexlistError") && !text.contains("Swift.")
    }
}
