import Foundation
import TestSupport
import Testing

@testable import HexlistFiles

@Suite("Mailbox folders", .timeLimit(.minutes(5))) struct MailboxFolderTests {
    private static let sizes = 0...100

    private static func with(_ body: (MailboxFolder, String) throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            let mailboxes = MailboxFolder(path: folder.path)
            try mailboxes.create("A")
            try body(mailboxes, "\(folder.path)/A")
        }
    }

    @Test("a file is written, listed, read, replaced and removed") func files() async throws {
        try await Self.with { folder, path in
            try folder.write([1, 2], as: "b", in: "A")
            try folder.write([3], as: "a", in: "A")
            try folder.write([1, 2, 3], as: "b", in: "A")
            #expect(try folder.names(in: "A") { _ in true } == ["a", "b"])
            #expect(try folder.read("b", in: "A", sizes: Self.sizes)?.bytes == [1, 2, 3])
            #expect(folder.contains("b", in: "A") && !folder.contains("c", in: "A"))
            #expect(folder.remove("b", in: "A"))
            #expect(folder.remove("b", in: "A"), "gone already")
            #expect(try folder.names(in: "A") { _ in true } == ["a"])
            #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["a"])
        }
    }

    @Test("links, folders, pipes, missing files and other sizes are not read") func strange() async throws {
        try await Self.with { folder, path in
            try FileManager.default.createSymbolicLink(atPath: "\(path)/link", withDestinationPath: "/etc/hostname")
            try FileManager.default.createDirectory(atPath: "\(path)/folder", withIntermediateDirectories: false)
            #expect(mkfifo("\(path)/pipe", 0o600) == 0)
            try folder.write(Array(repeating: 1, count: 101), as: "long", in: "A")
            for name in ["link", "folder", "pipe", "long", "missing"] {
                #expect(try folder.read(name, in: "A", sizes: Self.sizes) == nil, "\(name)")
            }
            #expect(try folder.names(in: "A") { _ in true } == ["long"])
        }
    }

    @Test("a mailbox that is a link, missing, or no name is not opened") func mailboxes() async throws {
        try await Self.with { folder, path in
            try FileManager.default.createSymbolicLink(atPath: "\(folder.path)/B", withDestinationPath: path)
            for mailbox in ["B", "C", "", ".", "..", "A/../A", "../A"] {
                #expect(throws: FileFault.self, "\(mailbox)") { try folder.names(in: mailbox) { _ in true } }
                #expect(throws: FileFault.self, "\(mailbox)") { try folder.write([1], as: "a", in: mailbox) }
                #expect(!folder.contains("a", in: mailbox))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
        }
    }

    @Test("a link under the temporary name is replaced, and its target stays") func temporary() async throws {
        try await Self.with { folder, path in
            let target = "\(folder.path)/target"
            try Data("kept".utf8).write(to: URL(filePath: target))
            try FileManager.default.createSymbolicLink(atPath: "\(path)/.a.tmp", withDestinationPath: target)
            try folder.write([1], as: "a", in: "A")
            #expect(try String(contentsOfFile: target, encoding: .utf8) == "kept")
            #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["a"])
        }
    }

    @Test("files of interrupted writes are removed after a day, and nothing else") func interrupted() async throws {
        try await Self.with { folder, path in
            for name in [".old.tmp", ".new.tmp", "old", ".old"] { try Data([1]).write(to: URL(filePath: "\(path)/\(name)")) }
            let old = Date.now - 100_000
            for name in [".old.tmp", "old", ".old"] {
                try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: "\(path)/\(name)")
            }
            try folder.create("A")
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).sorted() == [".new.tmp", ".old", "old"])
            #expect(try folder.read("old", in: "A", sizes: Self.sizes).map { $0.age >= 100_000 } == true)
        }
    }

    @Test("files have the folder's mode, whatever the umask is") func modes() async throws {
        try await Self.with { folder, path in
            #expect(chmod(path, 0o770) == 0)
            try folder.write([1], as: "a", in: "A")
            #expect(TemporaryFolder.mode("\(path)/a") == 0o660)
        }
    }
}
