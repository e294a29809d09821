import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct TransfersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfers", abstract: "List, retry or cancel downloads of files; accept files of devices.",
        subcommands: [
            TransfersListCommand.self, TransfersShowCommand.self, TransfersCancelCommand.self, TransfersRetryCommand.self,
            TransfersRemoveCommand.self, TransfersRequestsCommand.self, TransfersAcceptCommand.self, TransfersRefuseCommand.self,
        ],
        defaultSubcommand: TransfersListCommand.self)
}

struct TransfersListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List downloads that run, wait or failed.",
        discussion: "--all adds finished and cancelled downloads of the last 30 days.")

    @OptionGroup var common: CommonOptions

    @Flag(help: "List finished and cancelled downloads too.")
    var all = false

    @OptionGroup var rows: RowLimit

    func run() async throws {
        let output = common.output
        let stages: [TransferStage] = all ? [] : [.waiting, .running, .paused, .failed]
        try await common.withClient { client in
            if !output.json { try await listRequests(client, output) }
            let header = ["ID", "STATE", "FROM", "SINCE", "FILE", "SIZE", "WHY"]
            let (listed, hasMore) = try await output.pages(maximum: rows.maximum(for: output), header: header) {
                try await client.transfers(stages, limit: $0, after: $1)
            } cells: {
                TransferText.listCells($0)
            }
            if listed == 0, !output.json {
                StandardError.note(all ? "No downloads." : "No downloads in progress; --all lists finished ones.")
            }
            if hasMore { StandardError.note("There are more; list all with --limit 0.") }
        }
    }

    /// Prints the requests of devices to send files, if there are any.
    private func listRequests(_ client: HexlistClient, _ output: Output) async throws {
        let requests = try await client.uploadRequests().items
        guard !requests.isEmpty else { return }
        try output.table(UploadRequestText.table(requests))
        try output.line()
        try output.flush()
        StandardError.note("`hexlist transfers accept ID` receives the files, `hexlist transfers refuse ID` does not.")
    }
}

/// The arguments that select the transfers to change.
struct TransferSelection: ParsableArguments {
    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("Ids from `hexlist transfers`.", valueName: "id"))
    var ids: [Int64] = []

    func validate() throws {
        guard !ids.isEmpty else { throw ValidationError("Which download? `hexlist transfers` lists them.") }
    }

    /// Changes transfers one by one. After an error, continues with the next transfer; throws the first error at the end.
    func change(_ one: (HexlistClient, Int64) async throws -> TransferView?) async throws {
        let output = common.output
        try await common.withClient { client in
            var first: (any Error)?
            var table = Table()
            for id in ids {
                do {
                    guard let row = try await one(client, id) else { continue }
                    if output.json { try output.object(row) } else { table.add(TransferText.cells(row, hasID: true)) }
                } catch {
                    if first == nil { first = error }
                }
            }
            if !table.isEmpty { try output.table(table) }
            try output.flush()
            if let first { throw first }
        }
    }
}

struct TransfersShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show everything about downloads.")

    @OptionGroup var selection: TransferSelection

    func run() async throws {
        let output = selection.common.output
        try await selection.change { client, id in
            let row = try await client.transfer(id)
            guard !output.json else { return row }
            if id != selection.ids.first { try output.line() }
            try output.table(TransferText.details(row))
            try output.flush()
            return nil
        }
    }
}

struct TransfersCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel downloads and delete what was downloaded so far.")

    @OptionGroup var selection: TransferSelection

    func run() async throws { try await selection.change { try await $0.cancelTransfer($1) } }
}

struct TransfersRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Retry waiting, failed or cancelled downloads now.")

    @OptionGroup var selection: TransferSelection

    @Flag(help: "Also those that failed repeatedly within the last 3 minutes.")
    var force = false

    func run() async throws { try await selection.change { try await $0.retryTransfer($1, force: force) } }
}

struct TransfersRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Remove finished downloads from the list. The files stay.")

    @OptionGroup var selection: TransferSelection

    func run() async throws {
        let output = selection.common.output
        try await selection.change { client, id in
            _ = try await client.forgetTransfer(id)
            if !output.json { try output.line("Removed transfer \(id) from the list.") }
            return nil
        }
        try output.flush()
    }
}

/// Texts about transfers.
enum TransferText {
    static func cells(_ row: TransferView, hasID: Bool) -> [Table.Cell] {
        [
            Table.Cell(row.state.text, style(row)), Table.Cell(path(row), columns: 400), Table.Cell(size(row), .faint),
            Table.Cell(([hasID ? "transfer \(row.id)" : "", why(row)].filter { !$0.isEmpty }).joined(separator: "; "), columns: 400),
        ]
    }

    static func listCells(_ row: TransferView) -> [Table.Cell] {
        [
            Table.Cell(String(row.id)), Table.Cell(row.state.text, style(row)), from(row),
            Table.Cell(HumanText.moment(row.createdAt), .faint), Table.Cell(row.file, columns: 40, minimum: 12), Table.Cell(size(row)),
            Table.Cell(why(row), columns: 400),
        ]
    }

    static func details(_ row: TransferView) -> Table {
        var table = Table()
        table.add("transfer", String(row.id))
        table.add("file", path(row), .strong)
        table.add("from", row.service.map { "\($0):" } ?? row.label.listed())
        if let hex = row.hex { table.add("hex", String(hex)) }
        table.add("state", row.state.text, style(row))
        if !why(row).isEmpty { table.add("why", why(row)) }
        table.add("size", size(row))
        table.add("since", HumanText.exact(row.createdAt))
        if let ended = row.endedAt { table.add("ended", HumanText.exact(ended)) }
        table.add("link", row.url)
        return table
    }

    private static func from(_ row: TransferView) -> Table.Cell {
        row.service.map { Table.Cell("\($0):", columns: 40) } ?? Table.Cell(row.label.listed())
    }

    private static func path(_ row: TransferView) -> String { row.folder == "/" ? "/\(row.file)" : "\(row.folder)/\(row.file)" }

    /// Returns the size of a file: `12.5 MiB`, or during the download `3.1 of 12.5 MiB`.
    private static func size(_ row: TransferView) -> String {
        guard let size = row.size else { return row.bytes > 0 ? ByteCountText.of(row.bytes) : "" }
        return row.state.known == .done || row.bytes == 0
            ? ByteCountText.of(size) : "\(ByteCountText.of(row.bytes)) of \(ByteCountText.of(size))"
    }

    /// Returns the reason why a transfer waits or has failed.
    static func why(_ row: TransferView) -> String {
        let peer = row.service ?? row.label.shown(.named)
        let wait: String =
            switch (row.state.known, row.waitingFor) {
            case (.paused, _): "failed repeatedly; tries again \(row.until.map { "at " + HumanText.clock($0) } ?? "soon")"
            case (_, "turn"): "waiting for other downloads"
            case (_, "peer"): "waiting for \(peer), which is away"
            case (_, "link") where row.service != nil: "waiting for rclone; it will be retried"
            case (_, "link"): "waiting for a connection to \(peer); it will be retried"
            case (_, "disk"): "waiting for disk space"
            case (_, "source"): "will be retried in a moment"
            case (_, let other?): "waiting: \(other)"
            case (_, nil): ""
            }
        let isOver = [.done, .cancelled, .running].contains(row.state.known) || ["peer", "disk"].contains(row.waitingFor)
        return [wait, isOver ? "" : row.message ?? ""].filter { !$0.isEmpty }.joined(separator: ". ")
    }

    private static func style(_ row: TransferView) -> Terminal.Style {
        switch row.state.known {
        case .done: .good
        case .failed: .failure
        case .cancelled: .faint
        case .waiting, .running, .paused, nil: .doubtful
        }
    }
}
