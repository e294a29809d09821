import Foundation
import HexlistAPI
import HexlistModel
import HexlistSystem
import HexlistTransport
import NIOEmbedded
import TestSupport
import Testing

@testable import HexlistDaemon
@testable import HexlistStore

@Suite("Starting", .timeLimit(.minutes(5)))
struct StartupTests {
    @Test("the state folder is created with its parents, private to this user, and locked")
    func stateFolder() async throws {
        try await TemporaryFolder.with { folder in
            let path = "\(folder.path)/a/b/state"
            let state = try StateFolder(path: path)
            #expect(TemporaryFolder.mode(path) == 0o700)
            #expect(TemporaryFolder.mode("\(folder.path)/a") == 0o700)
            #expect(TemporaryFolder.mode("\(path)/hexlistd.lock") == 0o600)

            let error = try #require(throws: HexlistError.self) { try StateFolder(path: path) }
            #expect(error.code == .alreadyRunning)
            #expect(error.message.contains("pid \(getpid())"))
            #expect(error.message.contains(path))
            withExtendedLifetime(state) {}
        }
    }

    @Test("a lock ends with its process")
    func lock() async throws {
        try await TemporaryFolder.with { folder in
            for _ in 0..<2 { _ = try StateFolder(path: folder.path) }
        }
    }

    @Test("an interrupted backup's files are removed by the next daemon that locks the folder")
    func leftBackup() async throws {
        try await TemporaryFolder.with { folder in
            let backup = StateFolder.backupPath(folder.path)
            let state = try StateFolder(path: folder.path)
            for path in [backup, backup + "-journal"] { close(creat(path, 0o600)) }
            #expect(throws: HexlistError.self) { try StateFolder(path: folder.path) }
            #expect(access(backup, F_OK) == 0)
            withExtendedLifetime(state) {}
            try await TemporaryFolder.with { other in
                let left = [StateFolder.backupPath(other.path), StateFolder.backupPath(other.path) + "-journal"]
                for path in left { close(creat(path, 0o600)) }
                _ = try StateFolder(path: other.path)
                #expect(left.allSatisfy { access($0, F_OK) != 0 })
            }
        }
    }

    @Test("a folder readable by others is made private")
    func openFolder() async throws {
        try await TemporaryFolder.with { folder in
            chmod(folder.path, 0o755)
            _ = try StateFolder(path: folder.path)
            #expect(TemporaryFolder.mode(folder.path) == 0o700)
        }
    }

    @Test("a path that cannot be a state folder is reported with advice", arguments: ["file", "file/state"])
    func badStateFolder(name: String) async throws {
        try await TemporaryFolder.with { folder in
            try folder.write("x", to: "file")
            let error = try #require(throws: HexlistError.self) { try StateFolder(path: "\(folder.path)/\(name)") }
            #expect(error.code == .stateFolder)
            #expect(error.message.contains("\(folder.path)/\(name)"))
            #expect(error.hint?.contains("--state-dir") == true)
        }
    }

    @Test("another user's folder is refused", .enabled(if: geteuid() == 0, "only root can give a folder away"))
    func foreignFolder() async throws {
        try await TemporaryFolder.with { folder in
            chown(folder.path, 4_711, 4_711)
            let error = try #require(throws: HexlistError.self) { try StateFolder(path: folder.path) }
            #expect(error.message.contains("4711"))
        }
    }

    @Test("a stale socket is replaced, a live one is not")
    func socketInUse() async throws {
        try await TemporaryFolder.with { folder in
            let path = "\(folder.path)/control.sock"
            let listener = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
            #expect(SystemSocket.withUnixAddress(path) { bind(listener, $0, $1) } == 0)
            #expect(listen(listener, 1) == 0)
            let error = try #require(throws: HexlistError.self) { try ControlSocket(path: path, isNamed: true) }
            #expect(error.code == .alreadyRunning)
            #expect(error.message.contains(path))

            close(listener)
            #expect(throws: Never.self) { try ControlSocket(path: path, isNamed: true) }
            #expect(TemporaryFolder.mode(path) != nil)  // the old socket stays, and the new owner removes it when it binds
        }
    }

    @Test("of two daemons that start at once, one wins")
    func socketLock() async throws {
        try await TemporaryFolder.with { folder in
            let path = "\(folder.path)/new/control.sock"
            let first = try ControlSocket(path: path, isNamed: false)
            #expect(TemporaryFolder.mode("\(folder.path)/new") == 0o700)
            #expect(throws: HexlistError.self) { try ControlSocket(path: path, isNamed: false) }
            withExtendedLifetime(first) {}
        }
    }

    @Test("the current socket is the fallback one once that exists")
    func currentSocket() async throws {
        try await TemporaryFolder.with { folder in
            let state = try StateFolder(path: "\(folder.path)/state")
            let path = "\(folder.path)/run/control.sock"
            let socket = try ControlSocket(path: path, isNamed: false, state: state)
            #expect(socket.current == path)
            let spare = try #require(try socket.spare())
            #expect(spare.path == "\(state.path)/control.sock" && socket.current == spare.path)
        }
    }

    @Test("a path where no socket can be created is refused")
    func badSocket() async throws {
        try await TemporaryFolder.with { folder in
            try folder.write("keep me", to: "file")
            let long = "\(folder.path)/\(String(repeating: "x", count: 108))"
            for (path, code) in [
                ("\(folder.path)/file", HexlistError.Code.configuration), ("\(folder.path)/file/control.sock", .stateFolder),
                (long, .configuration),
            ] {
                let error = try #require(throws: HexlistError.self) { try ControlSocket(path: path, isNamed: true) }
                #expect(error.code == code)
                #expect(error.hint?.contains("--socket") == true)
            }
            #expect(TemporaryFolder.mode("\(folder.path)/file") != nil)

            mkdir("\(folder.path)/shared", 0o777)
            chmod("\(folder.path)/shared", 0o777)
            #expect(throws: HexlistError.self) { try ControlSocket(path: "\(folder.path)/shared/control.sock", isNamed: true) }
            chmod("\(folder.path)/shared", 0o1777)
            #expect(throws: Never.self) { try ControlSocket(path: "\(folder.path)/shared/control.sock", isNamed: true) }
        }
    }

    /// A trace of earlier use in a store whose identity is missing.
    enum Use: String, CaseIterable { case identity, trust, hex, value }

    @Test("an identity is created once; a missing one beside a used store is an error", arguments: Use.allCases)
    func identity(_ use: Use) async throws {
        try await TemporaryFolder.with { folder in
            let store = try HexStore(path: "\(folder.path)/hexlist.sqlite")
            defer { try? store.close() }
            switch use {
            case .identity:
                let first = try await OwnIdentity.open(folder: folder.path, store: store)
                #expect(try await OwnIdentity.open(folder: folder.path, store: store).fingerprint == first.fingerprint)
            case .trust:
                let other = try Identity.ephemeral()
                try store.writeSync { writer in
                    _ = try writer.setTrust(other.peerID, .trusted, fingerprint: other.fingerprint, name: "other", at: 0)
                }
            case .hex: _ = try store.writeSync { try $0.insertMine(HexContent(), at: 0) }
            case .value: try await store.setMeta(["port": "24391"])
            }
            unlink("\(folder.path)/\(Identity.fileName)")
            let error = try await #require(throws: HexlistError.self) { try await OwnIdentity.open(folder: folder.path, store: store) }
            #expect(error.code == .identity && error.hint?.contains("--begin-anew") == true)
            #expect(error.message.contains("\(folder.path)/\(Identity.fileName)"))
            #expect(TemporaryFolder.mode("\(folder.path)/\(Identity.fileName)") == nil)
        }
    }

    @Test("a store refuses another store's identity, and accepts its own")
    func otherIdentity() async throws {
        try await TemporaryFolder.with { folder in
            let store = try HexStore(path: "\(folder.path)/hexlist.sqlite")
            defer { try? store.close() }
            let own = try await OwnIdentity.open(folder: folder.path, store: store)
            let other = try Identity.replace(in: folder.path)
            for _ in 0..<2 {
                let error = try await #require(throws: HexlistError.self) { try await OwnIdentity.open(folder: folder.path, store: store) }
                #expect(error.code == .identity && error.hint?.contains(own.peerID.shortID) == true, "\(error.hint ?? "")")
                #expect(error.message.contains(own.peerID.shortID) && error.message.contains(other.peerID.shortID), "\(error.message)")
                #expect(try Identity.load(from: folder.path)?.fingerprint == other.fingerprint)
            }
            unlink("\(folder.path)/\(Identity.fileName)")
            _ = try Identity.restore(own.pemBytes, in: folder.path)
            #expect(try await OwnIdentity.open(folder: folder.path, store: store).fingerprint == own.fingerprint)
        }
    }

    @Test("a store without a recorded UUID adopts the present identity, and from then on refuses others", arguments: [nil, "made"])
    func adoptedIdentity(_ kept: String?) async throws {
        try await TemporaryFolder.with { folder in
            let store = try HexStore(path: "\(folder.path)/hexlist.sqlite")
            defer { try? store.close() }
            _ = try await OwnIdentity.open(folder: folder.path, store: store)
            try await store.setMeta(["identity": kept])
            let adopted = try Identity.replace(in: folder.path)
            #expect(try await OwnIdentity.open(folder: folder.path, store: store).fingerprint == adopted.fingerprint)
            _ = try Identity.replace(in: folder.path)
            await #expect(throws: HexlistError.self) { try await OwnIdentity.open(folder: folder.path, store: store) }
        }
    }

    @Test("a backup copied after a rotation is restored with its own identity")
    func restoredIdentity() async throws {
        try await TemporaryFolder.with { folder in
            let old = try Identity.ephemeral()
            let store = try HexStore(path: "\(folder.path)/hexlist.sqlite")
            _ = try await OwnIdentity.open(folder: folder.path, store: store)
            let backup = "\(folder.path)/backup"
            try await store.backUp(to: backup, files: [Identity.fileName: old.pemBytes], diskReserve: 0)
            try store.close()
            #expect(try Restore.run(backup, into: folder.path).peer == old.peerID)
            try await start(folder.path)
        }
    }

    /// A part of a state folder that is missing, or an entry that is in the way.
    enum Missing: String, CaseIterable {
        case store, storeButLog, deadLink, storeAndIdentityButFiles, storeAndIdentityButOffers, storeAndIdentityInARestore
        case storeAndIdentityButFilesMovedAside
        case identityInARestore, storeAndIdentityMovedAside, storeIsFolder, storeIsEmpty, identityIsDeadLink, identityIsFolder

        /// Removes the part, or creates the obstacle, in a complete state folder.
        func make(in folder: String) throws {
            let (store, identity) = ("\(folder)/hexlist.sqlite", "\(folder)/identity.pem")
            func gone(_ paths: String...) { for path in paths { unlink(path) } }
            func made(_ folder: String) { mkdir(folder, 0o700) }
            switch self {
            case .store: gone(store)
            case .storeButLog:
                gone(store, identity)
                close(creat(store + "-wal", 0o600))
            case .deadLink:
                gone(store)
                symlink("\(folder)/unmounted/hexlist.sqlite", store)
            case .storeAndIdentityButFiles:
                gone(store, identity)
                made("\(folder)/files")
            case .storeAndIdentityButOffers:
                gone(store, identity)
                made("\(folder)/offers")
            case .storeAndIdentityInARestore:
                gone(store, identity)
                made("\(folder)/restoring")
            case .identityInARestore:
                gone(identity)
                made("\(folder)/restoring")
            case .storeAndIdentityMovedAside:
                gone(store, identity)
                made("\(folder)/before-restore-20310405T0607")
            case .storeAndIdentityButFilesMovedAside:
                gone(store, identity)
                made("\(folder)/before-begin-anew-20310405T0607")
            case .storeIsFolder:
                gone(store)
                made(store)
            case .storeIsEmpty:
                gone(store)
                close(creat(store, 0o600))
            case .identityIsDeadLink:
                gone(identity)
                symlink("\(folder)/unmounted/identity.pem", identity)
            case .identityIsFolder:
                gone(identity)
                made(identity)
            }
        }
    }

    /// Runs the part of a start that checks the state folder.
    private func start(_ folder: String) async throws {
        try StateFolderContents.check(folder)
        let store = try HexStore(path: StateFolder.storePath(folder))
        defer { try? store.close() }
        _ = try await OwnIdentity.open(folder: folder, store: store)
    }

    @Test("a state folder with a missing part is not a first start: it is refused and left unchanged", arguments: Missing.allCases)
    func missing(_ missing: Missing) async throws {
        try await TemporaryFolder.with { folder in
            try await start(folder.path)
            try await start(folder.path)
            try missing.make(in: folder.path)
            let before = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
            for _ in 0..<2 {
                let error = try await #require(throws: HexlistError.self) { try await start(folder.path) }
                #expect(error.message.contains(folder.path) && error.hint?.isEmpty == false, "\(error.message)")
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
                !["hexlist.sqlite-shm", "hexlist.sqlite-wal"].contains($0) || before.contains($0)
            }
            #expect(left.sorted() == before)
        }
    }

    @Test(
        "an interrupted first start is completed",
        arguments: [[], ["hexlist.sqlite"], ["hexlist.sqlite.new"], ["identity.pem.new"]])
    func interrupted(_ left: [String]) async throws {
        try await TemporaryFolder.with { folder in
            for name in left {
                if name == "hexlist.sqlite" {
                    try HexStore(path: "\(folder.path)/\(name)").close()
                } else {
                    try folder.write("half", to: name)
                }
            }
            try await start(folder.path)
            try await start(folder.path)
        }
    }

    @Test("--begin-anew creates the missing part, and nothing else")
    func beginAnew() async throws {
        try await TemporaryFolder.with { folder in
            let first = try MissingPartsRecreation.run(in: folder.path)
            #expect(first.hasNewStore && first.hasNewIdentity)
            try await start(folder.path)
            let whole = try #require(throws: HexlistError.self) { try MissingPartsRecreation.run(in: folder.path) }
            #expect(whole.code == .badRequest)

            unlink("\(folder.path)/hexlist.sqlite")
            await #expect(throws: HexlistError.self) { try await start(folder.path) }
            #expect(
                try MissingPartsRecreation.run(in: folder.path)
                    == MissingPartsRecreation(peer: first.peer, hasNewStore: true, hasNewIdentity: false))
            try await start(folder.path)

            unlink("\(folder.path)/identity.pem")
            await #expect(throws: HexlistError.self) { try await start(folder.path) }
            let other = try MissingPartsRecreation.run(in: folder.path)
            #expect(!other.hasNewStore && other.hasNewIdentity && other.peer != first.peer)
            try await start(folder.path)

            unlink("\(folder.path)/hexlist.sqlite")
            symlink("unmounted", "\(folder.path)/hexlist.sqlite")
            let dead = try #require(throws: HexlistError.self) { try MissingPartsRecreation.run(in: folder.path) }
            #expect(dead.code == .storeUnusable && dead.message.contains("is a link to"), "\(dead)")
        }
    }

    @Test("--begin-anew moves a lost store's files aside, but leaves them if it creates no store")
    func beginAnewBesideFiles() async throws {
        try await TemporaryFolder.with { folder in
            try await start(folder.path)
            let kept = ["files/ab", "offers/cd"]
            for path in kept {
                mkdir("\(folder.path)/\(path.split(separator: "/")[0])", 0o700)
                try folder.write("kept", to: path)
            }
            unlink("\(folder.path)/identity.pem")
            #expect(try MissingPartsRecreation.run(in: folder.path).aside == nil)
            for path in kept { #expect(access("\(folder.path)/\(path)", F_OK) == 0) }

            unlink("\(folder.path)/hexlist.sqlite")
            symlink("unmounted", "\(folder.path)/hexlist.sqlite")
            #expect(throws: HexlistError.self) { try MissingPartsRecreation.run(in: folder.path) }
            for path in kept { #expect(access("\(folder.path)/\(path)", F_OK) == 0) }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(!names.contains { $0.hasPrefix("before-") })

            unlink("\(folder.path)/hexlist.sqlite")
            let anew = try MissingPartsRecreation.run(in: folder.path)
            let aside = try #require(anew.aside)
            #expect(anew.lines.contains { $0.contains(aside) })
            for path in kept {
                #expect(access("\(folder.path)/\(path)", F_OK) != 0)
                #expect(try String(contentsOfFile: "\(aside)/\(path)", encoding: .utf8) == "kept")
            }
            try await start(folder.path)
        }
    }

    @Test("a restore interrupted while it moves a state aside is refused at each point", arguments: 1..<7)
    func interruptedRestore(_ moved: Int) async throws {
        try await TemporaryFolder.with { folder in
            try await start(folder.path)
            let log = ["-wal", "-shm", "-journal"].map { "hexlist.sqlite" + $0 }
            for name in log { try folder.write("", to: name) }
            for name in ["files", "offers", "restoring", "before-restore-20310405T0607"] { mkdir("\(folder.path)/\(name)", 0o700) }
            for name in Restore.namesMovedAside.prefix(moved) {
                try #require(rename("\(folder.path)/\(name)", "\(folder.path)/before-restore-20310405T0607/\(name)") == 0)
            }
            let error = #expect(throws: HexlistError.self) { try StateFolderContents.check(folder.path) }
            #expect(error?.code == .stateFolder && error?.message.contains("interrupted") == true)
            #expect(throws: HexlistError.self) { try MissingPartsRecreation.run(in: folder.path) }
        }
    }

    @Test("a dangling symbolic link as state folder is refused with its target")
    func deadStateFolder() async throws {
        try await TemporaryFolder.with { folder in
            symlink("\(folder.path)/unmounted", "\(folder.path)/state")
            for path in ["\(folder.path)/state", "\(folder.path)/state/inside"] {
                let error = try #require(throws: HexlistError.self) { try StateFolder(path: path) }
                #expect(error.code == .stateFolder && error.hint?.isEmpty == false, "\(error.message)")
            }
            let error = try #require(throws: HexlistError.self) { try StateFolder(path: "\(folder.path)/state") }
            #expect(error.message.contains("\(folder.path)/unmounted"))
            #expect(access("\(folder.path)/unmounted", F_OK) != 0)
        }
    }

    @Test("systemd gets two watchdog signals per interval while the loop runs, and none when it hangs")
    func watchdog() async throws {
        try await TemporaryFolder.with { folder in
            let path = "\(folder.path)/notify"
            let receiver = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
            defer { close(receiver) }
            #expect(SystemSocket.withUnixAddress(path) { bind(receiver, $0, $1) } == 0)
            func signs() -> Int {
                var buffer = [UInt8](repeating: 0, count: 64)
                var count = 0
                while case let bytes = buffer.withUnsafeMutableBytes({ recv(receiver, $0.baseAddress, $0.count, 0) }), bytes > 0 {
                    count += String(decoding: buffer.prefix(bytes), as: UTF8.self) == "WATCHDOG=1" ? 1 : 0
                }
                return count
            }
            let loop = EmbeddedEventLoop()
            let environment = ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "10000000", "WATCHDOG_PID": "\(getpid())"]
            let notifier = SystemdNotifier(environment: environment)
            Watchdog(environment: environment, notifier: notifier)?.watch(loop)
            loop.run()
            #expect(signs() == 1)
            loop.advanceTime(by: .seconds(4))
            #expect(signs() == 0)
            loop.advanceTime(by: .seconds(1))
            #expect(signs() == 1)
            loop.advanceTime(by: .seconds(25))
            #expect(signs() == 5)
            // The loop is blocked, and no other thread may send the signal in its place.
            #expect(signs() == 0)
            for other in [[:], ["WATCHDOG_USEC": "x"], ["WATCHDOG_USEC": "0"], ["WATCHDOG_USEC": "9", "WATCHDOG_PID": "1"]] {
                #expect(Watchdog(environment: other, notifier: notifier) == nil)
            }
        }
    }

    @Test("systemd is notified by path and by abstract socket; without NOTIFY_SOCKET nothing is sent")
    func systemd() async throws {
        try await TemporaryFolder.with { folder in
            for path in ["\(folder.path)/notify", "@hexlist-test-\(getpid())"] {
                let receiver = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
                defer { close(receiver) }
                #expect(SystemSocket.withUnixAddress(path) { bind(receiver, $0, $1) } == 0)
                SystemdNotifier(environment: ["NOTIFY_SOCKET": path]).send(.ready)
                var buffer = [UInt8](repeating: 0, count: 64)
                let count = buffer.withUnsafeMutableBytes { recv(receiver, $0.baseAddress, $0.count, 0) }
                #expect(String(decoding: buffer.prefix(max(0, count)), as: UTF8.self) == "READY=1")
            }
            SystemdNotifier(environment: [:]).send(.ready)
            SystemdNotifier(environment: ["NOTIFY_SOCKET": "\(folder.path)/gone"]).send(.stopping)
        }
    }
}
