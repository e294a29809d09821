import Glibc
import TestSupport
import Testing

@testable import HexlistSystem

@Suite("Lock file of a running process", .timeLimit(.minutes(5)))
struct LockFileTests {
    private func holder(_ folder: String) -> LockFile.Holder? { LockFile.holder(of: "lock", in: folder) }

    @Test(
        "contents of the file",
        arguments: [
            ("12\n/run/a/control.sock\n", LockFile.Holder(pid: 12, socket: "/run/a/control.sock")),
            ("12\n", LockFile.Holder(pid: 12)), ("12\n/a\nb\n", LockFile.Holder(pid: 12, socket: "/a\nb")),
            // A truncated write, a relative path, no number.
            ("12\n/run/a/contr", LockFile.Holder(pid: 12)), ("12\ncontrol.sock\n", LockFile.Holder(pid: 12)),
            ("12\n/a\0b\n", LockFile.Holder(pid: 12)), ("12", LockFile.Holder(pid: nil)), ("", LockFile.Holder(pid: nil)),
            ("-1\n/a\n", LockFile.Holder(pid: nil)), ("x\n/a\n", LockFile.Holder(pid: nil)),
            ("99999999999999999999\n/a\n", LockFile.Holder(pid: nil)),
        ])
    func text(text: String, holder: LockFile.Holder) {
        #expect(LockFile.holder(text: Array(text.utf8)) == holder)
    }

    @Test("a live owner is reported with process and socket, and a second one is refused with both")
    func held() async throws {
        try await TemporaryFolder.with { folder in
            chmod(folder.path, 0o700)
            let path = "\(folder.path)/lock"
            #expect(holder(folder.path) == nil)
            let expected = LockFile.Holder(pid: Int(getpid()), socket: "/run/control.sock")
            do {
                let lock = try LockFile(path: path, socket: "/run/control.sock")
                #expect(holder(folder.path) == expected)
                #expect(throws: LockFile.Fault.held(expected)) { try LockFile(path: path) }
                // Neither the query nor the refusal released the lock.
                #expect(holder(folder.path) == expected)
                lock.write(socket: "/elsewhere")
                #expect(holder(folder.path)?.socket == "/elsewhere")
                lock.write(socket: nil)
                #expect(holder(folder.path) == LockFile.Holder(pid: Int(getpid())))
                withExtendedLifetime(lock) {}
            }
            // The content stays, as after SIGKILL.
            #expect(TemporaryFolder.mode(path) == 0o600)
            #expect(holder(folder.path) == nil)
        }
    }

    @Test("a lock ends with its object, even if a child has a copy of the descriptor")
    func copied() async throws {
        try await TemporaryFolder.with { folder in
            chmod(folder.path, 0o700)
            let path = "\(folder.path)/lock"
            // A copy of the descriptor, as a child process has it between fork and exec.
            let copy: CInt
            do {
                let lock = try LockFile(path: path)
                copy = dup(try #require((0..<1_024).first { Self.isOpen(path, as: $0) }))
                #expect(holder(folder.path) != nil)
                withExtendedLifetime(lock) {}
            }
            defer { close(copy) }
            #expect(copy >= 0 && holder(folder.path) == nil)
            _ = try LockFile(path: path)
        }
    }

    private static func isOpen(_ path: String, as descriptor: CInt) -> Bool {
        var (file, open) = (stat(), stat())
        guard stat(path, &file) == 0, fstat(descriptor, &open) == 0 else { return false }
        return file.st_ino == open.st_ino && file.st_dev == open.st_dev
    }

    @Test("a lock file that other users could have written, or that is not a regular file, is ignored; a linked folder is accepted")
    func trust() async throws {
        try await TemporaryFolder.with { folder in
            chmod(folder.path, 0o700)
            let state = "\(folder.path)/state"
            mkdir(state, 0o700)
            let lock = try LockFile(path: "\(state)/lock", socket: "/run/control.sock")
            for mode: mode_t in [0o770, 0o702, 0o1777] {
                chmod(state, mode)
                #expect(holder(state) == nil, "folder \(mode)")
            }
            chmod(state, 0o755)
            #expect(holder(state) != nil)
            for mode: mode_t in [0o620, 0o602] {
                chmod("\(state)/lock", mode)
                #expect(holder(state) == nil, "file \(mode)")
            }
            chmod("\(state)/lock", 0o600)
            symlink(state, "\(folder.path)/link")
            #expect(holder("\(folder.path)/link") != nil)
            symlink("\(state)/lock", "\(folder.path)/lock")
            #expect(holder(folder.path) == nil)
            unlink("\(folder.path)/lock")
            mkfifo("\(folder.path)/lock", 0o600)
            #expect(holder(folder.path) == nil)
            #expect(holder("\(folder.path)/missing") == nil)
            withExtendedLifetime(lock) {}
        }
    }

    @Test("another user's file or folder is ignored", .enabled(if: geteuid() == 0, "only root can give a file away"))
    func otherUser() async throws {
        try await TemporaryFolder.with { folder in
            chmod(folder.path, 0o700)
            let lock = try LockFile(path: "\(folder.path)/lock", socket: "/run/control.sock")
            #expect(holder(folder.path) != nil)
            for path in ["\(folder.path)/lock", folder.path] {
                chown(path, 4_711, 4_711)
                #expect(holder(folder.path) == nil)
                chown(path, geteuid(), getegid())
            }
            #expect(holder(folder.path) != nil)
            withExtendedLifetime(lock) {}
        }
    }
}
