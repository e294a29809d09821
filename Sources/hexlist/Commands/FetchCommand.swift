import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel
import UnixSignals

struct FetchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Download the files of a hex, or a file or folder of a service.",
        discussion: """
            hexlist fetch 7 --to ~/Downloads

            hexlist fetch bob:photos/2026

            hexlist fetch dropbox:Photos/a.jpg

            Without numbers it downloads all files of the hex to the folder, and those of hexes inside it to subfolders. A folder of a \
            service becomes a folder of the same name with everything inside. A file that is there with the same name, size and time is \
            not downloaded again. Nothing is overwritten: if the name is taken, the new file gets a number. Until a file is complete and \
            its checksum verified, it is a hidden `.part` file.

            Files in the cache are not downloaded again.

            If the peer of PEER:PATH is away, the command waits up to --timeout. The contents of the path are only known when the peer \
            is back, so nothing is queued: run the command again then.

            Interrupted downloads resume, also after a restart and when a peer comes back. Ctrl-C only stops waiting.

            Exit codes: 0 everything downloaded. 1 something failed. 3 something waits; the daemon continues.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        help: ArgumentHelp("The target folder; by default the current one.", valueName: "folder"), completion: .directory
    )
    var to: String?

    @Flag(help: "Download to the cache, for `hexlist open`; removed when space is needed or after 30 days.")
    var cache = false

    @Flag(help: "Keep the files inside Hexlist until the hex is deleted.")
    var keep = false

    @Flag(help: "Retry at once, even files that failed repeatedly.")
    var force = false

    @Option(help: ArgumentHelp("Maximum wait for a peer that is away, or for disk space.", valueName: "duration"))
    var timeout = Seconds(10)

    @Argument(
        help: ArgumentHelp("A number from `hexlist inbox`, or SERVICE:PATH (see `hexlist files`).", valueName: "hex"))
    var source: FetchArgument

    @Argument(help: ArgumentHelp("Numbers of links in `hexlist show`.", valueName: "n"))
    var numbers: [Int] = []

    func validate() throws {
        let named = [(to != nil, "--to"), (cache, "--cache"), (keep, "--keep")].filter(\.0).map(\.1)
        if named.count > 1 { throw ValidationError("Give \(named[0]) or \(named[1]), not both.") }
        guard case .file = source else { return }
        guard numbers.isEmpty else { throw ValidationError("Link numbers only work with a hex, not with SERVICE:PATH.") }
        if cache || keep { throw ValidationError("Files of a service go to a folder: use --to.") }
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
                StandardError.note("\(HumanText.count(start.present, "file", "files")) already here, with the same size and time.")
            }
            if start.leftOut > 0 {
                StandardError.note(
                    "Skipped \(HumanText.count(start.leftOut, "entry", "entries")) (special files, unreadable folders, documents without a size, or unusable names)."
                )
            }
            if start.passedOver > 0 {
                StandardError.note(
                    "\(HumanText.count(start.passedOver, "link is", "links are")) not a file; to open links: `hexlist open`.")
            }
            if start.first == nil, start.known == 0 {
                // Nothing was found and nothing was left out, so the folder is empty.
                if start.present == 0, start.leftOut == 0 { StandardError.note("There are no files.") }
                return
            }
            if start.known > 0 {
                StandardError.note("\(HumanText.count(start.known, "file is", "files are")) already being downloaded there.")
            }
            guard let first = start.first, let last = start.last else { throw SilentExit(status: .pending) }
            let (summary, hasTimedOut) = try await FetchedTransfersWait(ids: first...last, timeout: timeout.value).wait(client)
            try await report(first...last, into: folder, hasTimedOut: hasTimedOut, client)
            if summary.failed + summary.cancelled > 0 { throw SilentExit(status: .failed) }
            if summary.running + summary.soon + summary.waiting > 0 { throw SilentExit(status: .pending) }
        }
    }

    /// Returns the absolute path of the folder that receives the files.
    private func destination() throws -> String {
        guard let to else { return try FileArgument.absolute(".") }
        guard access(to, F_OK) == 0 || errno != ENOENT else {
            let shown = TerminalText.clean(to, columns: 200)
            throw HexlistError(.badRequest, "There is no folder \(shown).", hint: "To create it: `mkdir -p \(ShellText.quoted(shown))`.")
        }
        return try FileArgument.absolute(to)
    }

    /// Starts the transfers.
    /// - Throws: `SilentExit` with the status `pending` if the peer is away.
    private func begin(_ request: TransferRequest, _ client: HexlistClient) async throws -> TransferStartResult {
        let whose = request.service.map { TerminalText.clean($0, columns: 40) }
        do {
            return try await ProgressLine().during(whose.map { "asking \($0) …" } ?? "looking for files …") {
                try await client.fetch(request)
            }
        } catch let error as HexlistError where error.code == .gone {
            guard let service = request.service, let peer = try? await client.peer(service), peer.state != .verified else { throw error }
            StandardError.note("\(error.message) The content of the path is unknown until then, so nothing was queued.")
            StandardError.note("Run the command again then, or with a longer --timeout.")
            throw SilentExit(status: .pending)
        }
    }

    /// Prints the result of each transfer.
    /// - Parameter hasTimedOut: whether no data arrived for the time given by `--timeout`.
    private func report(_ ids: ClosedRange<Int64>, into folder: String?, hasTimedOut: Bool, _ client: HexlistClient) async throws {
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
        for row in (done.count > Self.listLimit ? [] : done) + rest { table.add(TransferText.cells(row, hasID: row.state.known != .done)) }
        if !table.isEmpty { try output.table(table) }
        if done.count > Self.listLimit {
            let bytes = done.reduce(0) { $0 + $1.bytes }
            try output.line("\(done.count) files, \(ByteCountText.of(bytes)), in \(folder ?? done.first?.folder ?? "")")
        }
        try output.flush()
        if rest.contains(where: { $0.state.known == .failed && $0.hex != nil && $0.reason == "changed" }) {
            StandardError.note(
                "Changed or deleted files must be sent again; `hexlist send --copy` prevents this.")
        }
        let waiting = rest.filter { ![.failed, .cancelled].contains($0.state.known) }
        guard let one = waiting.first else { return }
        if hasTimedOut, one.state.known == .running {
            let from = one.service ?? one.label.shown(.named)
            StandardError.note("No data for \(HumanText.span(seconds: Int(timeout.value.rounded(.up)))): \(from) may be offline.")
        }
        StandardError.note(
            waiting.count == 1
                ? "It continues in the background. To cancel: `hexlist transfers cancel \(one.id)`."
                : "\(waiting.count) downloads continue in the background; `hexlist transfers` lists them. To cancel: `hexlist transfers cancel ID…`."
        )
    }

    /// Maximum number of completed files that are listed one by one. A larger number is only summarised.
    private static let listLimit = 20
}

/// The argument of `fetch`: a hex, or a file or folder of a service.
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

/// Waits for the transfers of one `fetch` until each is complete, has failed, or cannot continue for now.
struct FetchedTransfersWait {
    let ids: ClosedRange<Int64>
    /// Maximum time in seconds to wait without receiving data.
    let timeout: Double

    private enum Event: Sendable {
        case progress(TransferSummary)
        case interrupted
        /// The timer with this number has fired. Earlier timers may fire too; their numbers are then out of date.
        case timeout(Int)
    }

    /// Waits for the transfers.
    /// - Returns: the last summary, and whether the timeout has ended the wait.
    func wait(_ client: HexlistClient) async throws -> (TransferSummary, hasTimedOut: Bool) {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let (events, incoming) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(16))
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { incoming.finish() }
                try await client.watchTransfers(ids) { summary in
                    incoming.yield(.progress(summary))
                    return true
                }
            }
            group.addTask {
                for await _ in signals { incoming.yield(.interrupted) }
            }
            defer { group.cancelAll() }
            return try await follow(events) { number in
                group.addTask { [timeout] in
                    try await Task.sleep(for: .seconds(timeout))
                    incoming.yield(.timeout(number))
                }
            }
        }
    }

    /// Handles events until the wait ends.
    /// - Parameter startTimer: starts a timer that reports the given number when it fires.
    private func follow(_ events: AsyncStream<Event>, startTimer: (Int) -> Void) async throws -> (TransferSummary, hasTimedOut: Bool) {
        let line = ProgressLine()
        defer { line.end() }
        var last = TransferSummary()
        var begun: (at: ContinuousClock.Instant, bytes: Int64)?
        let start = ContinuousClock.now
        // `timer` is the number of the latest timer. `isWaiting` is false if that timer was made obsolete by progress.
        var (timer, isWaiting) = (0, false)
        for await event in events {
            switch event {
            case .interrupted: return (last, false)
            case .timeout(let number): if isWaiting, number == timer { return (last, true) }
            case .progress(let summary):
                let hasProgressed = summary.bytes != last.bytes || summary.done != last.done
                last = summary
                if begun == nil, summary.running > 0 { begun = (.now, summary.bytes) }
                if summary.isQuiet {
                    guard summary.waiting > 0 else { return (summary, false) }
                    if !isWaiting {
                        (timer, isWaiting) = (timer + 1, true)
                        startTimer(timer)
                    }
                }
                if hasProgressed { isWaiting = false }
                if ContinuousClock.now - start > .seconds(1) { line.update(Self.line(summary, since: begun, columns: line.columns)) }
            }
        }
        throw HexlistError(.daemonUnreachable, "hexlistd closed the connection.", hint: "Downloads resume when it runs again.")
    }

    /// Returns the progress line: `3 of 12 files, 45 MiB of 120 MiB, 11 MiB/s, 7 s left`.
    /// - Parameter columns: the width of the terminal. A narrow one leaves out the rate, then the received bytes.
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
                // The peer announces the size, which may be unreasonably large.
                let left = min(Double(summary.size) - Double(summary.bytes), 1e15) / rate
                parts.append("\(HumanText.span(seconds: Int(max(0, left)) + 1)) left")
            }
        }
        while parts.count > 1, parts.joined(separator: ", ").utf8.count >= columns { parts.remove(at: parts.count - 2) }
        return parts.joined(separator: ", ")
    }
}
