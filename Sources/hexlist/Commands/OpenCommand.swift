import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import HexlistSystem

struct OpenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Open a link of a hex in the browser, or a file, and mark the hex as read.",
        discussion: """
            Hexlist opens a link only with this command. It prints the host in ASCII, and refuses schemes other than those of \
            `open.schemes` (http and https) and links that programs read in different ways. The link goes to the program of --with, or \
            to $BROWSER if that names one program, or to xdg-open.

            A file of a peer is fetched into the cache first. Images, audio, video, PDF and plain text open with --with or xdg-open if \
            name and content agree; for other files it prints the path.

            Exit codes: 0 opened, or downloaded. 1 failed. 3 not downloaded yet; the daemon continues.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("The program; it gets the link as its only argument.", valueName: "program"))
    var with: String?

    @Option(help: ArgumentHelp("Maximum wait for a peer that is away, or for disk space.", valueName: "duration"))
    var timeout = Seconds(10)

    @Flag(help: "Do not mark the hex as read.")
    var peek = false

    @Argument(help: ArgumentHelp("A number from `hexlist inbox`.", valueName: "hex"))
    var hex: HexID

    @Argument(help: ArgumentHelp("The number of the link in `hexlist show`; not needed if there is only one.", valueName: "n"))
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

    /// Fetches a file of a peer, and opens it if its type is safe (`OpenableFile`).
    private func openFile(_ link: LinkJSON, number: Int, of hex: Int64, _ client: HexlistClient) async throws {
        let start = try await client.fetch(TransferRequest(hex: hex, links: [self.number ?? number], cache: true))
        guard let first = start.first, let last = start.last else { throw SilentExit(status: .pending) }
        _ = try await FetchedTransfersWait(ids: first...last, timeout: timeout.value).wait(client)
        let row = try await client.transfer(first)
        guard row.state.known == .done else {
            let isOver = [.failed, .cancelled].contains(row.state.known)
            if common.json {
                try common.output.object(row)
                try common.output.flush()
            }
            StandardError.note(
                isOver
                    ? "Download failed: \(TransferText.why(row))"
                    : "Not downloaded yet: \(TransferText.why(row))")
            if !isOver { StandardError.note("It continues in the background. To cancel: `hexlist transfers cancel \(row.id)`.") }
            throw SilentExit(status: isOver ? .failed : .pending)
        }
        let path = "\(row.folder)/\(row.file)"
        guard try OpenableFile.isOpenable(path) else {
            StandardError.note("Hexlist opens only images, audio, video, PDF and plain text. This file was downloaded; open it with care:")
            return try report(link, path, nil)
        }
        StandardError.note("Opening \(TerminalText.clean(path, columns: 1_000))")
        let program = with ?? "xdg-open"
        try LinkProgram.run(program, link: path)
        if common.json { try report(link, path, program) }
    }

    private func report(_ link: LinkJSON, _ path: String, _ program: String?) throws {
        let output = common.output
        if output.json { try output.object(OpenedLinkJSON(url: link.url, opens: path, program: program)) } else { try output.line(path) }
        try output.flush()
    }

    private func open(_ link: LinkJSON, of hex: HexJSON) throws {
        guard let leadsTo = link.opens else {
            throw HexlistError(
                .badRequest, "Not opened: \(link.notOpened ?? "the daemon does not know where it leads").",
                hint: "To see the link: `hexlist show \(hex.id)`.")
        }
        // The note is printed before the program starts, so that it precedes the output of the program.
        StandardError.note("Opening \(TerminalText.clean(leadsTo, columns: 300))")
        let program = LinkProgram.program(with, browser: Environment.value("BROWSER"))
        try LinkProgram.run(program, link: link.url)
        if common.json { try report(link, leadsTo, program) }
    }

    /// Returns the link to open.
    /// - Parameter number: the number of the link, beginning with 1; `nil` if the hex must have only one link.
    static func choose(_ number: Int?, of hex: HexJSON) throws(HexlistError) -> LinkJSON {
        let links = hex.links ?? []
        guard let number else {
            guard links.count == 1 else {
                throw HexlistError(
                    links.isEmpty ? .notFound : .badRequest, "Hex \(hex.id) has \(HumanText.count(links.count, "link", "links")).",
                    hint: links.isEmpty ? nil : "Which one? `hexlist open \(hex.id) 1` opens the first.")
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

private struct OpenedLinkJSON: Encodable, JSONEncodable {
    var url: String
    var opens: String
    /// The program that was started; `nil` if none was.
    var program: String?
}
