import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "See and steer what waits to be delivered.",
        subcommands: [OutboxListCommand.self, OutboxShowCommand.self, OutboxRetryCommand.self, OutboxCancelCommand.self],
        defaultSubcommand: OutboxListCommand.self)
}

struct OutboxListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List what waits, for whom, why, and what was refused or failed.",
        discussion: """
            What is done is listed with --all: delivered hexes, those that their receiver holds out of the inbox, and those taken back. \
            --json lists the held ones without it, too.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Only what is for this peer.", valueName: "peer"), completion: .peers)
    var to: String?

    @Flag(help: "List what is done too: delivered, held there, or taken back.")
    var all = false

    @OptionGroup var rows: RowLimit

    func run() async throws {
        let output = common.output
        let states: [OutboxState] = all ? [] : [.queued, .sending, .rejected, .expired, .failed] + (output.json ? [.held] : [])
        var left = rows.most(output)
        try await common.withClient { client in
            var listed = 0
            var cursor: String?
            repeat {
                var table = OutboxText.table(hasHeader: listed == 0)
                cursor = try await client.outbox(to: to, states: states, limit: min(left, LocalAPI.pageLimit), after: cursor) { row in
                    listed += 1
                    left -= 1
                    if output.json { try output.object(row) } else { table.add(OutboxText.cells(row)) }
                }
                if !table.isEmpty { try output.table(table) }
                try output.flush()
            } while cursor != nil && left > 0
            if listed == 0, !output.json { StandardError.note(all ? "The outbox is empty." : "Nothing waits; --all lists what is done.") }
            if cursor != nil { StandardError.note(try await more(than: listed, states, client)) }
        }
    }

    /// A sentence about the rows that are not shown, with their number if it is known.
    private func more(than listed: Int, _ states: [OutboxState], _ client: HexlistClient) async throws -> String {
        guard to == nil else { return "There are newer ones: --limit 0 lists all." }
        let counts = try await client.status().outbox
        let total = counts.filter { states.isEmpty || states.contains($0.key) }.values.reduce(0, +)
        let more = max(1, total - listed)
        return "There \(more == 1 ? "is 1 newer one" : "are \(more) newer ones"): --limit 0 lists all."
    }
}

struct OutboxShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show rows of the outbox: what each is, why it is where it is, and what to do.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("Ids that `hexlist outbox` prints.", valueName: "id"), completion: .outboxRows)
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

/// The arguments that select the rows of a change.
struct OutboxSelection: ParsableArguments {
    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("All rows for this peer.", valueName: "peer"), completion: .peers)
    var to: String?

    @Argument(help: ArgumentHelp("Ids that `hexlist outbox` prints.", valueName: "id"), completion: .outboxRows)
    var ids: [HexID] = []

    func validate() throws {
        if ids.isEmpty != (to != nil) { throw ValidationError("Name some ids, or give --to PEER.") }
    }

    /// Changes the named rows one by one and shows each, or changes all rows for a peer and shows their number.
    func change(
        _ verb: String, _ one: (HexlistClient, Int64) async throws -> OutboxView,
        _ many: (HexlistClient, OutboxRows) async throws -> OutboxChange
    ) async throws {
        try await common.withClient { client in
            if let to {
                try await change(verb, all: to, client, many)
            } else {
                try await change(client, one)
            }
        }
    }

    /// Changes rows one by one. A row that cannot be changed does not keep the others from it; the first error is thrown at the end.
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
                StandardError.note("Row \(row.outboxID) was on its way: it may have arrived.")
            } else if row.state == .stored || row.state == .held {
                StandardError.note("Row \(row.outboxID) was delivered before: the hex stays with its receiver.")
            }
        }
        if let first { throw first }
    }

    private func change(
        _ verb: String, all peer: String, _ client: HexlistClient, _ many: (HexlistClient, OutboxRows) async throws -> OutboxChange
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
            try output.line("\(HumanText.count(total.changed, "row", "rows")) \(verb).")
        }
        try output.flush()
        if total.mayHaveArrived > 0 {
            StandardError.note(
                total.mayHaveArrived == 1
                    ? "One of them was on its way: it may have arrived."
                    : "\(total.mayHaveArrived) of them were on their way: they may have arrived.")
        }
    }
}

struct OutboxRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Try rows again now: what waits, failed, or was refused.")

    @OptionGroup var selection: OutboxSelection

    func run() async throws {
        try await selection.change("will be tried again now", { try await $0.retry($1) }, { try await $0.retry($1) })
    }
}

struct OutboxCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Give rows up. One in flight may have arrived all the same.",
        discussion: "A row that was delivered stays what it is; the files it offers can no longer be fetched.")

    @OptionGroup var selection: OutboxSelection

    func run() async throws {
        try await selection.change("cancelled", { try await Self.cancel($1, $0) }, { try await $0.cancel($1) })
    }

    /// Says what the peer can no longer fetch.
    private static func cancel(_ id: Int64, _ client: HexlistClient) async throws -> OutboxView {
        let offered = try await client.outboxRow(id).offers?.count ?? 0
        let row = try await client.cancel(id)
        let ended = offered - (row.offers?.count ?? 0)
        if ended > 0 {
            StandardError.note(
                "Row \(id): \(HumanText.count(ended, "file", "files")) can no longer be fetched by \(PeerDisplayName(row.peer, row.tag).listed())."
            )
        }
        return row
    }
}

/// Texts about rows of the outbox.
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
            Table.Cell(String(row.outboxID)), Table.Cell(row.state.rawValue, row.state.style),
            Table.Cell(PeerDisplayName(row.peer, row.tag).listed()),
            Table.Cell(HumanText.moment(row.createdAt), .faint), Table.Cell(row.subject ?? "–", columns: 40, minimum: 12),
            Table.Cell(RowReason(row).why, columns: 400),
        ]
    }

    /// The most offers of a row that are shown.
    private static let listedOffers = 20

    /// All facts about one row.
    static func details(_ row: OutboxView) -> Table {
        let reason = RowReason(row)
        var table = Table()
        table.add("row", String(row.outboxID))
        table.add("hex", row.subject ?? "not kept by the version that took it", .strong)
        table.add("to", PeerDisplayName(row.peer, row.tag).listed())
        table.add("state", row.state.rawValue, row.state.style)
        if !reason.why.isEmpty { table.add("why", reason.why) }
        table.add("since", HumanText.exact(row.createdAt))
        table.add("size", ByteCountText.of(Int64(row.bytes)))
        if row.attempts > 0 { table.add("tries", String(row.attempts)) }
        let offers = row.offers ?? []
        for (index, offer) in offers.prefix(Self.listedOffers).enumerated() {
            let text = "\(offer.name), \(ByteCountText.of(offer.size)), "
            let state = offer.problem.map(problem) ?? "until \(HumanText.moment(offer.ends))"
            table.add(index == 0 ? "offers" : "", text + state, offer.problem == nil ? .plain : .doubtful)
        }
        if let lost = offers.first(where: { $0.problem != nil }) {
            let count = offers.count { $0.problem != nil }
            table.add(
                "",
                count == 1
                    ? "\(lost.name) cannot be fetched any more; send it again."
                    : "\(count) files cannot be fetched any more; send them again.",
                .doubtful)
        }
        if offers.count > Self.listedOffers { table.add("", "and \(offers.count - Self.listedOffers) more; --json lists all") }
        if !offers.isEmpty, let advice = reason.fileAdvice { table.add("", advice, .doubtful) }
        if let advice = reason.advice { table.add("next", advice) }
        return table
    }

    /// Why a file on offer cannot be fetched any more.
    private static func problem(_ word: ForwardCompatibleEnum<OfferProblem>) -> String {
        switch word.known {
        case .changed: "changed since it was sent"
        case .missing: "deleted or moved since it was sent"
        case .notAllowed: "not readable any more"
        case nil: "not as it was sent: \(word)"
        }
    }

    /// The number of rows in each state: `2 wait, 1 refused, 412 delivered (3 of them held there)`.
    static func summary(_ counts: [OutboxState: Int]) -> String {
        let (waiting, held) = (counts.rows(.queued, .sending), counts.rows(.held))
        let parts = [
            (waiting, waiting == 1 ? "waits" : "wait"), (counts.rows(.rejected), "refused"), (counts.rows(.failed), "failed"),
            (counts.rows(.expired), "expired"),
            (counts.rows(.stored, .held), "delivered\(held > 0 ? " (\(held) of them held there)" : "")"),
            (counts.rows(.cancelled), "taken back"),
        ]
        let told = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return told.isEmpty ? "empty" : told.joined(separator: ", ")
    }
}
