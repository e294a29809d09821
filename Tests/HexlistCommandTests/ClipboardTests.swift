import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("Clipboard") struct ClipboardTests {
    @Test("Wayland goes before X11; without a desktop there is no tool")
    func tools() {
        #expect(Clipboard.tools(hasWayland: true, hasX11: true).map(\.name) == ["wl-copy", "xclip", "xsel"])
        #expect(Clipboard.tools(hasWayland: false, hasX11: true).map(\.name) == ["xclip", "xsel"])
        #expect(Clipboard.tools(hasWayland: false, hasX11: false).isEmpty)
    }

    @Test("a line break in a link is not copied")
    func clean() {
        let links = [LinkJSON(url: "https://a.example"), LinkJSON(url: "https://b.example/\nrm -rf x\r")]
        let text = CopyCommand.text(links)
        #expect(text.split(separator: "\n").count == 2 && !text.contains("\r"))
    }

    @Test("text from the clipboard is read as lines of links")
    func links() throws {
        let links = try LinkInput.read(lines: "https://a.example A page\n\nhttps://b.example\n", .scheme, name: "Clipboard")
        #expect(links.map(\.url) == ["https://a.example", "https://b.example"] && links[0].description == "A page")
        let error = #expect(throws: HexlistError.self) { try LinkInput.read(lines: "note", .scheme, name: "Clipboard") }
        #expect(error?.message == "Clipboard, line 1: `note` is not a link (no https://).")
    }
}
