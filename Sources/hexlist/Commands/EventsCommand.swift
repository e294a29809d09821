import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events", abstract: "Show what happened: the newest events, or those to come.",
        discussion: """
            Numbers have no gaps: a reader that remembers the last one it handled goes on with --since and misses nothing. Names are those \
            of now.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("All events after this number.", valueName: "n"))
    var since: Int64?

    @Flag(help: "Go on with events as they happen: from now on, or after --since.")
    var follow = false

    @Option(
        name: .long,
        help: ArgumentHelp("Only these: `hex.held`, or `hex` for all whose name begins so; may be repeated.", valueName: "event"))
    var type: [String] = []

    @Option(help: ArgumentHelp("How many of the newest (20; with --follow none), or after --since (all); 0 lists all.", valueName: "n"))
    var limit: Int?

    func validate() throws {
        if let since, since < 0 { throw ValidationError("--since takes a number from 0 up.") }
        if let limit, !(0...Int(LocalAPI.lastEvents)).contains(limit) {
            throw ValidationError("--limit takes a number up to \(LocalAPI.lastEvents).")
        }
        if follow, since != nil, limit != nil { throw ValidationError("--limit goes with --since or --follow, not with both.") }
    }

    /// - Parameter newest: the number of newest events if no other start is given.
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
        if listed == 0 { StandardError.note(type.isEmpty && since == nil ? "Nothing has happened yet." : "No such event is kept.") }
        if since == nil, limit == nil, listed == newest { StandardError.note("These are the last \(newest): --limit 0 lists all.") }
    }

    private func show(_ event: EventJSON, _ output: Output) throws {
        if output.json { try output.object(event) } else { try output.wrapped(EventText.line(event)) }
    }
}

/// Events in words.
enum EventText {
    /// `12  2026-11-22 10:47:47  hex.received  peer bob  hex 3  “To read”`
    static func line(_ event: EventJSON) -> String {
        var parts = ["\(event.number)", HumanText.time(event.at, seconds: true), event.type]
        if let peer = event.peer { parts.append("peer \(PeerDisplayName(peer, event.tag).listed())") }
        if let hex = event.hex { parts.append("hex \(hex)") }
        if let row = event.outboxID { parts.append("outbox \(row)") }
        for member in event.data?.members ?? [] { parts.append("\(member.name) \(value(member.value))") }
        if let subject = event.subject, !subject.isEmpty { parts.append(quoted(subject)) }
        return parts.joined(separator: "  ")
    }

    /// Text of a peer on one line, in quotation marks that it cannot close, so that it does not look like another part of the event.
    private static func quoted(_ text: String) -> String {
        let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return "“\(words.replacing("“", with: "'").replacing("”", with: "'"))”"
    }

    /// A word unchanged, anything else as JSON, so that text of a peer does not look like further members.
    private static func value(_ json: JSONValue) -> String {
        guard let text = json.string, !text.isEmpty, text.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || "-_.".utf8.contains($0) }) else {
            return json.text
        }
        return text
    }
}
