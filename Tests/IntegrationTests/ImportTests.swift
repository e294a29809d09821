import Foundation
import Testing

@Suite("Import and export", .timeLimit(.minutes(Patience.test)), .ifBuilt)
struct ImportTests {
    private struct Done: Decodable {
        var added: Int
        var unchanged: Int
        var links: Int
    }

    private func imported(_ daemon: LocalDaemon, _ file: String) async throws -> Done {
        let done = try await daemon.hexlist("import", file, "--json")
        #expect(done.status == 0, "\(done)")
        return try JSONDecoder().decode(Done.self, from: Data(done.out.utf8))
    }

    private static let fixtures = "\(Checkout.root)/Tests/HexlistFormatsTests/Fixtures"

    @Test("browser bookmarks are imported, and exported and imported in each format without loss; a second import adds nothing")
    func bookmarks() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                let file = "\(Self.fixtures)/firefox.html"
                let first = try await imported(daemon, file)
                #expect(first.added == 3 && first.links == 8)
                let second = try await imported(daemon, file)
                #expect(second.added == 0 && second.unchanged == 3)
                let told = try await daemon.hexlist("import", file)
                #expect(told.out.contains("3 unchanged") && told.err.contains("Most visited"), "\(told)")
                for format in ["json", "ndjson", "html", "opml"] {
                    let out = "\(daemon.folder.path)/out.\(format)"
                    let export = try await daemon.hexlist("export", "--mine", "--format", format, "-o", out)
                    #expect(export.status == 0 && export.err.contains("3 hexes"), "\(export)")
                    let again = try await imported(daemon, out)
                    #expect(again.added == 0 && again.unchanged == 3, "\(format)")
                }
                for format in ["csv", "markdown"] {
                    let export = try await daemon.hexlist("export", "--mine", "--format", format)
                    #expect(export.out.contains("https://example.net/3"), "\(export)")
                }
                let there = try await daemon.hexlist("export", "--mine", "--format", "html", "-o", "\(daemon.folder.path)/out.html")
                #expect(there.status == 2 && there.err.contains("--force"), "\(there)")
            }
        }
    }

    @Test("one more bookmark in a folder adds one link, not a second folder")
    func changedFolder() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                let html = try String(contentsOfFile: "\(Self.fixtures)/firefox.html", encoding: .utf8)
                _ = try await imported(daemon, "\(Self.fixtures)/firefox.html")
                let place = try #require(html.range(of: "<DT><A "))
                let changed = html.replacingCharacters(in: place, with: "<DT><A HREF=\"https://new.example/\">New</A>\n<DT><A ")
                try daemon.folder.write(changed, to: "later.html")
                let told = try await daemon.hexlist("import", "\(daemon.folder.path)/later.html")
                #expect(told.out.contains("1 new link added to 1 existing hex"), "\(told)")
                let again = try await imported(daemon, "\(daemon.folder.path)/later.html")
                #expect(again.added == 0 && again.unchanged == 3)
                let mine = try await daemon.hexlist("export", "--mine", "--format", "ndjson")
                #expect(mine.out.split(separator: "\n").count == 3 && mine.out.contains("https://new.example/"), "\(mine)")
            }
        }
    }

    @Test("a broken or empty file is reported, and changes nothing")
    func broken() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                _ = try await imported(daemon, "\(Self.fixtures)/pocket.csv")
                for (name, text, part) in [
                    ("a.json", "[{\"links\":[\"a:b\"]},", "is not valid JSON"), ("b.ndjson", "{\"links\":[\"a:b\"]}\n{\n", "line 2"),
                    ("c.html", "<html></html>", "contains no links"),
                    ("d", "", "is empty"), ("f", "\n \r\n", "is empty"), ("e.csv", "a,b\n1,2\n", "Its columns are"),
                ] {
                    try daemon.folder.write(text, to: name)
                    let done = try await daemon.hexlist("import", "\(daemon.folder.path)/\(name)")
                    #expect(done.status == 2 && done.err.contains(part), "\(done)")
                }
                let missing = try await daemon.hexlist("import", "\(daemon.folder.path)/none")
                #expect(missing.status == 2 && missing.err.contains("cannot be read"), "\(missing)")
                let mine = try await daemon.hexlist("export", "--mine", "--format", "ndjson")
                #expect(mine.out.split(separator: "\n").count == 1)
            }
        }
    }
}
