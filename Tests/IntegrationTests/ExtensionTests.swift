import Foundation
import TestSupport
import Testing

/// The browser extension's functions, run in Node. Tests in browsers are in Tests/Browser.
@Suite("The extension's links", .enabled(if: Program.path(of: "node") != nil, "node is not installed"), .timeLimit(.minutes(5)))
struct ExtensionTests {
    /// Calls `body` with the module's functions, and reads its result as JSON.
    private func run(_ body: String) throws -> String {
        let folder = try TemporaryFolder()
        let script = """
            const { linksInText, hexOfTabs, canBeSent, link } = await import("file://\(Checkout.root)/Browser/hexes.js");
            const { linksAndText } = await import("file://\(Checkout.root)/Browser/linktext.js");
            (await import("node:fs")).writeFileSync("\(folder.path)/out", JSON.stringify(\(body)));
            """
        try folder.write(script, to: "script.mjs")
        let node = try ChildProcess(try #require(Program.path(of: "node")), ["\(folder.path)/script.mjs"])
        #expect(node.waitForEnd() == 0)
        return try String(contentsOfFile: "\(folder.path)/out", encoding: .utf8)
    }

    @Test(
        "links in a text keep brackets they open, and lose punctuation after them",
        arguments: [
            ("see https://a.example/Hop_(networking) there", ["https://a.example/Hop_(networking)"]),
            ("(https://a.example/b) (see https://a.example/x_(y)).", ["https://a.example/b", "https://a.example/x_(y)"]),
            (
                "[https://a.example/] {https://b.example/?q=[1]}, \u{201C}https://c.example/\u{201D}!",
                ["https://a.example/", "https://b.example/?q=[1]", "https://c.example/"]
            ),
            (
                "https://a.example/a(b(c))) <https://b.example/>; https://a.example/a(b(c))",
                ["https://a.example/a(b(c))", "https://b.example/"]
            ),
        ])
    func text(text: String, links: [String]) throws {
        let quoted = String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
        let found = try JSONDecoder().decode([String].self, from: Data(try run("linksInText(\(quoted)).map((link) => link.url)").utf8))
        #expect(found == links)
    }

    @Test("the messages of the corpus have the links that `hexlist send` finds, except mail addresses")
    func corpus() throws {
        let file = "\(Checkout.root)/Tests/HexlistFormatsTests/Fixtures/messages.txt"
        let differences = try run(
            #"""
            (await import("node:fs")).readFileSync("\#(file)", "utf8").split("\n\n").filter(Boolean).flatMap((record) => {
              const [text, ...lines] = record.split("\n");
              const message = text.replaceAll("\\n", "\n").replace(/\\u\{([0-9A-F]+)\}/g, (_, hex) => String.fromCodePoint(parseInt(hex, 16)));
              const links = lines.filter((line) => line.startsWith("=> ")).map((line) => line.slice(3).split(" | ")[0]);
              const expected = [...new Set(links)].filter((url) => !url.startsWith("mailto:"));
              const found = linksInText(message).map((link) => link.url);
              return JSON.stringify(found) === JSON.stringify(expected) ? [] : [[message, found, expected]];
            })
            """#)
        #expect(differences == "[]")
    }

    @Test("the compose dialog of the page separates the messages of the corpus as `hexlist send` does") func titles() throws {
        let file = "\(Checkout.root)/Tests/HexlistFormatsTests/Fixtures/messages.txt"
        let differences = try run(
            #"""
            (await import("node:fs")).readFileSync("\#(file)", "utf8").split("\n\n").filter(Boolean).flatMap((record) => {
              const [text, ...lines] = record.split("\n");
              const message = text.replaceAll("\\n", "\n").replace(/\\u\{([0-9A-F]+)\}/g, (_, hex) => String.fromCodePoint(parseInt(hex, 16)));
              const expected = lines.map((line) => line.replace(/^== /, "").replaceAll("\\n", "\n"));
              const { links, description } = linksAndText(message);
              const found = [...links.map(({ url, title }) => `=> ${url}${title && ` | ${title}`}`), ...description ? [description] : []];
              return JSON.stringify(found) === JSON.stringify(expected) ? [] : [[message, found, expected]];
            })
            """#)
        #expect(differences == "[]")
    }

    @Test(
        "a page that displays another one is sent as that one",
        arguments: [
            ("about:reader?url=https%3A%2F%2Freal.example%2Farticle%3Fa%3D1%26b", "https://real.example/article?a=1&b"),
            ("chrome-distiller://x_y/?time=1&url=https%3A%2F%2Freal.example%2F", "https://real.example/"),
            ("view-source:https://real.example/", "https://real.example/"),
            ("chrome-extension://abc/suspended.html#ttl=T&pos=0&uri=https://real.example/?a=b&c", "https://real.example/?a=b&c"),
            ("about:reader?url=about%3Aconfig", nil), ("about:reader?url=%E0%A4%A", nil), ("view-source:chrome://version", nil),
            ("about:config", nil),
            ("moz-extension://abc/suspended.html#uri=javascript:alert(1)", nil),
        ])
    func shown(url: String, sent: String?) throws {
        let tabs = "hexOfTabs([{ id: 1, url: '\(url)', title: 'Article', groupId: -1 }])"
        #expect(try run("\(tabs).leftOut") == (sent == nil ? "1" : "0"))
        if let sent { #expect(try run("\(tabs).hex.links") == "[{\"url\":\"\(sent)\",\"title\":\"Article\"}]") }
    }
}
