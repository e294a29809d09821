import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel
import UnixSignals

struct FetchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Fetch the files that the links of a hex point to, or a file or folder of a service.",
        discussion: """
            hexlist fetch 7 --to ~/Downloads

            hexlist fetch bob:photos/2026

            hexlist fetch dropbox:Photos/a.jpg

            Without numbers all of a hex is fetched, the files of the hex itself into the folder that you name (also where a folder was sent \
            alone), and each hex inside it into a folder of its name. A folder of a service becomes a \
            folder of its name with all that is in it. What is there already, with the same name, size and time, is not fetched \
            again. Nothing is overwritten: what is \
            there keeps its name, and the new file gets a number. Each file is checked against its digest before it has its name; until \
            then it is a hidden `.part` file.

            What is in the cache already is not fetched again, wherever it is to go.

            The peer of PEER:PATH is waited for as long as --timeout says where it is away. Nothing is known of the path before it is back, so \
            nothing waits in the daemon: give the command again then.

            What is interrupted goes on by itself, also after a restart, and what waits for a peer goes on when it is back. Ctrl-C ends \
            only the waiting.

            Exit code 0: everything is here. 1: something failed. 3: something waits; the daemon goes on.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        help: ArgumentHelp("The folder the files go to; the current one where you do not say.", valueName: "folder"), completion: .directory
    )
    var to: String?

    @Flag(help: "Put the files into the cache, from where `hexlist open` opens them; they go when room is needed, or after 30 days.")
    var cache = false

    @Flag(help: "Keep the files where Hexlist keeps its own, until the hex is deleted.")
    var keep = false

    @Flag(help: "Start again at once what failed repeatedly.")
    var force = false

    @Option(help: ArgumentHelp("How long to wait at most for a peer that is away, or for room on the disk.", valueName: "duration"))
    var timeout = Seconds(10)

    @Argument(
        help: ArgumentHelp("The local id that `hexlist inbox` prints; or SERVICE:PATH, of `hexlist files`.", valueName: "hex"))
    var source: FetchArgument

    @Argument(help: ArgumentHelp("Which of its links, as `hexlist show` counts them.", valueName: "n"))
    var numbers: [Int] = []

    func validate() throws {
        let named = [(to != nil, "--to"), (cache, "--cache"), (keep, "--keep")].filter(\.0).map(\.1)
        if named.count > 1 { throw ValidationError("\(named[0]) and \(named[1]) do not go together: each says where the files go.") }
        guard case .file = source else { return }
        guard numbers.isEmpty else { throw ValidationError("Numbers name links of a hex, and SERVICE:PATH is none.") }
        if cache || keep { throw ValidationError("What is fetched of a service goes into a folder: --to names it.") }
    }

    func run() async throws {
        let folder = cache || keep ? nil : try destination()
        let mask = umask(0o022)
        _ = umask(mask)
        let request =
            switch source {
            case .hex(let hex):
                TransferRequest(
                    hex: hex.value, links: numbers.isEmpty ? nil : numbers, to: folder, cache: cache ? true : nil, keep: keep ? true : nil,
                    umask: Int(mask), force: force ? true : nil)
            case .file(let file):
                TransferRequest(
                    service: file.service, path: file.path, to: folder, umask: Int(mask), force: force ? true : nil,
                    timeout: min(timeout.value, LocalAPI.longestWaitSeconds))
            }
        try await common.withClient { client in
            let start = try await begin(request, client)
            if start.present > 0 {
                StandardError.note("\(HumanText.count(start.present, "file is", "files are")) there already, with the same size and time.")
            }
            if start.leftOut > 0 {
                StandardError.note(
                    "\(HumanText.count(start.leftOut, "entry", "entries")) left out: neither a file nor a folder, a folder that is gone or may not be read there, a document without a size, or a name that cannot be used."
                )
            }
            if start.passedOver > 0 {
                StandardError.note(
                    "\(HumanText.count(start.passedOver, "link leads", "links lead")) to no file of a peer; `hexlist open` opens links.")
            }
            if start.first == nil, start.known == 0 {
                // A folder without a file.
                if start.present == 0, start.leftOut == 0 { StandardError.note("There was no file to fetch.") }
                return
            }
            if start.known > 0 { StandardError.note("\(HumanText.count(start.known, "file is", "files are")) on the way there already.") }
            guard let first = start.first, let last = start.last else { throw Ending(status: .pending) }
            let (summary, isPatienceOver) = try await FetchWaiting(ids: first...last, timeout: timeout.value).wait(client)
            try await tell(first...last, into: folder, isPatienceOver: isPatienceOver, client)
            if summary.failed + summary.cancelled > 0 { throw Ending(status: .failed) }
            if summary.running + summary.soon + summary.waiting > 0 { throw Ending(status: .pending) }
        }
    }

    /// The absolute path of the folder the files go to.
    private func destination() throws -> String {
        guard let to else { return try FileArgument.absolute(".") }
        guard access(to, F_OK) == 0 || errno != ENOENT else {
            let shown = TerminalText.clean(to, columns: 200)
            throw HexlistError(.badRequest, "There is no folder \(shown).", hint: "`mkdir -p \(ShellText.quoted(shown))` makes it.")
        }
        return try FileArgument.absolute(to)
    }

    /// - Throws: `Ending` with `pending` for a peer that is away.
    private func begin(_ request: TransferRequest, _ client: HexlistClient) async throws -> TransferStart {
        let whose = request.service.map { TerminalText.clean($0, columns: 40) }
        do {
            return try await ProgressLine().during(whose.map { "looking what \($0) has …" } ?? "looking what there is …") {
                try await client.fetch(request)
            }
        } catch let error as HexlistError where error.code == .gone {
            guard let service = request.service, let peer = try? await client.peer(service), peer.state != .verified else { throw error }
            StandardError.note("\(error.message) Nothing is known of the path until it is back, so nothing waits.")
            StandardError.note("Give the command again then, or with a longer --timeout.")
            throw Ending(status: .pending)
        }
    }

    /// Prints what became of each file.
    /// - Parameter isPatienceOver: whether nothing came for as long as `--timeout` says.
    private func tell(_ ids: ClosedRange<Int64>, into folder: String?, isPatienceOver: Bool, _ client: HexlistClient) async throws {
        let output = common.output
        var pages: [TransferView] = []
        var cursor: String? = String(ids.upperBound + 1)
        while let after = cursor {
            let page = try await client.transfers(limit: LocalAPI.pageLimit, after: after)
            pages += page.items.prefix { $0.id >= ids.lowerBound }
            cursor = (page.items.last?.id ?? 0) > ids.lowerBound ? page.next : nil
        }
        let rows = pages.reversed()
        if output.json {
            for row in rows { try output.object(row) }
            return try output.flush()
        }
        let done = rows.filter { $0.state.known == .done }
        let rest = rows.filter { $0.state.known != .done }
        var table = Table()
        for row in (done.count > Self.listed ? [] : done) + rest { table.add(TransferText.cells(row, hasID: row.state.known != .done)) }
        if !table.isEmpty { try output.table(table) }
        if done.count > Self.listed {
            let bytes = done.reduce(0) { $0 + $1.bytes }
            try output.line("\(done.count) files, \(ByteCountText.of(bytes)), in \(folder ?? done.first?.folder ?? "")")
        }
        try output.flush()
        if rest.contains(where: { $0.state.known == .failed && $0.hex != nil && $0.reason == "changed" }) {
            StandardError.note(
                "What changed or is gone can be had only if it is sent again; `hexlist send --copy` offers what cannot change.")
        }
        let waiting = rest.filter { ![.failed, .cancelled].contains($0.state.known) }
        guard let one = waiting.first else { return }
        if isPatienceOver, one.state.known == .running {
            let from = one.service ?? one.label.shown(.named)
            StandardError.note("Nothing came for \(HumanText.span(seconds: Int(timeout.value.rounded(.up)))): \(from) may be away.")
        }
        StandardError.note(
            waiting.count == 1
                ? "Transfer \(one.id) goes on by itself; `hexlist transfers cancel \(one.id)` gives it up."
                : "\(waiting.count) transfers go on by themselves; `hexlist transfers` lists them, `hexlist transfers cancel ID…` gives them up."
        )
    }

    /// The most files that are named one by one once they are here.
    private static let listed = 20
}

/// The goal of a fetch: a hex, or something of a service.
enum FetchArgument: ExpressibleByArgument {
    case hex(HexID)
    case file(ServiceArgument)

    init?(argument: String) {
        if let hex = HexID(argument: argument) {
            self = .hex(hex)
        } else if let file = ServiceArgument(argument: argument) {
            self = .file(file)
        } else {
            return nil
        }
    }

    static var defaultCompletionKind: CompletionKind { .fetchable }
}

/// The wait of one `fetch`: until all files are here, or cannot be for now.
struct FetchWaiting {
    let ids: ClosedRange<Int64>
    /// Seconds.
    let timeout: Double

    private enum Word: Sendable {
        case stands(TransferSummary)
        case interrupted
        /// The `timeout` is over of which this is the number.
        case patienceOver(Int)
    }

    /// - Returns: how the transfers stand, and whether nothing came for as long as the timeout.
    func wait(_ client: HexlistClient) async throws -> (TransferSummary, isPatienceOver: Bool) {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let (words, word) = AsyncStream.makeStream(of: Word.self, bufferingPolicy: .bufferingNewest(16))
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { word.finish() }
                try await client.watchTransfers(ids) { summary in
                    word.yield(.stands(summary))
                    return true
                }
            }
            group.addTask {
                for await _ in signals { word.yield(.interrupted) }
            }
            defer { group.cancelAll() }
            return try await look(words) { number in
                group.addTask { [timeout] in
                    try await Task.sleep(for: .seconds(timeout))
                    word.yield(.patienceOver(number))
                }
            }
        }
    }

    /// - Parameter beginPatience: begins a `timeout` of a number.
    private func look(_ words: AsyncStream<Word>, beginPatience: (Int) -> Void) async throws -> (TransferSummary, isPatienceOver: Bool) {
        let line = ProgressLine()
        defer { line.end() }
        var last = TransferSummary()
        var begun: (at: ContinuousClock.Instant, bytes: Int64)?
        let start = ContinuousClock.now
        // One after the other; progress ends one, whose end then counts for nothing.
        var (patience, isWaiting) = (0, false)
        for await next in words {
            switch next {
            case .interrupted: return (last, false)
            case .patienceOver(let number): if isWaiting, number == patience { return (last, true) }
            case .stands(let summary):
                let hasProgressed = summary.bytes != last.bytes || summary.done != last.done
                last = summary
                if begun == nil, summary.running > 0 { begun = (.now, summary.bytes) }
                if summary.isQuiet {
                    guard summary.waiting > 0 else { return (summary, false) }
                    if !isWaiting {
                        (patience, isWaiting) = (patience + 1, true)
                        beginPatience(patience)
                    }
                }
                if hasProgressed { isWaiting = false }
                if ContinuousClock.now - start > .seconds(1) { line.update(Self.line(summary, since: begun, columns: line.columns)) }
            }
        }
        throw HexlistError(.daemonUnreachable, "hexlistd closed the connection.", hint: "What is not here yet goes on when it runs again.")
    }

    /// `3 of 12 files, 45 MiB of 120 MiB, 11 MiB/s, 7 s left`
    /// - Parameter columns: of the terminal; on a narrow one the rate is left out, then the bytes that are here.
    static func line(_ summary: TransferSummary, since begun: (at: ContinuousClock.Instant, bytes: Int64)?, columns: Int = 80) -> String {
        let all = summary.done + summary.failed + summary.cancelled + summary.running + summary.soon + summary.waiting
        var parts = ["\(ByteCountText.of(summary.bytes)) of \(ByteCountText.of(summary.size))"]
        if all > 1 { parts.insert("\(summary.done) of \(all) files", at: 0) }
        if summary.isQuiet { return (parts + ["waiting"]).joined(separator: ", ") }
        if let begun {
            let seconds = Double((ContinuousClock.now - begun.at) / .milliseconds(1)) / 1_000
            let rate = Double(summary.bytes - begun.bytes) / max(seconds, 0.001)
            if seconds > 0.5, rate > 1 {
                parts.append("\(ByteCountText.of(Int64(rate)))/s")
                // A size is what a peer announced.
                let left = min(Double(summary.size) - Double(summary.bytes), 1e15) / rate
                parts.append("\(HumanText.span(seconds: Int(max(0, left)) + 1)) left")
            }
        }
        while parts.count > 1, parts.joined(separator: ", ").utf8.count >= columns { parts.remove(at: parts.count - 2) }
        return parts.joined(separator: ", ")
    }
}
