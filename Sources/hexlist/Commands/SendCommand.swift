import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel
import HexlistSystem

/// `hexlist send`.
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Send a hex, a bundle of links with a description and a colour, or a stream of them.",
        discussion: """
            hexlist send --to ada --description "to read" "https://example.org a page" https://example.net

            hexlist send --to ada ./talk.pdf ./photos/

            hexlist send --to ada --bulk hexes.ndjson

            What begins with /, ./ or ../ is a file or a folder of this machine. It is not copied: those it is sent to fetch it from here with \
            `hexlist fetch`, for 30 days after it was delivered, while they are trusted here and the file stays as it is; `hexlist outbox cancel` \
            ends that too. A folder is sent as a hex, the folders in \
            it as hexes inside that; symbolic links, hidden and special files in it are left out. What is named itself is sent, of a \
            symbolic link the file it leads to. --copy offers copies, which Hexlist keeps until the offers \
            end: the files may change or go.

            --hex forwards links to files as they are, and only those can fetch them whom their owner sent them to. --reoffer puts links to your own \
            copies in their place: of what you fetched and left where it was, or what is in the cache, and of your own files.

            --bulk reads one hex a line, as JSON, and sends while it reads; a `key` in a line makes a rerun send nothing twice. A bad \
            line is told and costs no other; with --strict nothing is sent then. After Ctrl-C what was accepted stays in the outbox. A line is:

            {"key":"a1","hexDescription":"news","links":[{"url":"https://example.org"}]}

            Exit code 0: each peer stored it (or it is durable in the outbox, with --wait queued). 2: the words, or some lines, are not \
            valid; the other lines were sent. 3: not all stored it yet: what is queued the daemon goes on trying, what is held has \
            arrived, out of the inbox there. 4: a peer refused it. 5: hexlistd does not run. 6: there is no such peer. 1: all else, as a \
            key that another hex has.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        name: .long, help: ArgumentHelp("A peer to send to, or a group as @NAME; may be repeated.", valueName: "peer"),
        completion: .recipients)
    var to: [String] = []

    @Flag(help: "Send to every trusted peer.")
    var toAll = false

    @Option(help: ArgumentHelp("What the bundle is about.", valueName: "text"))
    var description = ""

    @Option(help: ArgumentHelp("The colour, as '#3366CC' or by its name in CSS.", valueName: "color"))
    var color = ""

    @Option(help: ArgumentHelp("Forward this stored hex.", valueName: "hex"))
    var hex: HexID?

    @Option(
        help: ArgumentHelp(
            "Read links from a file (- is standard input), one `URL description` a line; lines that begin with # are passed over.",
            valueName: "file"))
    var from: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Send this file or folder, also one whose name begins like no path; or a link to SERVICE:PATH, of `hexlist files`. May be repeated.",
            valueName: "path"),
        completion: .file())
    var file: [String] = []

    @Flag(help: "Offer copies of the files, so that these may change or go; with the same blocks on the disk where the file system can.")
    var copy = false

    @Flag(help: "With --hex: offer your own copies of the files that its links lead to.")
    var reoffer = false

    @Flag(help: "Put https:// before links that are bare host names.")
    var guess = false

    @Flag(help: "Send links and colour as they are given, whatever they are, also what looks like a path.")
    var raw = false

    @Option(help: ArgumentHelp("Send each line of a file (- is standard input) as a hex.", valueName: "file"), completion: .file())
    var bulk: String?

    @Flag(help: "With --bulk: check all lines first, and send nothing if one is bad.")
    var strict = false

    @Flag(help: "With --bulk: take hexes without links.")
    var allowEmpty = false

    @Option(help: ArgumentHelp("Wait until it is `queued` in the own outbox, or `stored` by each peer that is there.", valueName: "state"))
    var wait = WaitArgument.stored

    @Option(help: ArgumentHelp("How long to wait at most; with --bulk, how long without progress.", valueName: "duration"))
    var timeout = Seconds(10)

    @Option(help: ArgumentHelp("The same key sends the same hex once, however often it is run.", valueName: "key"))
    var key: String?

    @Flag(help: "Send again what failed within the last 3 minutes.")
    var force = false

    @Argument(
        help: ArgumentHelp(
            "A link, or \"URL description\" in quotes, with a further link behind each further address; - reads them from standard input. A file or folder begins with /, ./ or ../.",
            valueName: "url"))
    var links: [String] = []

    func validate() throws {
        // The last word may be the peer, which only the daemon knows.
        if to.isEmpty && !toAll {
            guard lastWord != nil else { throw Self.nobody }
            return
        }
        if !to.isEmpty && toAll { throw ValidationError("--to and --to-all do not go together.") }
        if let key, key.isEmpty { throw ValidationError("--key is empty, and so keeps nothing from being sent twice: leave it out.") }
        if guess && raw { throw ValidationError("--guess and --raw do not go together.") }
        if bulk != nil { return try validateBulk() }
        if reoffer, hex == nil { throw ValidationError("--reoffer goes with --hex.") }
        if copy, paths.isEmpty, !reoffer { throw ValidationError("--copy goes with files, or with --reoffer.") }
        if strict || allowEmpty { throw ValidationError("\(strict ? "--strict" : "--allow-empty") goes with --bulk.") }
        if hex != nil {
            guard links.isEmpty, from == nil, file.isEmpty, description.isEmpty, color.isEmpty, !guess, !raw else {
                throw ValidationError("--hex forwards a hex as it is: give no links, description or colour with it.")
            }
        } else if links.isEmpty && from == nil && file.isEmpty {
            throw ValidationError("Give at least one link or file, --from FILE, or --hex HEX.")
        } else if links.count(where: { $0 == "-" }) + (from == "-" ? 1 : 0) > 1 {
            throw ValidationError("Standard input can be read once: give - once.")
        }
    }

    private func validateBulk() throws {
        let others = [
            (!links.isEmpty, "links"), (from != nil, "--from"), (!file.isEmpty, "--file"), (hex != nil, "--hex"),
            (!description.isEmpty, "--description"),
            (!color.isEmpty, "--color"), (guess, "--guess"), (raw, "--raw"), (copy, "--copy"), (reoffer, "--reoffer"),
        ]
        if let other = others.first(where: \.0) {
            throw ValidationError("--bulk and \(other.1) do not go together: each line has its own links, description and color.")
        }
        if key != nil { throw ValidationError("--bulk and --key do not go together: a line has its own `key`.") }
    }

    private static let nobody = ValidationError("Say to whom: --to PEER, or --to-all.")

    /// The last word if it is not a link and something to send remains without it.
    private var lastWord: String? {
        guard let word = links.last, links.count > 1 || from != nil || hex != nil || bulk != nil || !file.isEmpty, word != "-",
            raw || !FileArgument.isPath(word)
        else { return nil }
        return LinkForm(word) == .link ? nil : word
    }

    /// Takes the last word as the peer, `send LINK bob`, if it is one and the user confirms it.
    private mutating func takeLastWordAsPeer() async throws {
        guard let word = lastWord, let peer = try? await common.withClient({ try await $0.peer(word) }) else { throw Self.nobody }
        guard isatty(STDIN_FILENO) == 1 else { throw MissingTo.refusal(word, arguments: ProcessArguments.all) }
        try Terminal.confirm("There is no --to. Send it to \(peer.label.shown())? [y/N]")
        to = [peer.uuid?.description ?? word]  // the UUID, in case another peer takes the name meanwhile
        links.removeLast()
        try validate()
    }

    mutating func run() async throws {
        if to.isEmpty && !toAll { try await takeLastWordAsPeer() }
        if let bulk { return try await run(bulk: bulk) }
        let output = common.output
        let input = try typed()
        let waiting = SendWaiting(peers: to)
        let isPatient = wait == .stored && !output.json
        try await common.withClient { client in
            let send = HexlistClient.Send(
                content: try await content(input, client), peers: to, toAll: toAll, wait: wait.wait, timeout: timeout.value, key: key,
                force: force)
            let outcomes = try await waiting.during(client, isTold: isPatient) { try await client.send(send) }
            if output.json {
                for outcome in outcomes { try output.object(outcome) }
            } else {
                try output.table(table(outcomes))
            }
            try output.flush()
            if isPatient { await waiting.tellRest(outcomes, client) }
            if offersFiles { for advice in outcomes.compactMap({ RowReason($0).fileAdvice }) { StandardError.note(advice) } }
            let status = ExitStatus.combined(outcomes.map { ExitStatus(outcome: $0.state, wait: wait.wait) })
            if status != .done { throw Ending(status: status) }
        }
    }

    private func run(bulk path: String) async throws {
        let send = HexlistClient.BulkSend(
            peers: to, toAll: toAll, wait: wait.wait, timeout: timeout.value, allowsEmpty: allowEmpty, force: force,
            reportsProgress: true)
        let bulk = BulkSendJob(send: send, path: path, isStrict: strict, json: common.json)
        let status = try await common.withClient { try await bulk.run($0) }
        if status != .done { throw Ending(status: status) }
    }

    /// The files and folders among the arguments.
    private var paths: [String] {
        (raw ? [] : links.filter(FileArgument.isPath)) + file.filter { FileArgument.service($0) == nil }
    }

    /// Whether the hex has links to files that only peers trusted here can fetch.
    private var offersFiles: Bool {
        reoffer || !paths.isEmpty
            || file.compactMap(FileArgument.service).contains { PeerText.areEqual($0.service, LocalAPI.ownService) }
    }

    private func content(_ typed: HexInput?, _ client: HexlistClient) async throws -> HexlistClient.Send.Content {
        if let hex, reoffer {
            let offer = try await FileArgument.offer([], to: to, all: toAll, copying: copy, hex: hex.value, client)
            if offer.leftOut > 0 {
                StandardError.note(
                    "\(HumanText.count(offer.leftOut, "link leads to a file that is", "links lead to files that are")) not here as fetched; "
                        + "only those can fetch whom its owner sent it to.")
            }
            return .hex(Array(offer.hex.bytes))
        }
        if let hex {
            try await noteForeignFiles(hex.value, client)
            return .forward(hex.value)
        }
        guard var typed else { throw HexlistError(.badRequest, "There is no link in what was given.") }
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
        guard !paths.isEmpty else { return .hex(typed.jsonBytes) }
        let offer = try await FileArgument.offer(paths, to: to, all: toAll, copying: copy, client)
        return .hex(OfferingInput(hex: typed, offered: offer.hex).jsonBytes)
    }

    /// - Throws: `HexlistError` for a link that is `SERVICE:PATH`: the file was probably meant.
    private func refuseServices(_ links: [LinkInput], _ client: HexlistClient) async throws {
        let named = links.compactMap { ServiceArgument(argument: $0.url) }
        guard !named.isEmpty else { return }
        let services = try await client.services()
        guard let file = named.first(where: { file in services.contains { PeerText.areEqual($0.name, file.service) } }) else { return }
        let shown = TerminalText.clean(file.description, columns: 200)
        throw HexlistError(
            .badRequest, "`\(shown)` names a file of a service, and is no link.",
            hint: "To send a link to the file: --file \(ShellText.quoted(shown)). --raw sends it as it is.")
    }

    /// Says that a forwarded link to a file does not give it to whoever it is forwarded to.
    private func noteForeignFiles(_ id: Int64, _ client: HexlistClient) async throws {
        let count = try await client.hex(id).links?.count { FileArgument.isLink($0.url) } ?? 0
        guard count > 0 else { return }
        StandardError.note(
            "\(HumanText.count(count, "link leads to a file", "links lead to files")) that only those can fetch whom its owner sent it to; "
                + "--reoffer offers your own copies.")
    }

    /// The hex as typed, without its files; `nil` for one that is forwarded.
    private func typed() throws -> HexInput? {
        guard hex == nil else { return nil }
        let check: LinkCheck = raw ? .raw : guess ? .guess : .scheme
        let color = raw ? color : try ColorInput.parse(color)
        let words = raw ? links : links.filter { !FileArgument.isPath($0) }
        if !raw { for word in words { try FileArgument.refuseBareName(word) } }
        let given = try LinkInput.read(words, check) + (try from.map { try LinkInput.read(from: $0, check) } ?? [])
        guard !given.isEmpty || !paths.isEmpty || !file.isEmpty else {
            throw HexlistError(.badRequest, "There is no link in what was given.")
        }
        guard given.count <= ProtocolLimits.links else {
            throw HexlistError(
                .badRequest, "A hex holds \(ProtocolLimits.links) links; \(given.count) were given.", hint: "Send them in several hexes.")
        }
        return HexInput(description: description, color: color, links: given)
    }

    private func table(_ outcomes: [SendOutcome]) -> Table {
        var table = Table()
        for outcome in outcomes {
            // With `--wait queued`, what the row waits for is of no interest.
            let reason = wait == .queued && outcome.state == .queued ? "" : RowReason(outcome).why
            let why = [outcome.earlier ? "was there already, by its key" : "", reason].filter { !$0.isEmpty }.joined(separator: "; ")
            table.add([
                Table.Cell(outcome.state.rawValue, outcome.state.style), Table.Cell(PeerDisplayName(outcome.peer, outcome.tag).listed()),
                Table.Cell("outbox \(outcome.outboxID)", .faint), Table.Cell(why, columns: 400),
            ])
        }
        return table
    }
}

/// The refusal of `send LINK bob` when there is nobody to ask whether bob is the peer.
enum MissingTo {
    static func refusal(_ word: String, arguments: [String]) -> HexlistError {
        HexlistError(
            .badRequest, "There is no --to, and `\(TerminalText.clean(word, columns: 60))` is a peer.",
            hint: "To send to that peer: \(TerminalText.clean(line(word, arguments), columns: 1_000))")
    }

    /// The command line with the word as the value of `--to`.
    static func line(_ word: String, _ arguments: [String]) -> String {
        var words = Array(arguments.dropFirst())
        let place = words.indices.last { index in
            guard words[index] == word else { return false }
            let before = index > 0 ? words[index - 1] : ""
            return !before.hasPrefix("--") || before.contains("=") || !Usage.takesValue(before, of: SendCommand.self)
        }
        if let place { words.remove(at: place) }
        let verb = words.firstIndex(of: "send").map { $0 + 1 } ?? 0
        words.insert(contentsOf: ["--to", word], at: verb)
        return (["hexlist"] + words.map(ShellText.quoted)).joined(separator: " ")
    }
}

/// The values of `--wait`.
enum WaitArgument: String, ExpressibleByArgument, CaseIterable {
    case queued, stored

    var wait: SendWait {
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
