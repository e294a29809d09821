import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

struct CopyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "copy", abstract: "Copy links of a hex to the clipboard.",
        discussion:
            "One link per line. Needs wl-clipboard on Wayland, and xclip or xsel on X11. `hexlist send --clipboard` sends such links.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("A number from `hexlist inbox`.", valueName: "hex"))
    var hex: HexID

    @Argument(help: ArgumentHelp("The number of one link in `hexlist show`; by default all links.", valueName: "n"))
    var number: Int?

    private struct ResultJSON: Encodable, JSONEncodable {
        var hex: Int64
        var links: Int
    }

    func run() async throws {
        let hex = try await common.withClient { try await $0.hex(self.hex.value) }
        let links = try number.map { [try OpenCommand.choose($0, of: hex)] } ?? hex.links ?? []
        guard !links.isEmpty else { throw HexlistError(.notFound, "Hex \(hex.id) has no links.") }
        try Clipboard.write(Self.text(links))
        let output = common.output
        if output.json {
            try output.object(ResultJSON(hex: hex.id, links: links.count))
        } else {
            try output.line("\(HumanText.count(links.count, "link", "links")) copied.")
        }
        try output.flush()
    }

    /// Returns the URLs, one per line. They are cleaned, because a line break in a URL of a peer would run a command when the text is
    /// pasted into a shell.
    static func text(_ links: [LinkJSON]) -> String { links.map { TerminalText.clean($0.url) }.joined(separator: "\n") }
}
