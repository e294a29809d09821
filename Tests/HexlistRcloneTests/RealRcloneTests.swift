import Foundation
import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistSystem
import NIOPosix
import Synchronization
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@testable import HexlistRclone

private enum Installed {
    static let environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"]

    /// The reason why the tests cannot run with the installed rclone.
    static let obstacle: String? = {
        guard let program = RcloneSettings(environment: environment).program else { return "rclone is not installed" }
        // "rclone v1.60.1-DEV", followed by more lines.
        let said = (try? ChildProcess.answer(program, ["version"], environment: environment))?.said ?? ""
        guard let start = said.firstRange(of: "rclone v")?.upperBound else { return "rclone does not say its version" }
        let version = said[start...].prefix { $0.isNumber || $0 == "." }
        let parts = version.split(separator: ".").compactMap { Int($0) }
        return parts.lexicographicallyPrecedes(RcloneFault.oldest) ? "rclone \(version) is too old" : nil
    }()
}

/// The installed rclone with its own WebDAV server.
@Suite(
    "rclone itself", .enabled(if: Installed.obstacle == nil, "\(Installed.obstacle ?? "")"), .timeLimit(.minutes(5)), .serialized)
struct RealRcloneTests {
    private static let environment = Installed.environment

    private final class Said: Sendable {
        private let bytes = Mutex<[UInt8]>([])

        func add(_ more: ArraySlice<UInt8>) -> String {
            bytes.withLock {
                $0 += more
                return String(decoding: $0, as: UTF8.self)
            }
        }
    }

    /// Calls `body` with rclone and the path of its configuration, after writing it.
    private func with(
        _ configuration: String, idle: Duration = .seconds(60), environment: [String: String] = Self.environment,
        change: (inout RcloneSettings) -> Void = { _ in }, _ body: @Sendable (Rclone, TemporaryFolder) async throws -> Void
    ) async throws {
        try await TemporaryFolder.with { folder in
            try folder.write(configuration, to: "rclone.conf")
            var settings = RcloneSettings(configuration: folder.path + "/rclone.conf", environment: environment)
            settings.idle = idle
            change(&settings)
            let rclone = Rclone(settings: settings, group: .singletonMultiThreadedEventLoopGroup, sleep: { _ in })
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await rclone.run() }
                defer { group.cancelAll() }
                try await body(rclone, folder)
            }
            #expect(await !rclone.process.isUp)
        }
    }

    /// Calls `body` with the port of a WebDAV server for a folder.
    private func serving(_ folder: String, _ body: @Sendable @escaping (Int) async throws -> Void) async throws {
        let path = try #require(RcloneSettings(environment: Self.environment).program)
        let program = Program(path, ["serve", "webdav", "--addr", "127.0.0.1:0", "--config", "/nonexistent/none", folder])
        let said = Said()
        let (ports, announced) = AsyncStream.makeStream(of: Int.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                _ = await program.run(
                    environment: Self.environment.map { "\($0)=\($1)" }, milliseconds: 100_000, outputBytes: 1 << 16
                ) { bytes in
                    let text = said.add(bytes)
                    guard let start = text.range(of: "http://127.0.0.1:")?.upperBound else { return }
                    if let port = Int(text[start...].prefix { $0.isNumber }), text[start...].contains("/") { announced.yield(port) }
                }
            }
            for await port in ports {
                try await body(port)
                break
            }
            group.cancelAll()
        }
    }

    @Test("lists folders, refuses links as WebDAV does, and reports missing paths") func webdav() async throws {
        try await TemporaryFolder.with { files in
            mkdir(files.path + "/sub", 0o700)
            try files.write("three", to: "a.txt")
            try files.write("x", to: "sub/ü b.txt")
            try await serving(files.path) { port in try await webdav(port) }
        }
    }

    private func webdav(_ port: Int) async throws {
        try await with("[dav]\ntype = webdav\nurl = http://127.0.0.1:\(port)/\nvendor = other\n[:bad]\ntype = local\n") { rclone, _ in
            let remotes = try await rclone.remotes()
            #expect(remotes.map(\.name) == ["dav"])
            let dav = try #require(remotes.first)
            #expect(dav.kind == "webdav" && dav.service == "webdav" && dav.view.usable)
            let page = try await dav.page(of: .root, by: .name, after: nil, limit: 10)
            #expect(page.items.map(\.name) == ["a.txt", "sub"] && page.items[0].size == 5 && page.next == nil)
            #expect(page.items[0].modified != nil && page.items[1].kind.known == .folder)
            let first = try await dav.page(of: .root, by: .size, after: nil, limit: 1)
            let second = try await dav.page(of: .root, by: .size, after: first.next, limit: 1)
            #expect(first.items.map(\.name) + second.items.map(\.name) == ["a.txt", "sub"] && second.next == nil)
            let sub = try #require(SharePath(["sub"]))
            #expect(try await dav.page(of: sub, by: .name, after: nil, limit: 10).items.map(\.name) == ["ü b.txt"])
            await Self.expect(.notFound) { _ = try await dav.page(of: #require(SharePath(["no"])), by: .name, after: nil, limit: 1) }
            await Self.expect(.badRequest) { _ = try await dav.page(of: #require(SharePath(["a.txt"])), by: .name, after: nil, limit: 1) }
            let replies = Mutex<[ServiceLinkResult]>([])
            let paths = try (0..<20).map { try #require(SharePath(["\($0).txt"])) } + [#require(SharePath(["a.txt"]))]
            try await dav.links(to: paths, expire: nil, revokes: false) { reply in replies.withLock { $0.append(reply) } }
            let told = replies.withLock { $0 }
            #expect(told.count == 21 && told.allSatisfy { $0.url == nil && $0.code == "notSupported" })
            #expect(await rclone.process.starts == 1)
        }
    }

    @Test("errors of a remote are reported, and a remote named like this machine's shares works") func wrongSettings()
        async throws
    {
        try await TemporaryFolder.with { files in
            try files.write("three", to: "a.txt")
            let configuration = """
                [shares]
                type = alias
                remote = \(files.path)
                [secret]
                type = crypt
                remote = \(files.path)
                password = plain
                [weird]
                type = nosuch
                [untyped]
                remote = x
                [astray]
                type = alias
                remote = \(files.path)/nowhere
                """
            try await with(configuration) { rclone, folder in
                let remotes = try await rclone.remotes()
                #expect(remotes.map(\.view.name) == ["rclone.shares", "secret", "weird", "untyped", "astray"])
                #expect(try await remotes[0].page(of: .root, by: .name, after: nil, limit: 9).items.map(\.name) == ["a.txt"])
                let hints = ["rclone obscure", "help backends", "no type", "config`"]
                for (remote, hint) in zip(remotes.dropFirst(), hints) {
                    do {
                        _ = try await remote.page(of: .root, by: .name, after: nil, limit: 9)
                        Issue.record("\(remote.name) was listed")
                    } catch let error as HexlistError {
                        let said = error.hint ?? ""
                        #expect(said.contains(hint) && said.contains("--config \(folder.path)/rclone.conf"), "\(remote.name): \(said)")
                    }
                }
                #expect(await rclone.process.starts == 1)
            }
        }
        let nowhere = Rclone(
            settings: RcloneSettings(configuration: "/nonexistent/rclone.conf", environment: Self.environment),
            group: .singletonMultiThreadedEventLoopGroup, sleep: { _ in })
        await #expect { _ = try await nowhere.remotes() } throws: { "\($0)".contains("/nonexistent/rclone.conf does not exist") }
    }

    @Test("copies files over existing ones, reports missing ones, and ends with its task", .timeLimit(.minutes(5)))
    func copies() async throws {
        try await TemporaryFolder.with { files in
            mkdir(files.path + "/sub", 0o700)
            try files.write("three", to: "a.txt")
            try files.write("x", to: "sub/ü ／ b.txt")
            try await serving(files.path) { port in try await copies(port) }
        }
    }

    private func copies(_ port: Int) async throws {
        let configuration = "[dav]\ntype = webdav\nurl = http://127.0.0.1:\(port)/\nvendor = other\n"
        try await with(configuration + "[gone]\ntype = webdav\nurl = http://127.0.0.1:1/\nvendor = other\n") { rclone, to in
            for (names, text) in [(["a.txt"], "three"), (["sub", "ü ／ b.txt"], "x")] {
                try to.write("what is there, and longer", to: ".remote.1.part")
                let link = RemoteLink(remote: "dav", path: try #require(SharePath(names)))
                try await rclone.copy(link, to: to.path, as: ".remote.1.part")
                #expect(try String(contentsOfFile: to.path + "/.remote.1.part", encoding: .utf8) == text)
            }
            for (remote, name, outcome) in [
                ("dav", "no.txt", TransferQueue.AttemptResult.final), ("none", "a.txt", .final), ("gone", "a.txt", .sourceFault),
            ] {
                do {
                    try await rclone.copy(RemoteLink(remote: remote, path: #require(SharePath([name]))), to: to.path, as: ".remote.2.part")
                    Issue.record("\(remote):\(name) was copied")
                } catch let fault as RemoteFault { #expect(fault.outcome == outcome, "\(fault)") }
            }
            let task = Task {
                // Cancelled from inside, because a loaded machine may copy the file before another task cancels this one.
                withUnsafeCurrentTask { $0?.cancel() }
                try await rclone.copy(RemoteLink(remote: "dav", path: #require(SharePath(["a.txt"]))), to: to.path, as: "x")
            }
            await #expect(throws: (any Error).self) { try await task.value }
        }
        // If rclone is missing, the transfer waits.
        try await with("", environment: ["PATH": "/nonexistent"]) { rclone, to in
            do {
                try await rclone.copy(RemoteLink(remote: "dav", path: #require(SharePath(["a.txt"]))), to: to.path, as: "x")
                Issue.record("it was copied")
            } catch let fault as RemoteFault { #expect(fault.outcome == .interrupted(progressed: false) && fault.reason == "rclone") }
        }
    }

    private static func expect(_ code: HexlistError.Code, _ body: () async throws -> Void) async {
        do {
            try await body()
            Issue.record("nothing was thrown")
        } catch {
            #expect((error as? HexlistError)?.code == code, "\(error)")
        }
    }

    @Test("ends when idle, and starts again with the next request") func idle() async throws {
        try await with("[here]\ntype = local\n", idle: .milliseconds(1)) { rclone, folder in
            let here = try #require(try await rclone.remotes().first)
            let path = try #require(SharePath(folder.path.split(separator: "/").map(String.init)))
            for _ in 0..<3 {
                #expect(try await here.page(of: path, by: .name, after: nil, limit: 10).items.isEmpty == false)
                try await eventually { await !rclone.process.isUp }
            }
            #expect(await rclone.process.starts >= 3)
        }
    }

    @Test("requests during start and end are all answered") func manyAtOnce() async throws {
        try await with("[here]\ntype = local\n", idle: .zero) { rclone, folder in
            let here = try #require(try await rclone.remotes().first)
            let path = try #require(SharePath(folder.path.split(separator: "/").map(String.init)))
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<40 {
                    group.addTask { try await here.page(of: path, by: .name, after: nil, limit: 10).items.count }
                }
                for try await count in group { #expect(count == 1) }
            }
        }
    }

    @Test("an encrypted configuration without a password command, and with a failing one") func encrypted() async throws {
        // rclone's header. The text after it can be anything, because it is not decrypted without a password.
        let text = "# Encrypted rclone configuration File\n\nRCLONE_ENCRYPT_V0:\n" + String(repeating: "QUJD", count: 40) + "\n"
        try await with(text) { rclone, _ in
            await Self.expect(.gone) {
                do { _ = try await rclone.remotes() } catch let error as HexlistError {
                    #expect(error.hint?.contains("services.rclone.passwordCommand") == true, "\(error)")
                    throw error
                }
            }
        }
        try await with(text, change: { $0.passwordCommand = "/bin/false" }) { rclone, _ in
            await Self.expect(.gone) {
                do { _ = try await rclone.remotes() } catch let error as HexlistError {
                    #expect(error.message.contains("did not print the password"), "\(error)")
                    throw error
                }
            }
        }
    }

    @Test("an rclone that is too old, another program, and one that exits at once") func others() async throws {
        try await TemporaryFolder.with { folder in try await others(folder) }
    }

    private func others(_ folder: TemporaryFolder) async throws {
        let old = """
            #!/usr/bin/python3
            import http.server
            class H(http.server.BaseHTTPRequestHandler):
                def do_POST(self):
                    self.rfile.read(int(self.headers['content-length']))
                    body = b'{"version":"v1.53.3","decomposed":[1,53,3]}'
                    self.send_response(200); self.send_header('content-length', str(len(body))); self.end_headers(); self.wfile.write(body)
            s = http.server.HTTPServer(('127.0.0.1', 0), H)
            print('NOTICE: Serving remote control on http://127.0.0.1:%d/' % s.server_port, flush=True)
            s.serve_forever()
            """
        for (name, text, words) in [
            ("old", old, "rclone v1.53.3 is too old."), ("dead", "#!/bin/sh\necho out of order\nexit 3\n", "out of order"),
        ] {
            mkdir("\(folder.path)/\(name)", 0o700)
            try folder.write(text, to: "\(name)/rclone")
            chmod("\(folder.path)/\(name)/rclone", 0o700)
            var environment = Self.environment
            environment["PATH"] = "\(folder.path)/\(name):/usr/bin:/bin"
            try await with("", environment: environment) { rclone, _ in
                do {
                    _ = try await rclone.remotes()
                    Issue.record("\(name) was taken")
                } catch let error as HexlistError { #expect(error.message.contains(words), "\(error)") }
            }
        }
        try await with("", environment: ["PATH": "/nonexistent:relative"]) { rclone, _ in
            await Self.expect(.gone) {
                do { _ = try await rclone.remotes() } catch let error as HexlistError {
                    #expect(error.message == "rclone is not installed.")
                    throw error
                }
            }
        }
    }
}
