import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events", abstract: "Show the event log.",
        discussion: "Numbers have no gaps: a reader that remembers the last one it handled goes on with --since and misses nothing.")

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Only events after this number; without it, from the oldest kept.", valueName: "n"))
    var since: Int64?

    @Flag(help: "Go on with events as they happen.")
    var follow = false

    func validate() throws {
        if let since, since < 0 { throw ValidationError("--since takes a number from 0 up.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if follow {
                try await client.followEvents(since: since) { event in
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
        var since = since
        while true {
            let next = try await client.events(since: since, limit: LocalAPI.pageLimit) { try show($0, output) }
            guard let next = next.flatMap(Int64.init) else { return }
            since = next
        }
    }

    private func show(_ event: EventShape, _ output: Output) throws {
        if output.json { return try output.object(event) }
        var parts = ["\(event.number)", HumanText.time(event.at, seconds: true), event.type]
        if let peer = event.peer { parts.append("peer \(PeerLabel(peer, event.tag).shown())") }
        if let hex = event.hex { parts.append("hex \(hex)") }
        if let row = event.outboxID { parts.append("outbox \(row)") }
        if let data = event.data, data != .emptyObject { parts.append(data.text) }
        try output.wrapped(parts.joined(separator: "  "))
    }
}
