import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

struct OpenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Open a link of a hex, in the browser or as a file, and mark the hex as read.",
        discussion: """
            Nothing is opened but by this command. It says which host the link leads to, in ASCII, and refuses links of other schemes \
            than `open.schemes` (http and https) and those that programs read in different ways. The link is handed to --with, or to \
            $BROWSER where that is one program, or to xdg-open.

            A file of a peer is fetched into the cache first. Images, audio, video, PDF and plain text are opened with --with or xdg-open, if \
            name and content agree; of everything else its path is printed.

            Exit code 0: it is open, or here. 1: it could not be. 3: the file is not here yet; the daemon goes on.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("The program to open it with; it gets the link as its only argument.", valueName: "program"))
    var with: String?

    @Option(help: ArgumentHelp("How long to wait at most for a peer that is away, or for room on the disk.", valueName: "duration"))
    var timeout = Seconds(10)

    @Flag(help: "Do not mark the hex as read.")
    var peek = false

    @Argument(help: ArgumentHelp("The local id that `hexlist inbox` prints.", valueName: "hex"))
    var hex: HexID

    @Argument(help: ArgumentHelp("Which of its links, as `hexlist show` counts them; may be left out where there is one.", valueName: "n"))
    var number: Int?

    func run() async throws {
        try await common.withClient { client in
            let hex = try await client.hex(hex.value)
            let link = try Self.choose(number, of: hex)
            if FileArgument.isLink(link.url) {
                try await openFile(link, number: (hex.links?.firstIndex { $0 == link } ?? 0) + 1, of: hex.id, client)
            } else {
                try open(link, of: hex)
            }
            if hex.unread, !peek { await client.markAsRead([hex.id]) }
        }
    }

    /// Fetches a file of a peer, and opens it if it is of a kind that only shows something.
    private func openFile(_ link: LinkJSON, number: Int, of hex: Int64, _ client: HexlistClient) async throws {
        let start = try await client.fetch(TransferRequest(hex: hex, links: [self.number ?? number], cache: true))
        guard let first = start.first, let last = start.last else { throw Ending(status: .pending) }
        _ = try await FetchWaiting(ids: first...last, timeout: timeout.value).wait(client)
        let row = try await client.transfer(first)
        guard row.state.known == .done else {
            let isOver = [.failed, .cancelled].contains(row.state.known)
            if common.json {
                try common.output.object(row)
                try common.output.flush()
            }
            StandardError.note(
                isOver
                    ? "It could not be fetched: \(TransferText.why(row))"
                    : "It is not here yet: transfer \(row.id) \(TransferText.why(row))")
            if !isOver { StandardError.note("It goes on by itself; `hexlist transfers cancel \(row.id)` gives it up.") }
            throw Ending(status: isOver ? .failed : .pending)
        }
        let path = "\(row.folder)/\(row.file)"
        guard try OpenableFile.isOpenable(path) else {
            StandardError.note("Hexlist opens images, audio, video, PDF and plain text. This file is here, to be looked at with care:")
            return try tell(link, path, nil)
        }
        StandardError.note("Opening \(TerminalText.clean(path, columns: 1_000))")
        let program = with ?? "xdg-open"
        try Opener.run(program, link: path)
        if common.json { try tell(link, path, program) }
    }

    private func tell(_ link: LinkJSON, _ path: String, _ program: String?) throws {
        let output = common.output
        if output.json { try output.object(OpenedJSON(url: link.url, opens: path, program: program)) } else { try output.line(path) }
        try output.flush()
    }

    private func open(_ link: LinkJSON, of hex: HexJSON) throws {
        guard let leadsTo = link.opens else {
            throw HexlistError(
                .badRequest, "This link is not opened: \(link.notOpened ?? "the daemon does not say where it leads").",
                hint: "`hexlist show \(hex.id)` prints it, to be looked at.")
        }
        // Noted before the program begins to write.
        StandardError.note("Opening \(TerminalText.clean(leadsTo, columns: 300))")
        let program = Opener.program(with, browser: Environment.value("BROWSER"))
        try Opener.run(program, link: link.url)
        if common.json { try tell(link, leadsTo, program) }
    }

    /// - Parameter number: the link's number, from 1; `nil` for the only link.
    static func choose(_ number: Int?, of hex: HexJSON) throws(HexlistError) -> LinkJSON {
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

private struct OpenedJSON: Encodable, JSONEncodable {
    var url: String
    var opens: String
    /// Missing where nothing was started.
    var program: String?
}
