import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

struct OpenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Open a link of a hex in the browser, and mark the hex as read.",
        discussion: """
            Nothing is opened but by this command. It says which host the link leads to, in ASCII, and refuses links of other schemes \
            than `open.schemes` (http and https) and those that programs read in different ways. The link is handed to --with, or to \
            $BROWSER where that is one program, or to xdg-open.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("The program to open it with; it gets the link as its only argument.", valueName: "program"))
    var with: String?

    @Flag(help: "Do not mark the hex as read.")
    var peek = false

    @Argument(help: ArgumentHelp("The local id that `hexlist inbox` prints.", valueName: "hex"))
    var hex: HexID

    @Argument(help: ArgumentHelp("Which of its links, as `hexlist show` counts them; may be left out where there is one.", valueName: "n"))
    var number: Int?

    func run() async throws {
        try await common.withClient { client in
            let hex = try await client.hex(hex.value)
            try open(hex)
            if hex.unread, !peek { await client.markAsRead([hex.id]) }
        }
    }

    private func open(_ hex: HexShape) throws {
        let link = try Self.choose(number, of: hex)
        guard let leadsTo = link.opens else {
            throw HexlistError(
                .badRequest, "This link is not opened: \(link.notOpened ?? "the daemon does not say where it leads").",
                hint: "`hexlist show \(hex.id)` prints it, to be looked at.")
        }
        // Noted before the program begins to write.
        StandardError.note("Opening \(TerminalText.clean(leadsTo, columns: 300))")
        let program = Opener.program(with, browser: Environment.value("BROWSER"))
        try Opener.run(program, link: link.url)
        if common.json { try finish(link, leadsTo, program) }
    }

    private func finish(_ link: LinkShape, _ leadsTo: String, _ program: String) throws {
        let output = common.output
        try output.object(OpenedShape(url: link.url, opens: leadsTo, program: program))
        try output.flush()
    }

    /// - Parameter number: the link's number, from 1; `nil` for the only link.
    static func choose(_ number: Int?, of hex: HexShape) throws(HexlistError) -> LinkShape {
        let links = hex.links ?? []
        guard let number else {
            guard links.count == 1 else {
                throw HexlistError(
                    links.isEmpty ? .notFound : .badRequest, "Hex \(hex.id) has \(HumanText.count(links.count, "link", "links")).",
                    hint: links.isEmpty ? nil : "Say which: `hexlist open \(hex.id) 1` opens the first.")
            }
            return links[0]
        }
        guard links.indices.contains(number &- 1) else {
            throw HexlistError(
                .notFound, "Hex \(hex.id) has no link \(number).", hint: "It has \(HumanText.count(links.count, "link", "links")).")
        }
        return links[number - 1]
    }
}

private struct OpenedShape: Encodable, JSONEncodable {
    var url: String
    var opens: String
    var program: String
}
