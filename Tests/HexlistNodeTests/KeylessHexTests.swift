import HexlistFiles
import HexlistModel
import HexlistStore
import TestSupport
import Testing

@testable import HexlistNode

@Suite("Hexes of guests") struct GuestHexTests {
    private let peer = PeerID(MessageID.random().uuid)

    private func hex(name: String = "", text: String = "", files: [String] = []) throws -> KeylessHex {
        KeylessHex(
            from: peer, name: name, address: try #require(IPAddress("10.0.0.7")), isHeld: false, text: text,
            files: files.map {
                let file = ArrivedFile(session: "a", file: "0", name: $0, size: 3, sha256: Array(repeating: 7, count: 32))
                return KeylessHex.File(id: .random, file: file, modified: 0)
            })
    }

    @Test(
        "the name is one line in quotation marks of its own, followed by the address",
        arguments: [
            ("Anna", "\"Anna\" 10.0.0.7"), ("", "10.0.0.7"), (" \t\n ", "10.0.0.7"), ("\"\"", "10.0.0.7"),
            ("An\"na\" 10.0.0.8 (trusted)\nx", "\"Anna 10.0.0.8 (trusted) x\" 10.0.0.7"),
            ("\u{202E}Anna", "\"\u{FFFD}Anna\" 10.0.0.7"),
            (String(repeating: "x", count: 100), "\"\(String(repeating: "x", count: 40))\" 10.0.0.7"),
        ])
    func names(_ name: String, _ label: String) throws { #expect(try PeerTextComparison.areEqual(hex(name: name).name, label)) }

    @Test("a character of any number of scalars does not make the name long") func longCharacters() throws {
        let name = "e" + String(repeating: "\u{301}", count: 100_000)
        #expect(try hex(name: name).name.utf8.count <= 2 + 160 + 10)
    }

    @Test("addresses in the text become links; files follow them; without a text the files name the hex") func content() throws {
        let both = try hex(text: "Look https://example.org/a", files: ["a.txt"]).hex().content
        #expect(both.links.map { both.string($0.linkDescription) } == ["", "a.txt"])
        #expect(both.string(both.hexDescription) == "Look" && both.string(both.links[0].url) == "https://example.org/a")
        #expect(both.string(both.links[1].url).hasPrefix("hexlist://\(peer)/"))
        for (files, description) in [(["a.txt"], "a.txt"), (["a.txt", "b.txt"], "2 files")] {
            let content = try hex(files: files).hex().content
            #expect(content.string(content.hexDescription) == description && content.links.count == files.count)
        }
    }

    @Test("a text with too many addresses stays whole, so that the hex fits its bounds with its files") func manyLinks() throws {
        let text = (0..<ProtocolLimits.links).map { "https://a.b/\($0)" }.joined(separator: " ")
        let few = try hex(text: text).hex().content
        #expect(few.links.count == ProtocolLimits.links && few.fitsBounds)
        let many = try hex(text: text, files: ["a.txt"]).hex().content
        #expect(many.links.count == 1)
    }
}
