import ArgumentParser
import HexlistAPI
import HexlistClient

struct TransfersRequestsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "requests", abstract: "List devices that want to send files and wait for an answer.",
        discussion: "A device that is not trusted waits for two minutes. `hexlist transfers` lists these requests too.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            let requests = try await client.uploadRequests().items
            if output.json {
                for request in requests { try output.object(request) }
            } else if requests.isEmpty {
                StandardError.note("No device waits for an answer.")
            } else {
                try output.table(UploadRequestText.table(requests))
            }
            try output.flush()
        }
    }
}

/// The argument that selects the request of a device.
struct UploadRequestSelection: ParsableArguments {
    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("An id from `hexlist transfers requests`.", valueName: "id"))
    var id: Int64

    /// Answers the request, and prints it.
    /// - Parameter text: a sentence about the answer.
    func answer(_ answer: (HexlistClient) async throws -> UploadRequestView, _ text: (UploadRequestView) -> String) async throws {
        let output = common.output
        try await common.withClient { client in
            let request = try await answer(client)
            if output.json { try output.object(request) } else { try output.line(text(request)) }
            try output.flush()
        }
    }
}

struct TransfersAcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Receive the files that a device wants to send.",
        discussion: "The files arrive in the inbox, as one hex.")

    @OptionGroup var selection: UploadRequestSelection

    @Flag(help: "Trust the device as well, without a comparison of fingerprints.")
    var trust = false

    func run() async throws {
        try await selection.answer({ try await $0.acceptUpload(selection.id, trusting: trust) }) { request in
            let now = trust ? " It is trusted from now on." : ""
            return "Receiving \(UploadRequestText.content(request)) from \(request.label.shown()).\(now)"
        }
    }
}

struct TransfersRefuseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refuse", abstract: "Refuse the files that a device wants to send.")

    @OptionGroup var selection: UploadRequestSelection

    func run() async throws {
        try await selection.answer({ try await $0.refuseUpload(selection.id) }) { "Refused the files of \($0.label.shown())." }
    }
}

/// Texts about the requests of devices to send files.
enum UploadRequestText {
    static func table(_ requests: [UploadRequestView]) -> Table {
        var table = Table(["ID", "STATE", "FROM", "FILES", "SIZE", "UNTIL"])
        for request in requests {
            let names = request.names + (request.files > request.names.count ? ["…"] : [])
            table.add([
                Table.Cell(String(request.id)), Table.Cell("asked", .doubtful), Table.Cell(request.label.listed()),
                Table.Cell(names.joined(separator: ", "), columns: 60, minimum: 12), Table.Cell(ByteCountText.of(request.size)),
                Table.Cell(HumanText.clock(request.until), .faint),
            ])
        }
        return table
    }

    /// Returns the number and size of the files: `3 files, 12.0 MiB`.
    static func content(_ request: UploadRequestView) -> String {
        "\(HumanText.count(request.files, "file", "files")), \(ByteCountText.of(request.size))"
    }
}
