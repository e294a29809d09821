import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "List, retry or cancel undelivered hexes.",
        subcommands: [OutboxListCommand.self, OutboxShowCommand.self, OutboxRetryCommand.self, OutboxCancelCommand.self],
        defaultSubcommand: OutboxListCommand.self)
}

struct OutboxListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List hexes that wait, were refused or failed, and why.",
        discussion: """
            Newest first; --json lists in the order of delivery. Delivered hexes are listed while their files are only offered: the \
            receiver can fetch them, but has not fetched all. --all adds other delivered hexes, cancelled ones, and those that wait for \
            approval at their receiver. --json lists the latter in any case, and offered files only with --all.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Only hexes for this peer.", valueName: "peer"), completion: .peers)
    var to: String?

    @Flag(help: "List delivered and cancelled hexes too.")
    var all = false

    @OptionGroup var rows: RowLimit

    func run() async throws {
        let output = common.output
        let states: [OutboxState] = all ? [] : [.queued, .sending, .rejected, .expired, .failed] + (output.json ? [.held] : [])
        var left = rows.maximum(for: output)
        try await common.withClient { client in
            var listed = 0
            var hasDelivered = false
            var cursor: String?
            repeat {
                var table = OutboxText.table(hasHeader: listed == 0)
                // JSON output keeps the order of delivery, which earlier releases used.
                cursor = try await client.outbox(
                    to: to, states: states, offered: !all && !output.json, newestFirst: !output.json,
                    limit: min(left, LocalAPI.pageLimit), after: cursor
                ) { row in
                    listed += 1
                    if !states.isEmpty, !states.contains(row.state) { hasDelivered = true }
                    left -= 1
                    if output.json { try output.object(row) } else { table.add(OutboxText.cells(row)) }
                }
                if !table.isEmpty { try output.table(table) }
                if left <= 0 { try output.cut(cursor) }
                try output.flush()
            } while cursor != nil && left > 0
            if listed == 0, !output.json {
                StandardError.note(all ? "The outbox is empty." : "Nothing waits; --all lists delivered hexes.")
            }
            if cursor != nil {
                // The counters have no number of delivered rows with offered files.
                StandardError.note(
                    hasDelivered ? "There are more; list all with --limit 0." : try await more(than: listed, states, client))
            }
        }
    }

    /// Returns a sentence about the rows that are not shown, with their number if it is known.
    private func more(than listed: Int, _ states: [OutboxState], _ client: HexlistClient) async throws -> String {
        guard to == nil else { return "There are more; list all with --limit 0." }
        let counts = try await client.status().outbox
        let total = counts.filter { states.isEmpty || states.contains($0.key) }.values.reduce(0, +)
        let more = max(1, total - listed)
        return "There \(more == 1 ? "is 1" : "are \(more)") more; list all with --limit 0."
    }
}

struct OutboxShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show why a hex is not delivered yet, with advice.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("Ids from `hexlist outbox`.", valueName: "id"), completion: .outboxRows)
    var ids: [HexID]

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            for (position, id) in ids.enumerated() {
                let row = try await client.outboxRow(id.value)
                if output.json {
                    try output.object(row)
                } else {
                    if position > 0 { try output.line() }
                    try output.table(OutboxText.details(row))
                }
            }
        }
        try output.flush()
    }
}

/// The arguments that select the outbox rows to change.
struct OutboxSelection: ParsableArguments {
    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("All hexes for this peer.", valueName: "peer"), completion: .peers)
    var to: String?

    @Argument(help: ArgumentHelp("Ids from `hexlist outbox`.", valueName: "id"), completion: .outboxRows)
    var ids: [HexID] = []

    func validate() throws {
        if ids.isEmpty != (to != nil) { throw ValidationError("Which ones? Give ids from `hexlist outbox`, or --to PEER.") }
    }

    /// Changes the given rows one by one and prints each, or changes all rows for a peer in one request and prints their number.
    func change(
        _ verb: String, _ one: (HexlistClient, Int64) async throws -> OutboxView,
        _ many: (HexlistClient, OutboxRowsRequest) async throws -> OutboxChange
    ) async throws {
        try await common.withClient { client in
            if let to {
                try await change(verb, all: to, client, many)
            } else {
                try await change(client, one)
            }
        }
    }

    /// Changes rows one by one. After an error, continues with the next row; throws the first error at the end.
    private func change(_ client: HexlistClient, _ one: (HexlistClient, Int64) async throws -> OutboxView) async throws {
        let output = common.output
        var changed: [OutboxView] = []
        var first: (any Error)?
        for id in ids {
            do {
                changed.append(try await one(client, id.value))
            } catch {
                if first == nil { first = error }
            }
        }
        try OutboxText.show(changed, output, hasHeader: true)
        try output.flush()
        for row in changed {
            if row.mayHaveArrived == true {
                StandardError.note("\(row.outboxID) was being sent: it may have arrived.")
            } else if row.state == .stored || row.state == .held {
                StandardError.note("\(row.outboxID) was already delivered; it cannot be taken back.")
            }
        }
        if let first { throw first }
    }

    private func change(
        _ verb: String, all peer: String, _ client: HexlistClient, _ many: (HexlistClient, OutboxRowsRequest) async throws -> OutboxChange
    ) async throws {
        let output = common.output
        var total = OutboxChange()
        var cursor: String?
        repeat {
            let change = try await many(client, .peer(peer, after: cursor))
            total.changed += change.changed
            total.mayHaveArrived += change.mayHaveArrived
            total.passedOver += change.passedOver
            cursor = change.next
        } while cursor != nil
        if output.json {
            try output.object(total)
        } else {
            try output.line("\(HumanText.count(total.changed, "hex", "hexes")) \(verb).")
        }
        try output.flush()
        if total.mayHaveArrived > 0 {
            StandardError.note(
                total.mayHaveArrived == 1
                    ? "One of them was being sent: it may have arrived."
                    : "\(total.mayHaveArrived) of them were being sent: they may have arrived.")
        }
    }
}

struct OutboxRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Retry waiting, failed or refused hexes now.")

    @OptionGroup var selection: OutboxSelection

    func run() async throws {
        try await selection.change("will be retried now", { try await $0.retry($1) }, { try await $0.retry($1) })
    }
}

struct OutboxCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel the delivery of hexes. One that is being sent may still arrive.",
        discussion: "A delivered hex stays delivered, but its files can no longer be fetched.")

    @OptionGroup var selection: OutboxSelection

    func run() async throws {
        try await selection.change("cancelled", { try await Self.cancel($1, $0) }, { try await $0.cancel($1) })
    }

    /// Cancels a row, and prints how many files the peer can no longer fetch as a result.
    private static func cancel(_ id: Int64, _ client: HexlistClient) async throws -> OutboxView {
        let offered = try await client.outboxRow(id).offers?.count ?? 0
        let row = try await client.cancel(id)
        let ended = offered - (row.offers?.count ?? 0)
        if ended > 0 {
            StandardError.note(
                "\(PeerDisplayName(row.peer, row.tag).listed()) can no longer fetch \(HumanText.count(ended, "file", "files")) of \(id)."
            )
        }
        return row
    }
}

enum OutboxText {
    static func show(_ rows: [OutboxView], _ output: Output, hasHeader: Bool) throws {
        if output.json {
            for row in rows { try output.object(row) }
            return
        }
        guard !rows.isEmpty else { return }
        var table = table(hasHeader: hasHeader)
        for row in rows { table.add(cells(row)) }
        try output.table(table)
    }

    static func table(hasHeader: Bool) -> Table { Table(hasHeader ? ["ID", "STATE", "TO", "SINCE", "HEX", "WHY"] : []) }

    static func cells(_ row: OutboxView) -> [Table.Cell] {
        [
            Table.Cell(String(row.outboxID)), OutboxStateText(OutboxRowExplanation(row)).cell,
            Table.Cell(PeerDisplayName(row.peer, row.tag).listed()),
            Table.Cell(HumanText.moment(row.createdAt), .faint), Table.Cell(row.subject ?? "–", columns: 40, minimum: 12),
            Table.Cell(OutboxRowExplanation(row).why, columns: 400),
        ]
    }

    /// Maximum number of offers that are listed for a row.
    private static let offerLimit = 20

    /// Returns a table with all details of a row.
    static func details(_ row: OutboxView) -> Table {
        let reason = OutboxRowExplanation(row)
        var table = Table()
        table.add("id", String(row.outboxID))
        table.add("hex", row.subject ?? "unknown (sent with an older version)", .strong)
        table.add("to", PeerDisplayName(row.peer, row.tag).listed())
        let state = OutboxStateText(reason)
        table.add("state", state.word, state.style)
        if !reason.why.isEmpty { table.add("why", reason.why) }
        table.add("since", HumanText.exact(row.createdAt))
        table.add("size", ByteCountText.of(Int64(row.bytes)))
        if row.attempts > 0 { table.add("tries", String(row.attempts)) }
        let offers = row.offers ?? []
        for (index, offer) in offers.prefix(Self.offerLimit).enumerated() {
            let text = "\(offer.name), \(ByteCountText.of(offer.size)), "
            let state =
                offer.fetched ? "fetched" : offer.problem.map(FileText.problem) ?? "until \(HumanText.moment(offer.ends))"
            table.add(index == 0 ? "offers" : "", text + state, offer.problem == nil ? .plain : .doubtful)
        }
        let lostOffers = offers.filter { $0.problem != nil && !$0.fetched }
        if let lost = lostOffers.first {
            let count = lostOffers.count
            table.add(
                "",
                count == 1
                    ? "\(lost.name) can no longer be fetched; send it again."
                    : "\(count) files can no longer be fetched; send them again.",
                .doubtful)
        }
        if offers.count > Self.offerLimit { table.add("", "and \(offers.count - Self.offerLimit) more; list all with --json") }
        if !offers.isEmpty, let advice = reason.fileAdvice { table.add("", advice, .doubtful) }
        if let advice = reason.advice { table.add("next", advice) }
        return table
    }

    /// Returns the number of rows in each state: `2 wait, 1 refused, 412 delivered (3 waiting for approval there)`.
    static func summary(_ counts: [OutboxState: Int]) -> String {
        let (waiting, held) = (counts.rows(.queued, .sending), counts.rows(.held))
        let parts = [
            (waiting, waiting == 1 ? "waits" : "wait"), (counts.rows(.rejected), "refused"), (counts.rows(.failed), "failed"),
            (counts.rows(.expired), "expired"),
            (counts.rows(.stored, .held), "delivered\(held > 0 ? " (\(held) waiting for approval there)" : "")"),
            (counts.rows(.cancelled), "cancelled"),
        ]
        let shown = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return shown.isEmpty ? "empty" : shown.joined(separator: ", ")
    }
}
