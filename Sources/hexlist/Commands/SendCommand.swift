import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel
import HexlistSystem

/// The command `hexlist send`.
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Send links, text or files to peers, one hex or many.",
        discussion: """
            hexlist send --to ada -d "to read" "https://example.org a page"

            hexlist send --to ada "Lunch at one? https://example.org/menu"

            hexlist send --to ada ./talk.pdf ./photos/

            Links are found in a text; the rest of it is the description. A text needs no link. In a line that begins with a link, the \
            words after it describe that link. A bare host name is no link: give https:// with it, or --guess.

            hexlist send --to ada --bulk hexes.ndjson

            Without --to, the first or last word may be the peer, as in `hexlist send ada https://example.org`; with only one trusted \
            peer, it can be left out. On a terminal you are asked first; without one, --to is needed. A terminal also asks before \
            sending to a stranger by its name.

            Arguments that begin with /, ./ or ../ are files and folders on this machine. Recipients download them from here with \
            `hexlist fetch`, for 30 days after delivery, as long as you trust them: keep this machine on until then. `hexlist outbox` \
            shows whether they did, and `hexlist outbox cancel` ends it. Of small files (16 MiB in all, `files.copyBelow`) Hexlist \
            keeps copies, so that the originals may change or go; larger ones must not change. --copy and --no-copy decide it. A \
            symlink you name is followed; symlinks, hidden and special files inside a folder are skipped.

            --hex forwards links to files unchanged: only recipients chosen by the owner of a file can fetch it. --reoffer replaces \
            these links with links to your own copies: files you fetched and left in place, files in the cache, and files of yours.

            --bulk reads one hex per line (JSON) and sends while it reads. A line with a `key` is sent once, however often you run the \
            command. A bad line is reported; the others are still sent. With --strict, nothing is sent if a line is bad. After Ctrl-C, \
            accepted hexes stay in the outbox. A line looks like this:

            {"key":"a1","hexDescription":"news","links":[{"url":"https://example.org"}]}

            Exit codes: 0 each peer stored it (with --wait queued: it is in the outbox). 2 wrong arguments, or some lines are not valid; \
            the other lines were sent. 3 not stored by all yet: queued hexes are delivered later, held ones have arrived and wait for \
            approval there. 4 a peer refused it. 5 hexlistd is not running. 6 no such peer. 1 anything else, such as a key that was used \
            for another hex.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        name: [.customShort("t"), .long],
        help: ArgumentHelp("The recipient: a peer, or a group as @NAME; may be repeated.", valueName: "peer"),
        completion: .recipients)
    var to: [String] = []

    @Flag(help: "Send to every trusted peer.")
    var toAll = false

    @Option(name: [.customShort("d"), .long], help: ArgumentHelp("The title of the hex.", valueName: "text"))
    var description = ""

    @Option(name: [.customShort("c"), .long], help: ArgumentHelp("The colour, such as '#3366CC', or a CSS name.", valueName: "color"))
    var color = ""

    @Option(help: ArgumentHelp("Forward this hex.", valueName: "hex"))
    var hex: HexID?

    @Option(
        help: ArgumentHelp(
            "Read links from a file (- reads standard input), one `URL description` per line; lines that begin with # are ignored.",
            valueName: "file"), completion: .file())
    var from: String?

    @Flag(help: "Send the links on the clipboard.")
    var clipboard = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Send this file or folder, even if its name does not look like a path; or a link to SERVICE:PATH (see `hexlist files`). May be repeated.",
            valueName: "path"),
        completion: .file())
    var file: [String] = []

    @Flag(
        inversion: .prefixedNo,
        help: "Keep copies of the files for the recipients, so that the originals may change or go. Without either, small files are copied."
    )
    var copy: Bool?

    @Flag(help: "With --hex: offer your own copies of the linked files.")
    var reoffer = false

    @Flag(help: "Put https:// in front of bare host names.")
    var guess = false

    @Flag(help: "Send links and colour unchecked, even arguments that look like paths.")
    var raw = false

    @Option(help: ArgumentHelp("Send each line of a file (- reads standard input) as a hex.", valueName: "file"), completion: .file())
    var bulk: String?

    @Flag(help: "With --bulk: check all lines first; send nothing if one is bad.")
    var strict = false

    @Flag(help: "With --bulk: accept hexes without links.")
    var allowEmpty = false

    @Option(help: ArgumentHelp("Wait until it is `queued` in your outbox, or `stored` by each peer that is online.", valueName: "state"))
    var wait = WaitArgument.stored

    @Option(help: ArgumentHelp("Maximum wait; with --bulk, maximum time without progress.", valueName: "duration"))
    var timeout = Seconds(10)

    @Option(help: ArgumentHelp("Send this hex once, however often the command runs with this key.", valueName: "key"))
    var key: String?

    @Flag(help: "Send again what failed within the last 3 minutes.")
    var force = false

    @Argument(
        help: ArgumentHelp(
            "A link, \"URL description\" or any text in quotes; - reads it from standard input. A file or folder begins with /, ./ or ../.",
            valueName: "text"), completion: .file())
    var links: [String] = []

    func validate() throws {
        // The recipient may be an argument, or the only trusted peer. This cannot be checked without the daemon.
        if to.isEmpty && !toAll {
            guard recipientChoice.hasContent else { throw Self.nothing }
            return
        }
        if !to.isEmpty && toAll { throw ValidationError("Give --to or --to-all, not both.") }
        if let key, key.isEmpty { throw ValidationError("The --key is empty: give a value, or leave it out.") }
        if guess && raw { throw ValidationError("Give --guess or --raw, not both.") }
        if bulk != nil { return try validateBulk() }
        if reoffer, hex == nil { throw ValidationError("--reoffer needs --hex.") }
        if let copy, paths.isEmpty, !reoffer { throw ValidationError("--\(copy ? "" : "no-")copy needs files, or --reoffer.") }
        if strict || allowEmpty { throw ValidationError("\(strict ? "--strict" : "--allow-empty") needs --bulk.") }
        if hex != nil {
            guard links.isEmpty, from == nil, !clipboard, file.isEmpty, description.isEmpty, color.isEmpty, !guess, !raw else {
                throw ValidationError("--hex forwards a hex unchanged: leave out links, description and colour.")
            }
        } else if links.isEmpty && from == nil && !clipboard && file.isEmpty && description.isEmpty {
            throw Self.nothing
        } else if links.count(where: { $0 == "-" }) + (from == "-" ? 1 : 0) > 1 {
            throw ValidationError("Standard input can be read only once: give - once.")
        }
    }

    private func validateBulk() throws {
        let others = [
            (!links.isEmpty, "links"), (from != nil, "--from"), (clipboard, "--clipboard"), (!file.isEmpty, "--file"),
            (hex != nil, "--hex"),
            (!description.isEmpty, "--description"),
            (!color.isEmpty, "--color"), (guess, "--guess"), (raw, "--raw"), (copy == true, "--copy"), (copy == false, "--no-copy"),
            (reoffer, "--reoffer"),
        ]
        if let other = others.first(where: \.0) {
            throw ValidationError("Leave out \(other.1) with --bulk: each line has its own links, description and color.")
        }
        if key != nil { throw ValidationError("Leave out --key with --bulk: a line has its own `key`.") }
    }

    private static let nothing = ValidationError("Nothing to send: give a link, a text, a file, --from FILE, or --hex HEX.")

    private var recipientChoice: RecipientChoice {
        RecipientChoice(words: links, hasOtherContent: from != nil || clipboard || hex != nil || bulk != nil || !file.isEmpty, isRaw: raw)
    }

    /// Whether the user can answer questions: standard input is a terminal, and no option reads content from it.
    private var isInteractive: Bool { isatty(STDIN_FILENO) == 1 && !links.contains("-") && from != "-" && bulk != "-" }

    /// Determines the recipient of a command line without --to, and asks the user to confirm it.
    private mutating func chooseRecipient() async throws {
        let choice = recipientChoice
        let found = (try? await common.withClient { try await choice.find($0) }) ?? .none(trusted: [])
        let peer: PeerView
        switch found {
        case .none(let trusted): throw RecipientErrors.unknown(trusted)
        case .word(let index, let named):
            guard isInteractive else { throw RecipientErrors.unconfirmed(links[index], arguments: ProcessArguments.all) }
            peer = named
            links.remove(at: index)
        case .onlyTrusted(let only):
            guard isInteractive else { throw RecipientErrors.unconfirmed(only, arguments: ProcessArguments.all) }
            peer = only
        }
        to = [try peer.requiredID().description]  // the UUID, because another peer could take the name before the send
        try validate()
        try Terminal.confirm("Send it to \(peer.label.shown())? [y/N]")
    }

    /// Asks for confirmation before a send to an untrusted peer that is given by name, because anybody can choose any name. Asks nothing in
    /// scripts.
    private mutating func confirmStrangers() async throws {
        guard isInteractive, !common.json else { return }
        for index in to.indices where !GroupName.isMarked(to[index]) {
            let name = to[index]
            guard let peer = try? await common.withClient({ try await $0.peer(name) }), let uuid = peer.uuid, peer.trust == .stranger,
                peer.alias == nil, !uuid.begins(with: name)
            else { continue }
            try Terminal.confirm("\(peer.label.shown()) is not trusted, and anybody can choose this name. Send it anyway? [y/N]")
            to[index] = uuid.description
        }
    }

    mutating func run() async throws {
        if to.isEmpty && !toAll { try await chooseRecipient() } else { try await confirmStrangers() }
        if let bulk { return try await run(bulk: bulk) }
        let output = common.output
        let input = try typed(clipboard ? try await Clipboard.read() : nil)
        let waiting = SlowSendNotes(peers: to)
        let waitsForReceipts = wait == .stored && !output.json
        try await common.withClient { client in
            let (content, areCopied) = try await self.content(input, client)
            let send = HexlistClient.Send(
                content: content, peers: to, toAll: toAll, wait: wait.wait, timeout: timeout.value, key: key,
                force: force)
            let outcomes = try await waiting.during(client, isNoted: waitsForReceipts) { try await client.send(send) }
            if output.json {
                for outcome in outcomes { try output.object(outcome) }
            } else {
                try output.table(table(outcomes))
            }
            try output.flush()
            if waitsForReceipts { await waiting.explain(outcomes, client) }
            for advice in FileAdvice.of(outcomes, areCopied: areCopied) { StandardError.note(advice) }
            if offersFiles {
                for advice in outcomes.filter({ $0.files == nil }).compactMap({ OutboxRowExplanation($0).fileAdvice }) {
                    StandardError.note(advice)
                }
            }
            let status = ExitStatus.combined(outcomes.map { ExitStatus(outcome: $0.state, wait: wait.wait) })
            if status != .done { throw SilentExit(status: status) }
        }
    }

    private func run(bulk path: String) async throws {
        let send = HexlistClient.BulkSend(
            peers: to, toAll: toAll, wait: wait.wait, timeout: timeout.value, allowsEmpty: allowEmpty, force: force,
            reportsProgress: true)
        let bulk = BulkSendJob(send: send, path: path, isStrict: strict, json: common.json)
        let status = try await common.withClient { try await bulk.run($0) }
        if status != .done { throw SilentExit(status: status) }
    }

    /// The local files and folders among the arguments and in `--file`.
    private var paths: [String] {
        (raw ? [] : links.filter(FileArgument.isPath)) + file.filter { FileArgument.service($0) == nil }
    }

    /// Whether the hex will contain links to files that only trusted peers can fetch.
    private var offersFiles: Bool {
        reoffer || !paths.isEmpty
            || file.compactMap(FileArgument.service).contains { PeerTextComparison.areEqual($0.service, LocalAPI.ownService) }
    }

    /// Returns the hex to send, and whether Hexlist has copies of all its files.
    private func content(_ typed: HexInput?, _ client: HexlistClient) async throws -> (HexlistClient.Send.Content, areCopied: Bool) {
        if let hex, reoffer {
            let offer = try await FileArgument.offer([], to: to, all: toAll, copy: copy, hex: hex.value, client)
            if offer.leftOut > 0 {
                StandardError.note(
                    "\(HumanText.count(offer.leftOut, "link is", "links are")) unchanged: the file is not here, or changed since it was fetched. "
                        + "Only recipients chosen by its owner can fetch it.")
            }
            return (.hex(Array(offer.hex.bytes)), offer.files > 0 && offer.copied == offer.files)
        }
        if let hex {
            try await noteForeignFiles(hex.value, client)
            return (.forward(hex.value), false)
        }
        guard var typed else { throw HexlistError(.badRequest, "There is no link in the input.") }
        if !raw { try await refuseServices(typed.links, client) }
        var isPublic = false
        try await ServiceLinks.make(file.compactMap(FileArgument.service), client, force: force) { file, reply in
            if let code = reply.code {
                throw HexlistError(
                    HexlistError.Code(rawValue: code) ?? .internal, "\(TerminalText.clean(file, columns: 100)): \(reply.message ?? code)",
                    hint: reply.hint)
            }
            guard let url = reply.url, let name = ServiceArgument(argument: file)?.name else { return }
            typed.links.append(LinkInput(url: url, description: name, service: reply.service))
            isPublic = isPublic || reply.service != nil
        }
        if isPublic { StandardError.note(LinkCommand.warning) }
        guard !paths.isEmpty else { return (.hex(typed.jsonBytes), false) }
        let offer = try await FileArgument.offer(paths, to: to, all: toAll, copy: copy, client)
        let areCopied = offer.files > 0 && offer.copied == offer.files
        return (.hex(HexWithOfferedFiles(hex: typed, offered: offer.hex).jsonBytes), areCopied)
    }

    /// Refuses links of the form `SERVICE:PATH`, because the user probably meant `--file`.
    /// - Throws: `HexlistError` if such a service exists.
    private func refuseServices(_ links: [LinkInput], _ client: HexlistClient) async throws {
        let named = links.compactMap { ServiceArgument(argument: $0.url) }
        guard !named.isEmpty else { return }
        let services = try await client.services()
        guard let file = named.first(where: { file in services.contains { PeerTextComparison.areEqual($0.name, file.service) } }) else {
            return
        }
        let shown = TerminalText.clean(file.description, columns: 200)
        throw HexlistError(
            .badRequest, "`\(shown)` is a file of a service, not a link.",
            hint: "Send a link to the file with --file \(ShellText.quoted(shown)), or the text itself with --raw.")
    }

    /// Prints a note if a forwarded hex contains links to files, because forwarding gives the recipient no access to the files.
    private func noteForeignFiles(_ id: Int64, _ client: HexlistClient) async throws {
        let count = try await client.hex(id).links?.count { FileArgument.isLink($0.url) } ?? 0
        guard count > 0 else { return }
        StandardError.note(
            "\(HumanText.count(count, "link leads to a file", "links lead to files")) that only recipients chosen by the owner can fetch. "
                + "To offer your own copies: --reoffer.")
    }

    /// Returns the hex that the user typed, without files; `nil` if a stored hex is forwarded.
    private func typed(_ clipboard: String?) throws -> HexInput? {
        guard hex == nil else { return nil }
        let check: TypedLinkCheck = raw ? .raw : guess ? .guess : .scheme
        let color = raw ? color : try ColorInput.parse(color)
        let words = raw ? links : links.filter { !FileArgument.isPath($0) }
        if !raw { for word in words { try FileArgument.refuseBareName(word) } }
        let typed = try TypedText(words, check)
        let given =
            try typed.links + (try from.map { try LinkInput.read(from: $0, check) } ?? [])
            + (try clipboard.map { try LinkInput.read(lines: $0, check, name: "Clipboard") } ?? [])
        let description = typed.description(description)
        guard !given.isEmpty || !paths.isEmpty || !file.isEmpty || !description.isEmpty else {
            throw HexlistError(.badRequest, "There is no link and no text in the input.")
        }
        guard given.count <= ProtocolLimits.links else {
            throw HexlistError(
                .badRequest, "\(given.count) links are too many for one hex (at most \(ProtocolLimits.links)).",
                hint: "Send them in several hexes.")
        }
        return HexInput(description: description, color: color, links: given)
    }

    private func table(_ outcomes: [SendOutcome]) -> Table {
        var table = Table()
        for outcome in outcomes {
            // With `--wait queued` the user is not interested in why a row still waits.
            let reason = wait == .queued && outcome.state == .queued ? "" : OutboxRowExplanation(outcome).why
            let why = [outcome.earlier ? "already sent with this key" : "", reason].filter { !$0.isEmpty }.joined(separator: "; ")
            let state = OutboxStateText(OutboxRowExplanation(outcome))
            let size = outcome.files.map { [Table.Cell(FileText.size($0.count, $0.bytes))] } ?? []
            table.add(
                [Table.Cell(state.word, state.style), Table.Cell(PeerDisplayName(outcome.peer, outcome.tag).listed())] + size
                    + [Table.Cell("outbox \(outcome.outboxID)", .faint), Table.Cell(why, columns: 400)])
        }
        return table
    }
}

/// The values of `--wait`.
enum WaitArgument: String, ExpressibleByArgument, CaseIterable {
    case queued, stored

    var wait: SendWaitGoal {
        switch self {
        case .queued: .queued
        case .stored: .stored
        }
    }
}

extension OutboxState {
    var style: Terminal.Style {
        switch self {
        case .stored: .good
        case .queued, .sending, .held: .doubtful
        case .rejected, .expired, .failed: .failure
        case .cancelled: .faint
        }
    }
}
