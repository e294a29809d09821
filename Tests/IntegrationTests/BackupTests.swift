import Foundation
import Testing

@Suite("Backup and restore", .timeLimit(.minutes(Patience.test)), .ifBuilt)
struct BackupTests {
    private struct Status: Decodable { var uuid: String }

    private func uuid(_ daemon: LocalDaemon) async throws -> String {
        let shown = try await daemon.hexlist("status", "--json")
        return try JSONDecoder().decode(Status.self, from: Data(shown.out.utf8)).uuid
    }

    @Test("a backup of a running daemon is restored on a machine without one; existing state is moved aside")
    func restored() async throws {
        try await LocalDaemon.with { one in
            let file = "\(one.folder.path)/copy"
            var identity = ""
            try await one.running {
                identity = try await uuid(one)
                let done = try await one.hexlist("backup", file)
                #expect(done.status == 0 && done.out.contains("private key"), "\(done)")
                let again = try await one.hexlist("backup", file)
                #expect(again.status == 2 && again.err.contains("--force"), "\(again)")
                #expect(try await one.hexlist("backup", file, "--force", "--json").status == 0)
                let nowhere = try await one.hexlist("backup", "\(one.folder.path)/no/copy")
                #expect(nowhere.status == 1 && nowhere.err.contains("cannot be written"), "\(nowhere)")
                let running = try await one.hexlist("restore", file, "--yes")
                #expect(running.status == 1 && running.err.contains("Stop it first"), "\(running)")
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: one.folder.path).filter { $0.hasSuffix(".part") }
            #expect(left.isEmpty)

            try await LocalDaemon.with { other in
                var before = ""
                try await other.running { before = try await uuid(other) }
                let asked = try await other.hexlist("restore", file)
                #expect(asked.status == 2 && asked.err.contains("--yes"), "\(asked)")
                let wrong = try await other.hexlist("restore", "\(other.state)/identity.pem", "--yes")
                #expect(wrong.status == 2 && wrong.err.contains("not a Hexlist backup"), "\(wrong)")
                try await other.running {
                    let now = try await uuid(other)
                    #expect(now == before)
                }

                let kept = ["files/\(String(repeating: "a", count: 64))", "offers/0123456789abcdef"]
                for path in kept {
                    try FileManager.default.createDirectory(atPath: "\(other.state)/\(path)", withIntermediateDirectories: true)
                    try Data("kept".utf8).write(to: URL(fileURLWithPath: "\(other.state)/\(path)/a"))
                }
                let restored = try await other.hexlist("restore", file, "--yes")
                #expect(
                    restored.status == 0 && restored.out.contains(identity) && restored.out.contains("Two machines cannot"), "\(restored)")
                try await other.running {
                    let now = try await uuid(other)
                    #expect(now == identity)
                }
                let folders = try FileManager.default.contentsOfDirectory(atPath: other.state).filter { $0.hasPrefix("before-restore-") }
                #expect(folders.count == 1)
                let aside = try FileManager.default.contentsOfDirectory(atPath: "\(other.state)/\(folders[0])")
                #expect(aside.contains("identity.pem") && aside.contains("hexlist.sqlite"))
                for path in kept {
                    let left = try Data(contentsOf: URL(fileURLWithPath: "\(other.state)/\(folders[0])/\(path)/a"))
                    #expect(left == Data("kept".utf8))
                }
                #expect(!FileManager.default.fileExists(atPath: "\(other.state)/restoring"))
            }
        }
    }
}
