import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events", abstract: "Show recent events, or follow new ones.",
        discussion: """
            Event numbers have no gaps: a reader that remembers the last number it handled continues with --since and misses nothing. \
            Names are current names.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("All events after this number.", valueName: "n"))
    var since: Int64?

    @Flag(help: "Follow new events, or all after --since.")
    var follow = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Only this type, such as `hex.held`, or `hex` for all types that begin with it; may be repeated.", valueName: "event"))
    var type: [String] = []

    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp(
            "Maximum number: of the newest events (20; with --follow 0), or of those after --since (all). 0 lists all.", valueName: "n"))
    var limit: Int?

    func validate() throws {
        if let since, since < 0 { throw ValidationError("--since needs a number of at least 0.") }
        if let limit, !(0...Int(LocalAPI.lastEvents)).contains(limit) {
            throw ValidationError("--limit needs a number up to \(LocalAPI.lastEvents).")
        }
        if follow, since != nil, limit != nil { throw ValidationError("--limit works with --since or with --follow, not with both.") }
    }

    /// Returns the position at which the list begins.
    /// - Parameter newest: the number of newest events to list if the user gave no start.
    private func start(newest: Int) -> HexlistClient.EventStart {
        if let since { return .after(since) }
        return limit == 0 ? .oldest : .last(limit ?? newest)
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if follow {
                try await client.followEvents(start(newest: 0), types: type) { event in
                    try show(event, output)
                    try output.flush()
                    return true
                }
            } else {
                try await list(client, output)
            }
        }
        try output.flush()
    }

    private func list(_ client: HexlistClient, _ output: Output) async throws {
        let newest = LocalAPI.defaultPageLimit
        var start = start(newest: newest)
        var left = since == nil ? limit ?? newest : limit ?? 0
        if left == 0 { left = .max }
        var listed = 0
        while left > 0 {
            let next = try await client.events(start, types: type, limit: min(left, LocalAPI.pageLimit)) {
                listed += 1
                left -= 1
                try show($0, output)
            }
            guard let next = next.flatMap(Int64.init) else { break }
            start = .after(next)
        }
        try output.flush()
        if output.json { return }
        if listed == 0 { StandardError.note(type.isEmpty && since == nil ? "No events yet." : "No such events.") }
        if since == nil, limit == nil, listed == newest { StandardError.note("These are the last \(newest); list all with --limit 0.") }
    }

    private func show(_ event: EventJSON, _ output: Output) throws {
        if output.json { try output.object(event) } else { try output.wrapped(EventText.line(event)) }
    }
}

enum EventText {
    /// Formats an event on one line: `12  2026-11-22 10:47:47  hex.received  peer bob  hex 3  “To read”`.
    static func line(_ event: EventJSON) -> String {
        var parts = ["\(event.number)", HumanText.time(event.at, seconds: true), event.type]
        if let peer = event.peer { parts.append("peer \(PeerDisplayName(peer, event.tag).listed())") }
        if let hex = event.hex { parts.append("hex \(hex)") }
        if let row = event.outboxID { parts.append("outbox \(row)") }
        for member in event.data?.members ?? [] { parts.append("\(member.name) \(value(member.value))") }
        if let subject = event.subject, !subject.isEmpty { parts.append(quoted(subject)) }
        return parts.joined(separator: "  ")
    }

    /// Returns text of a peer on one line in quotation marks. Quotation marks in the text are replaced, so that it cannot imitate other
    /// parts of the event.
    private static func quoted(_ text: String) -> String {
        let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return "“\(words.replacing("“", with: "'").replacing("”", with: "'"))”"
    }

    /// Returns a plain word unchanged, and any other value as JSON, so that text of a peer cannot imitate members of the event.
    private static func value(_ json: JSONValue) -> String {
        guard let text = json.string, !text.isEmpty, text.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || "-_.".utf8.contains($0) }) else {
            return json.text
        }
        return text
    }
}
