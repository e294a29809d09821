import Glibc
import TestSupport
import Testing

@testable import HexlistFiles

@Suite("Offered files", .timeLimit(.minutes(5))) struct OfferedFileTests {
    private static func bytes(_ file: OfferedFile, at offset: Int64 = 0, count: Int = 100) throws(FileFault) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var read = 0
        do {
            read = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: offset) }
        } catch let fault as FileFault {
            throw fault
        } catch { throw .cancelled }
        return Array(bytes.prefix(read))
    }

    @Test("a regular file is read at any offset")
    func reads() async throws {
        try await TemporaryFolder.with { folder in
            try folder.write("0123456789", to: "a")
            let file = try OfferedFile(path: "\(folder.path)/a")
            #expect(file.size == 10)
            #expect(try Self.bytes(file) == Array("0123456789".utf8))
            #expect(try Self.bytes(file, at: 3, count: 4) == Array("3456".utf8))
            #expect(try Self.bytes(file, at: 10).isEmpty && Self.bytes(file, at: .max).isEmpty)
            try file.check()
            _ = try OfferedFile(path: "\(folder.path)/a", remembered: file.identity)
            var seen: [Int64] = []
            let digest = try FileDigest.sha256(of: file) {
                seen.append($0)
                return true
            }
            #expect(seen == [10] && digest.prefix(4) == [0x84, 0xD8, 0x98, 0x77])
            #expect(throws: FileFault.cancelled) { try FileDigest.sha256(of: file) { _ in false } }
        }
    }

    @Test("links, folders, pipes, sockets and missing files are not opened")
    func kinds() async throws {
        try await TemporaryFolder.with { folder in
            try folder.write("x", to: "a")
            #expect(symlink("a", "\(folder.path)/link") == 0 && mkfifo("\(folder.path)/pipe", 0o600) == 0)
            for (name, fault) in [
                ("link", FileFault.notRegular), ("pipe", .notRegular), ("", .notRegular), ("none", .notFound), ("a/b", .notFound),
                ("a\0b", .notFound),
            ] { #expect(throws: fault, "\(name)") { try OfferedFile(path: "\(folder.path)/\(name)") } }
            #expect(throws: FileFault.notRegular) { try OfferedFile(path: "/dev/null") }
            // A link that replaces the file later is detected too.
            let file = try OfferedFile(path: "\(folder.path)/a")
            #expect(rename("\(folder.path)/link", "\(folder.path)/a") == 0)
            #expect(throws: FileFault.notRegular) { try OfferedFile(path: "\(folder.path)/a", remembered: file.identity) }
        }
    }

    @Test("a changed file is detected before the first byte, while reading, and after the last")
    func changes() async throws {
        try await TemporaryFolder.with { folder in
            let path = "\(folder.path)/a"
            try folder.write("0123456789", to: "a")
            let file = try OfferedFile(path: path)
            #expect(truncate(path, 4) == 0)
            #expect(throws: FileFault.changed) { try Self.bytes(file) }
            #expect(try Self.bytes(file, at: 0, count: 4) == Array("0123".utf8))
            #expect(throws: FileFault.changed) { try file.check() }
            #expect(throws: FileFault.changed) { try OfferedFile(path: path, remembered: file.identity) }
            #expect(throws: FileFault.changed) { try FileDigest.sha256(of: file) }
            // The offered file is replaced by another file with the same bytes.
            let before = try OfferedFile(path: path)
            try folder.write("0123", to: "b")
            #expect(rename("\(folder.path)/b", path) == 0)
            #expect(throws: FileFault.changed) { try OfferedFile(path: path, remembered: before.identity) }
            // The replacement deleted the open file: its link count is 0 and its ctime changed.
            #expect(throws: FileFault.changed) { try before.check() }
            // The modification time is set back.
            let third = try OfferedFile(path: path)
            var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
            #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
            #expect(throws: FileFault.changed) { try third.check() }
            #expect(try OfferedFile(path: path).identity.modified == 1_000_000_000)
        }
    }
}
