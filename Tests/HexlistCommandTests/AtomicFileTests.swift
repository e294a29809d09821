import Foundation
import Testing

@testable import hexlist

@Suite("Atomic file writes")
struct NewFileTests {
    @Test("a file gets its name when complete, mode 0600, replacing an existing one") func whole() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder) }
        for text in ["first", "second"] {
            let before = try names()
            let file = try AtomicFile(path: "\(folder)/file")
            try Array(text.utf8).withUnsafeBytes { try file.write($0) }
            #expect(try names() == before)
            try file.finish()
            #expect(try names() == ["file"])
            #expect(try String(contentsOfFile: "\(folder)/file", encoding: .utf8) == text)
            let mode = try FileManager.default.attributesOfItem(atPath: "\(folder)/file")[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
        let left = try AtomicFile(path: "\(folder)/other")
        left.discard()
        #expect(try names() == ["file"])
        #expect(throws: (any Error).self) { try AtomicFile(path: "\(folder)/missing/file") }
    }
}
