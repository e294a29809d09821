import DaemonTestSupport
import Glibc
import HexlistModel
import HexlistNode
import HexlistSystem
import Logging
import Synchronization
import TestSupport
import Testing

@testable import HexlistDaemon
@testable import HexlistStore

/// Real scripts, started by a real node's events.
@Suite("Hooks", .timeLimit(.minutes(5)))
struct HookTests {
    /// A node, its hooks and their folder. Pauses between retries take no time.
    private struct Stage {
        let daemon: TestDaemon
        let hooks: Hooks
        let folder: TemporaryFolder
        let log: Lines
        /// The path of the daemon's socket in a hook's environment.
        let socket: Lines

        var store: HexStore { daemon.node.store }

        /// Creates an executable script, under a temporary name first, so that it is never started half-written.
        func hook(_ event: EventType, _ script: String, mode: mode_t = 0o700) throws {
            try folder.write("#!/bin/sh\n" + script + "\n", to: "hooks/new")
            chmod("\(folder.path)/hooks/new", mode)
            rename("\(folder.path)/hooks/new", "\(folder.path)/hooks/\(event.rawValue)")
        }

        func read(seconds: Int = 30) async {
            var settings = Settings.Hooks()
            settings.timeoutSeconds = seconds
            await hooks.read(settings)
        }

        @discardableResult
        func happens(_ event: EventType, _ data: String? = nil) async throws -> Int64 {
            try await store.appendEvent(event, at: 0, data: data)
        }

        func until(_ condition: @escaping @Sendable (StoreReader) throws -> Bool) async throws {
            try await eventually { try await store.read(condition) }
        }

        /// Waits for a file that a hook creates.
        func file(_ name: String) async throws -> String {
            try await eventualValue("a hook made \(name)") { try? SmallFile.read("\(folder.path)/\(name)", limit: 1 << 20) }
        }

        func lines(_ name: String) -> [Substring] {
            (try? SmallFile.read("\(folder.path)/\(name)", limit: 1 << 20))?.split(separator: "\n") ?? []
        }
    }

    private final class Lines: Sendable {
        let bytes = Mutex<[UInt8]>([])
        var text: String { bytes.withLock { String(decoding: $0, as: UTF8.self) } }
    }

    private func stage(
        pause: @escaping @Sendable (Duration) -> Duration = { _ in .zero }, _ body: (Stage) async throws -> Void
    ) async throws {
        try await TemporaryFolder.with { folder in
            mkdir("\(folder.path)/hooks", 0o700)
            try await TestDaemon.with("ada") { daemons in
                let log = Lines()
                let logger = Logger(label: "hooks") {
                    StderrLogHandler(
                        label: $0, settings: Settings.Log(level: .trace), write: { line in log.bytes.withLock { $0 += line } },
                        now: { .init(milliseconds: 0) })
                }
                let own = [
                    "PATH": "/usr/bin:/bin", "HOME": folder.path, "LANG": "C", "NOTIFY_SOCKET": "/n", "SECRET_TOKEN": "s3cret",
                    "LD_PRELOAD": "",
                ]
                let socket = Lines()
                socket.bytes.withLock { $0 = Array("/s".utf8) }
                let hooks = Hooks(
                    folder: HookFolder(path: "\(folder.path)/hooks"), supervisor: daemons[0].supervisor,
                    environment: { HookEnvironment.make(from: own, socket: socket.text, stateFolder: "/f") + ["OUT=\(folder.path)"] },
                    faults: daemons[0].hookFaults,
                    logger: logger, pause: pause)
                let stage = Stage(daemon: daemons[0], hooks: hooks, folder: folder, log: log, socket: socket)
                let result: Result<Void, any Error>
                do {
                    try await body(stage)
                    result = .success(())
                } catch {
                    result = .failure(error)
                }
                await hooks.stop()
                try result.get()
            }
        }
    }

    @Test("a hook gets the path of the socket that the daemon listens on when the hook starts")
    func currentSocket() async throws {
        try await stage { stage in
            try stage.hook(.alertReceived, "echo $HEXLIST_SOCKET >>$OUT/told")
            await stage.read()
            try await stage.happens(.alertReceived)
            try await eventually("the hook ran") { stage.lines("told") == ["/s"] }
            stage.socket.bytes.withLock { $0 = Array("/f/control.sock".utf8) }
            try await stage.happens(.alertReceived)
            try await eventually("the hook ran again") { stage.lines("told") == ["/s", "/f/control.sock"] }
        }
    }

    @Test("a hook continues with the node of a rotated identity")
    func newIdentity() async throws {
        try await stage { stage in
            try stage.hook(.alertReceived, "cat >>$OUT/told")
            await stage.read()
            try await stage.happens(.alertReceived)
            try await eventually("the hook ran") { stage.lines("told").count == 1 }
            try await stage.daemon.supervisor.rotate()
            try await stage.happens(.alertReceived)
            try await eventually("the hook ran again") { stage.lines("told").count == 2 }
        }
    }

    @Test("a hook gets the events of its name as JSON, in order and one at a time; events before its creation are skipped")
    func order() async throws {
        try await stage { stage in
            try await stage.happens(.peerGhost)
            // Two concurrent runs would find each other's folder.
            try stage.hook(.peerGhost, "mkdir $OUT/busy || echo twice >>$OUT/log; cat >>$OUT/log; rmdir $OUT/busy")
            await stage.read()
            for index in 1...20 {
                try await stage.happens(.peerGhost, #"{"index":"\#(index)"}"#)
                try await stage.happens(.peerUp)
            }
            try await stage.happens(.peerGhost)
            try stage.hook(.peerDown, "echo done >$OUT/other")
            await stage.read()
            try await stage.happens(.peerDown)
            _ = try await stage.file("other")
            let last = try await stage.store.read { try $0.counts().lastEvent } - 1
            try await untilPassed(stage, .peerGhost, last)
            let lines = stage.lines("log")
            #expect(lines.count == 21)
            for (index, line) in lines.dropLast().enumerated() {
                let head = #"{"number":\#(2 + 2 * index),"at":"1970-01-01T00:00:00.000Z","type":"peer.ghost","#
                #expect(line == head + #""data":{"index":"\#(index + 1)"}}"#)
            }
        }
    }

    @Test("hexes of one range row in the log are passed one at a time")
    func runs() async throws {
        try await stage { stage in
            try stage.hook(.hexReceived, "cat >>$OUT/log")
            await stage.read()
            _ = try await stage.store.write { writer in
                try writer.change { try writer.record(.hexReceived, at: 0, count: 150, peer: nil, hex: 7) }
            }
            try await untilPassed(stage, .hexReceived, 150)
            #expect(stage.lines("log").count == 150)
            #expect(stage.lines("log").last?.contains(#""number":150"#) == true)
            #expect(stage.lines("log").last?.contains(#""hex":156"#) == true)
        }
    }

    @Test("a failing hook is retried five times, then reported as an event and skipped")
    func failing() async throws {
        try await stage { stage in
            try stage.hook(.peerUp, "cat >>$OUT/log; echo 'bad\u{1B}[31m luck' >&2; exit 3")
            await stage.read()
            let first = try await stage.happens(.peerUp)
            try await stage.until { try $0.eventPage(since: 0, limit: 9, of: [.hookFailed]).items.count == 1 }
            let second = try await stage.happens(.peerUp)
            try await stage.until { try $0.eventPage(since: 0, limit: 9, of: [.hookFailed]).items.count == 2 }
            let numbers = stage.lines("log").map { $0.prefix { $0 != "," } }
            #expect(numbers.filter { $0 == #"{"number":\#(first)"# }.count == 6)
            #expect(numbers.filter { $0 == #"{"number":\#(second)"# }.count == 6)
            #expect(numbers.count == 12)
            let failed = try await stage.store.read { try $0.eventPage(since: 0, limit: 9, of: [.hookFailed]).items }
            #expect(stage.daemon.hookFaults.all.map(\.hook) == ["peer.up"])
            #expect(stage.daemon.hookFaults.all.first?.message.hasPrefix("it failed: it ended with status 3 (event ") == true)
            #expect(failed[0].data == #"{"hook":"peer.up","number":\#(first),"error":"it ended with status 3"}"#)
            #expect(stage.log.text.contains("bad \u{FFFD}[31m luck") || stage.log.text.contains("bad\u{FFFD}[31m luck"))
        }
    }

    @Test("a failing hook for hook failures makes no endless chain")
    func failedHookFails() async throws {
        try await stage { stage in
            try stage.hook(.hookFailed, "echo x >>$OUT/log; exit 1")
            await stage.read()
            let number = try await stage.happens(.hookFailed)
            try await untilPassed(stage, .hookFailed, number)
            #expect(stage.lines("log").count == 6)
            #expect(try await stage.store.read { try $0.eventPage(since: 0, limit: 9, of: [.hookFailed]).items.count } == 1)
        }
    }

    @Test("a hook inherits no descriptor, secret or blocked signal; it has its own session and the working directory `/`")
    func inheritance() async throws {
        try await stage { stage in
            try stage.hook(
                .peerUp,
                """
                ls /proc/self/fd >$OUT/fds 3>&-
                env | sort >$OUT/env
                pwd >$OUT/pwd
                cut -d' ' -f1,5,6 /proc/$$/stat >$OUT/session
                grep -E 'Sig(Blk|Ign)' /proc/self/status >$OUT/signals
                echo done >$OUT/done
                """)
            await stage.read()
            // A descriptor without FD_CLOEXEC, which a child would inherit.
            let unmarked = open("/dev/null", O_RDONLY)
            defer { close(unmarked) }
            try await stage.happens(.peerUp)
            _ = try await stage.file("done")
            // `ls` opens a descriptor for the folder it lists.
            #expect(stage.lines("fds") == ["0", "1", "2", "3"])
            let names = Set(stage.lines("env").map { String($0.prefix { $0 != "=" }) })
            #expect(
                names.subtracting(["PWD", "SHLVL", "_", "OLDPWD"])
                    == ["PATH", "HOME", "LANG", "OUT", "HEXLIST_EVENT", "HEXLIST_SOCKET", "HEXLIST_STATE_DIR"])
            #expect(stage.lines("env").contains("HEXLIST_EVENT=peer.up"))
            #expect(stage.lines("pwd") == ["/"])
            let session = try #require(stage.lines("session").first).split(separator: " ")
            #expect(session[0] == session[1] && session[1] == session[2])
            // Signals 32 and 33 belong to the C library.
            #expect(stage.lines("signals") == ["SigBlk:\t0000000000000000", "SigIgn:\t0000000180000000"])
        }
    }

    @Test("a hook that exceeds its time is killed with its children, even if it ignores SIGTERM")
    func timeLimit() async throws {
        try await stage { stage in
            try stage.hook(
                .peerUp,
                """
                test -e $OUT/again && exit 0
                trap '' TERM
                sleep 1000 & echo $! $$ >$OUT/pids.new
                mv $OUT/pids.new $OUT/again
                sleep 1000
                """)
            await stage.read(seconds: 1)
            let number = try await stage.happens(.peerUp)
            try await untilPassed(stage, .peerUp, number)
            for pid in stage.lines("again").flatMap({ $0.split(separator: " ") }).compactMap({ pid_t($0) }) {
                #expect(kill(pid, 0) == -1 || Self.isZombie(pid), "\(pid) lives")
            }
            #expect(stage.log.text.contains("it took longer than 1 s"))
        }
    }

    @Test("processes that a hook leaves behind are killed with it")
    func leftovers() async throws {
        try await stage { stage in
            try stage.hook(.peerUp, "sleep 1000 & echo $! >$OUT/pid")
            await stage.read()
            let number = try await stage.happens(.peerUp)
            try await untilPassed(stage, .peerUp, number)
            let pid = try #require(stage.lines("pid").first.flatMap { pid_t($0) })
            // SIGKILL takes effect some time after the signal was sent.
            try await eventually { kill(pid, 0) == -1 || Self.isZombie(pid) }
        }
    }

    @Test(
        "endless output, unread input and closed standard streams block nothing",
        arguments: [
            (script: "exec yes", succeeds: false), (script: "exec cat /dev/zero >&2", succeeds: false), (script: "exit 0", succeeds: true),
            (script: "exec <&- >&- 2>&-; exit 0", succeeds: true), (script: "head -c 65000 /dev/zero; exit 0", succeeds: true),
        ])
    func streams(script: String, succeeds: Bool) async throws {
        try await stage { stage in
            try stage.hook(.peerUp, script)
            await stage.read()
            // The event is larger than the buffer of a pipe.
            let number = try await stage.happens(.peerUp, #"{"long":"\#(String(repeating: "x", count: 200_000))"}"#)
            try await untilPassed(stage, .peerUp, number)
            #expect(try await stage.store.read { try $0.eventPage(since: number, limit: 1).items.isEmpty } == succeeds)
            #expect(stage.log.text.utf8.count < 20_000)
        }
    }

    @Test("a file that is not a program is not run by a shell, and counts as a failure")
    func noShell() async throws {
        try await stage { stage in
            try stage.folder.write("echo run >\(stage.folder.path)/run\n", to: "hooks/peer.up")
            chmod("\(stage.folder.path)/hooks/peer.up", 0o700)
            await stage.read()
            try await stage.happens(.peerUp)
            try await stage.until { try $0.eventPage(since: 0, limit: 9, of: [.hookFailed]).items.count == 1 }
            #expect(stage.lines("run").isEmpty)
            #expect(stage.log.text.contains("Exec format error"))
        }
    }

    @Test(
        "a hook that others can write to is not run, and the log says why",
        arguments: [(mode: mode_t(0o720), word: "others may write"), (0o702, "others may write"), (0o600, "not executable")])
    func refused(mode: mode_t, word: String) async throws {
        try await stage { stage in
            try stage.hook(.peerUp, "cat >>$OUT/log", mode: mode)
            await stage.read()
            try await notRun(stage, because: word)
            // After the fix the next event starts the hook, which also gets the events since the failure.
            chmod("\(stage.folder.path)/hooks/peer.up", 0o700)
            let number = try await stage.happens(.peerUp)
            try await untilPassed(stage, .peerUp, number)
            #expect(stage.lines("log").count == 2)
        }
    }

    @Test("a hook in a folder that others can write to is not run")
    func refusedFolder() async throws {
        try await stage { stage in
            try stage.hook(.peerUp, "cat >>$OUT/log")
            chmod("\(stage.folder.path)/hooks", 0o777)
            await stage.read()
            #expect(stage.log.text.contains("others may write"))
            try await stage.happens(.peerUp)
            #expect(stage.lines("log").isEmpty)
            #expect(try await stage.store.read { try $0.meta("hook peer.up") } == nil)
            chmod("\(stage.folder.path)/hooks", 0o700)
        }
    }

    @Test(
        "a hook below a folder that others can write to is not run, at any level; a sticky bit protects own entries",
        arguments: [(mode: mode_t(0o777), isRun: false), (0o1777, true), (0o770, false), (0o755, true)])
    func folderAbove(mode: mode_t, isRun: Bool) async throws {
        try await TemporaryFolder.with { folder in
            let path = "\(folder.path)/a/b/hooks"
            try PrivateFolder.make(path)
            symlink(path, "\(folder.path)/link")
            for above in ["\(folder.path)/a", "\(folder.path)/a/b"] {
                chmod(above, mode)
                for name in [path, "\(folder.path)/link"] {
                    let fault = HookFolder(path: name).fault()
                    #expect((fault == nil) == isRun, "\(name)")
                    if !isRun { #expect(fault?.description.contains("others may write to \(above)") == true) }
                }
                chmod(above, 0o700)
            }
        }
    }

    @Test("a hook of another user is not run", .enabled(if: geteuid() == 0, "only root can give a file away"))
    func foreign() async throws {
        try await stage { stage in
            try stage.hook(.peerUp, "cat >>$OUT/log")
            chown("\(stage.folder.path)/hooks/peer.up", 4_711, 4_711)
            await stage.read()
            try await notRun(stage, because: "it belongs to user 4711")
        }
    }

    @Test("permissions that change later are noticed before the next run; events since then are passed once they are fixed")
    func refusedLater() async throws {
        try await stage { stage in
            try stage.hook(.peerUp, "cat >>$OUT/log")
            await stage.read()
            let first = try await stage.happens(.peerUp)
            try await untilPassed(stage, .peerUp, first)
            chmod("\(stage.folder.path)/hooks/peer.up", 0o722)
            try await stage.happens(.peerUp)
            try await eventually("the refusal is logged") { stage.log.text.contains("others may write") }
            chmod("\(stage.folder.path)/hooks/peer.up", 0o700)
            // No reload is needed: the mode is checked again at the next event.
            try await stage.happens(.peerUp)
            try await untilPassed(stage, .peerUp, first + 2)
            #expect(stage.lines("log").count == 3)
        }
    }

    @Test("a hook whose file is missing at an event skips this event, and runs at the next one")
    func missing() async throws {
        try await stage { stage in
            try stage.hook(.peerUp, "cat >>$OUT/log")
            await stage.read()
            unlink("\(stage.folder.path)/hooks/peer.up")
            let missed = try await stage.happens(.peerUp)
            try await untilPassed(stage, .peerUp, missed)
            #expect(stage.log.text.contains("it is gone"))
            try stage.hook(.peerUp, "cat >>$OUT/log")
            let number = try await stage.happens(.peerUp)
            try await untilPassed(stage, .peerUp, number)
            #expect(stage.lines("log").count == 1 && stage.lines("log").first?.contains("\"number\":\(number)") == true)
        }
    }

    @Test("a hook whose file is missing briefly, as while an editor saves it, skips no event")
    func replaced() async throws {
        let folder = Mutex<String?>(nil)
        // The missing file of the hook is restored before the retry.
        try await stage(pause: { _ in
            folder.withLock { path in
                if let path { rename("\(path)/away", "\(path)/hooks/peer.up") }
            }
            return .zero
        }) { stage in
            try stage.hook(.peerUp, "cat >>$OUT/log")
            await stage.read()
            folder.withLock { $0 = stage.folder.path }
            rename("\(stage.folder.path)/hooks/peer.up", "\(stage.folder.path)/away")
            let number = try await stage.happens(.peerUp)
            try await untilPassed(stage, .peerUp, number)
            #expect(stage.lines("log").count == 1)
        }
    }

    @Test("a removed hook starts afresh when it returns; names that are not events are reported")
    func gone() async throws {
        try await stage { stage in
            try stage.hook(.peerUp, "cat >>$OUT/log")
            try stage.hook(EventType(rawValue: "peer.upp"), "true")
            await stage.read()
            #expect(stage.log.text.contains("nearest=peer.up"))
            unlink("\(stage.folder.path)/hooks/peer.up")
            await stage.read()
            #expect(try await stage.store.read { try $0.meta("hook peer.up") } == nil)
            try await stage.happens(.peerUp)
            try stage.hook(.peerUp, "cat >>$OUT/log")
            await stage.read()
            let number = try await stage.happens(.peerUp)
            try await untilPassed(stage, .peerUp, number)
            #expect(stage.lines("log").count == 1)
        }
    }

    @Test("removing hooks during a read of the event log logs no error")
    func removedWhileReading() async throws {
        try await stage { stage in
            for _ in 0..<20 {
                for event in [EventType.peerUp, .peerDown, .hexReceived] { try stage.hook(event, "true") }
                await stage.read()
                for event in [EventType.peerUp, .peerDown, .hexReceived] { unlink("\(stage.folder.path)/hooks/\(event.rawValue)") }
                await stage.read()
            }
            #expect(!stage.log.text.contains("CancellationError") && !stage.log.text.contains(" error "))
        }
    }

    @Test("a stop kills a running hook without counting a failure; the next start repeats the run")
    func stopping() async throws {
        try await stage { stage in
            try stage.hook(
                .peerUp, "test -e $OUT/go && exec cat >$OUT/log; echo $$ >$OUT/pid.new; mv $OUT/pid.new $OUT/pid; exec sleep 1000")
            await stage.read()
            let number = try await stage.happens(.peerUp)
            let pid = try #require(pid_t(try await stage.file("pid").prefix { $0 != "\n" }))
            await stage.hooks.stop()
            #expect(kill(pid, 0) == -1)
            #expect(try await stage.store.read { try $0.meta("hook peer.up") } == "\(number - 1) 0")
            try stage.folder.write("", to: "go")
            await stage.read()
            try await untilPassed(stage, .peerUp, number)
            #expect(stage.lines("log").count == 1)
        }
    }

    /// Waits until a hook has finished an event.
    private func untilPassed(_ stage: Stage, _ hook: EventType, _ number: Int64) async throws {
        try await stage.until { try $0.meta("hook \(hook.rawValue)") == "\(number) 0" }
    }

    private func notRun(_ stage: Stage, because word: String) async throws {
        #expect(stage.log.text.contains(word))
        try await stage.happens(.peerUp)
        // Logged when the folder was read and again at the event.
        try await eventually("\(word), twice") { stage.log.text.ranges(of: word).count >= 2 }
        #expect(stage.lines("log").isEmpty)
    }

    private static func isZombie(_ pid: pid_t) -> Bool {
        let status = try? SmallFile.read("/proc/\(pid)/stat", limit: 4_096)
        return status?.contains(") Z ") ?? true
    }
}

@Suite("A hook's position in the log")
struct HookCursorTests {
    @Test("five retries, each after twice the pause, then the next event")
    func tries() {
        var cursor = HookCursor(number: 7)
        for seconds in [1, 2, 4, 8, 16] {
            #expect(cursor.fail(8) == .retry(after: .seconds(seconds)))
            #expect(cursor.number == 7)
        }
        #expect(HookCursor(text: cursor.text) == cursor)
        #expect(cursor.fail(8) == .giveUp)
        #expect(cursor == HookCursor(number: 8))
        #expect(cursor.fail(9) == .retry(after: .seconds(1)))
        cursor.pass(9)
        #expect(cursor == HookCursor(number: 9))
        cursor.pass(3)
        #expect(cursor.number == 9)
    }

    @Test("invalid positions are refused", arguments: ["", "7", "7 ", "7 6", "-1 0", "7 -1", "x 0", "7 0 0", "99999999999999999999 0"])
    func damaged(text: String) { #expect(HookCursor(text: text) == nil) }
}
