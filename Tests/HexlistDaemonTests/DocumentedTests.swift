import Foundation
import HexlistStore
import Testing

@testable import HexlistDaemon

/// Lists in the documents that repeat lists of the code. Both must have the same entries.
@Suite("Lists in the documents are complete") struct DocumentedTests {
    @Test("Docs/Reference.md has every key of the configuration", arguments: SettingKey.all.map(\.name)) func key(_ name: String) throws {
        #expect(try Self.page("Reference", "Configuration").contains("`\(name)`"))
    }

    @Test("Docs/API.md has each event", arguments: EventType.all.map(\.rawValue)) func event(_ name: String) throws {
        #expect(try Self.page("API", "Streams").contains("`\(name)`"))
    }

    @Test("Docs/Hooks.md has each metric", arguments: MetricFamily.all.map(\.name)) func metric(_ name: String) throws {
        #expect(try Self.page("Hooks", "Metrics").contains("`\(name)`"))
    }

    /// A section of a page of `Docs`.
    private static func page(_ name: String, _ chapter: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "Docs/\(name).md"), encoding: .utf8)
        let start = try #require(text.range(of: "\n## \(chapter)\n"), "Docs/\(name).md has no chapter \"\(chapter)\"").upperBound
        return String(text[start...].prefix(upTo: text.range(of: "\n## ", range: start..<text.endIndex)?.lowerBound ?? text.endIndex))
    }
}
