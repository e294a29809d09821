import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import Synchronization
import UnixSignals

struct MineCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check whether the pages of your links still exist.",
        discussion: """
            A link is dead if its server answers that there is no such page (404 or 410). It is marked until a later check finds the \
            page again; `hexlist search --links is:dead` lists these links. Links with another error are listed with the reason and \
            keep their mark or lack of one. Links to private addresses and networks of this machine are left out.

            Without hexes it checks all of My Hexlist; `7.2` is the second link of hex 7. Ctrl-C ends the check and keeps the marks so far.
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("Only these hexes, with the hexes inside, or links.", valueName: "hex[.n]"))
    var targets: [HexOrLinkID] = []

    func run() async throws {
        let output = common.output
        let report = LinkCheckReport(json: output.json)
        let isComplete = try await common.withClient { try await Self.check($0, request, report) }
        if output.json {
            try output.object(report.value)
        } else {
            StandardError.note(report.summary(isComplete: isComplete))
        }
        try output.flush()
        if !isComplete { throw SilentExit(status: .failed) }
    }

    private var request: MineCheckRequest {
        guard !targets.isEmpty else { return MineCheckRequest() }
        let links = targets.compactMap { target in target.link.map { [target.hex, Int64($0)] } }
        return MineCheckRequest(hexes: targets.filter { $0.link == nil }.map(\.hex), links: links)
    }

    /// Checks the links until the check ends or SIGINT or SIGTERM arrives.
    /// - Returns: `false` after a signal.
    private static func check(_ client: HexlistClient, _ request: MineCheckRequest, _ report: LinkCheckReport) async throws -> Bool {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            defer {
                group.cancelAll()
                report.endLine()
            }
            group.addTask {
                _ = try await client.checkMine(request) { try report.add($0) }
                return true
            }
            group.addTask {
                for await _ in signals { break }
                return false
            }
            return try await group.next() ?? false
        }
    }
}

/// The output of `hexlist mine check --json`.
struct LinkCheckSummary: JSONShape, Sendable, Equatable {
    /// Number of checked links, and number of all links of the check.
    var done: Int
    var total: Int
    var reachable: Int
    var dead: Int
    var unclear: Int
    var skipped: Int
    /// The results of all links, except of those that are reachable and were not marked as dead before.
    var links: [CheckedLinkJSON]

    private enum CodingKeys: String, CodingKey {
        case done
        case total = "of"
        case reachable, dead, unclear, skipped, links
    }
}

/// Collects the results of a check, and prints them as they come unless JSON is wanted.
final class LinkCheckReport: Sendable {
    private struct State {
        var progress = MineCheckProgress(done: 0, total: 0)
        /// All results, for JSON.
        var links: [CheckedLinkJSON] = []
        var counts: [CheckedLinkJSON.State: Int] = [:]
        var unmarked = 0
    }

    private let json: Bool
    private let line = ProgressLine()
    private let state = Mutex(State())

    init(json: Bool) { self.json = json }

    func add(_ progress: MineCheckProgress) throws {
        line.end()
        let output = Output(json: false)
        try state.withLock { state in
            state.progress = progress
            for link in progress.links {
                guard let known = link.state.known else { continue }
                if known == .reachable { state.unmarked += 1 } else { state.counts[known, default: 0] += 1 }
                if json { state.links.append(link) } else if let line = Self.line(link) { try output.line(line) }
            }
        }
        try output.flush()
        line.update(Self.progress(progress))
    }

    func endLine() { line.end() }

    static func progress(_ progress: MineCheckProgress) -> String {
        "\(HumanText.grouped(progress.done)) of \(HumanText.count(progress.total, "link", "links")) checked"
    }

    /// Returns the line about a link; `nil` if it was skipped.
    static func line(_ link: CheckedLinkJSON) -> String? {
        let status = link.status.map { " (\($0))" } ?? ""
        let text: String
        switch link.state.known {
        case .dead: text = "dead\(status)"
        case .reachable: text = "reachable again"
        case .unclear: text = reason(link.reason?.known) + status
        case .skipped, nil: return nil
        }
        return "\(link.hex).\(link.number)  \(text)  \(link.url)"
    }

    private static func reason(_ reason: LinkCheckReason?) -> String {
        switch reason {
        case .refused: "refused"
        case .busy: "server busy"
        case .serverFault: "server error"
        case .noAddress: "host not found"
        case .unreachable: "no connection"
        case .timeout: "no response in time"
        case .tls: "invalid certificate"
        case .notHTTP: "not a web server"
        case .redirects: "bad redirect"
        case .notWeb, .ownNetwork, nil: "not checked"
        }
    }

    /// The results so far, for JSON.
    var value: LinkCheckSummary {
        state.withLock { state in
            let (dead, unclear, skipped) = Self.counts(state)
            return LinkCheckSummary(
                done: state.progress.done, total: state.progress.total, reachable: state.progress.done - dead - unclear - skipped,
                dead: dead, unclear: unclear, skipped: skipped, links: state.links)
        }
    }

    private static func counts(_ state: State) -> (dead: Int, unclear: Int, skipped: Int) {
        (state.counts[.dead] ?? 0, state.counts[.unclear] ?? 0, state.counts[.skipped] ?? 0)
    }

    func summary(isComplete: Bool) -> String {
        state.withLock { state in
            let (dead, unclear, skipped) = Self.counts(state)
            let total = isComplete ? "" : " of \(HumanText.grouped(state.progress.total))"
            let checked = HumanText.grouped(state.progress.done) + total + (state.progress.done == 1 && isComplete ? " link" : " links")
            var parts = ["\(isComplete ? "" : "Stopped: ")\(checked) checked: \(HumanText.grouped(dead)) dead"]
            if unclear > 0 { parts.append("\(HumanText.grouped(unclear)) unclear") }
            if skipped > 0 { parts.append("\(HumanText.grouped(skipped)) left out") }
            if state.unmarked > 0 { parts.append("\(HumanText.grouped(state.unmarked)) reachable again") }
            return parts.joined(separator: ", ") + "." + (dead > 0 ? " To list dead links: `hexlist search --links is:dead`." : "")
        }
    }
}
