import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show a hex with its links.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("The local id that `hexlist inbox` prints.", valueName: "hex"))
    var hex: HexID

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            let hex = try await client.hex(hex.value)
            if output.json {
                try output.object(hex)
            } else {
                try show(hex, output)
            }
        }
        try output.flush()
    }

    private func show(_ hex: HexShape, _ output: Output) throws {
        var table = Table()
        table.add("hex", "\(hex.id), \(hex.location)\(hex.unread ? ", unread" : "")")
        table.add("from", HexText.sender(hex, columns: 80), .strong)
        table.add("received", HumanText.time(hex.receivedAt, seconds: true))
        if !hex.description.isEmpty { table.add("description", hex.description, .strong) }
        if !hex.color.isEmpty { table.add("colour", hex.color) }
        if let extra = hex.extra, extra != .emptyObject { table.add("extra", extra.text) }
        try output.table(table)
        for link in hex.links ?? [] {
            try output.line()
            try output.line("  \(link.url)")
            let service = link.service == Service.unknown.rawValue ? "" : link.service
            let about = [link.linkDescription, service].filter { !$0.isEmpty }.joined(separator: " · ")
            if !about.isEmpty { try output.line("  \(about)") }
            if let reason = link.notOpened { try output.line("  not opened: \(reason)") }
        }
    }
}

struct ReadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "read", abstract: "Mark hexes as read.")

    @OptionGroup var common: CommonOptions

    @Flag(help: "All of the inbox.")
    var all = false

    @Argument(help: ArgumentHelp("Local ids.", valueName: "hex"))
    var hexes: [HexID] = []

    func validate() throws {
        if hexes.isEmpty != all { throw ValidationError("Name some hexes, or give --all.") }
    }

    func run() async throws {
        let selection = all ? HexSelection.all : .ids(hexes.map(\.value))
        try await common.tell {
            try await $0.setUnread(false, selection)
        } as: {
            "\(HumanText.count($0, "hex", "hexes")) marked as read."
        }
    }
}

struct DeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete hexes. One that was received is not taken again from its sender.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("Local ids.", valueName: "hex"))
    var hexes: [HexID]

    func run() async throws {
        try await common.tell {
            try await $0.delete(hexes.map(\.value))
        } as: {
            "\(HumanText.count($0, "hex", "hexes")) deleted."
        }
    }
}

struct AcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Take held hexes into the inbox without trusting their sender.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("Local ids that `hexlist inbox --held` prints.", valueName: "hex"))
    var hexes: [HexID]

    func run() async throws {
        try await common.tell {
            try await $0.accept(hexes.map(\.value))
        } as: {
            "\(HumanText.count($0, "hex", "hexes")) accepted."
        }
    }
}

extension CommonOptions {
    /// Runs a change of several hexes and says how many it touched.
    func tell(_ body: (HexlistClient) async throws -> ChangedShape, as text: (Int) -> String) async throws {
        let output = output
        let changed = try await withClient(body)
        if output.json { try output.object(changed) } else { try output.line(text(changed.changed)) }
        try output.flush()
    }
}
