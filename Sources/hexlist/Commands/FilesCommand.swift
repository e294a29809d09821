import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct ServicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "services", abstract: "List what has files to look at: own shares, peers', and whether each can be used now.",
        discussion: "The names stand before the colon in `hexlist files bob:talks`; `shares` is what this machine shares itself.")

    @OptionGroup var common: CommonOptions

    func run() async throws { try await Self.list(common) }

    static func list(_ common: CommonOptions) async throws {
        let services = try await common.withClient { try await $0.services() }
        let output = common.output
        if output.json {
            for service in services { try output.object(service) }
        } else {
            var table = Table(["NAME", "KIND", "STATE", "WHY"])
            for service in services { table.add(FileText.cells(service)) }
            try output.table(table)
        }
        try output.flush()
    }
}

struct FilesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "files", abstract: "List the files of a service, such as the folders that a peer shares.",
        discussion: """
            hexlist files bob:

            hexlist files bob:talks/2026 --sort time

            Before the colon stands a peer, or another of `hexlist services`; behind it a path. Without a path it lists what the peer \
            shares, without anything the services. Folders end with a slash.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("name, size (the largest first) or time (the newest first).", valueName: "order"))
    var sort = OrderArgument.name

    @Flag(help: "List all of it; otherwise on a terminal the first 50 entries.")
    var all = false

    @Flag(help: "Ask again at once for what failed repeatedly within the last 3 minutes.")
    var force = false

    @Argument(help: ArgumentHelp("SERVICE: or SERVICE:PATH", valueName: "service"))
    var place: ServiceArgument?

    func run() async throws {
        guard let place else { return try await ServicesCommand.list(common) }
        let output = common.output
        var left = all || output.json || !output.terminal.isInteractive ? Int.max : Self.shown
        try await common.withClient { client in
            var (cursor, listed, leftOut, emptyPages): (String?, Int, Int, Int) = (nil, 0, 0, 0)
            repeat {
                let page = try await client.files(
                    of: place.service, at: place.path, by: sort.order, limit: min(left, LocalAPI.pageLimit), after: cursor, force: force)
                cursor = page.next
                leftOut = page.leftOut
                if page.items.isEmpty, cursor != nil { emptyPages += 1 }
                guard emptyPages <= Self.mostEmptyPages else {
                    throw HexlistError(.refused, "The list does not come to an end: it has page after page without an entry.")
                }
                if output.json {
                    for entry in page.items { try output.object(entry) }
                } else if !page.items.isEmpty {
                    var table = Table(listed == 0 ? ["NAME", "SIZE", "CHANGED"] : [])
                    for entry in page.items { table.add(FileText.cells(entry)) }
                    try output.table(table)
                }
                listed += page.items.count
                left -= page.items.count
                try output.flush()
            } while cursor != nil && left > 0
            if listed == 0, !output.json {
                if !place.path.isEmpty {
                    StandardError.note("The folder is empty.")
                } else if PeerText.areEqual(place.service, LocalAPI.ownService) {
                    StandardError.note("Nothing is shared: `hexlist share add FOLDER` shares a folder.")
                } else {
                    StandardError.note("\(TerminalText.clean(place.service, columns: 60)) shares nothing.")
                }
            }
            if cursor != nil { StandardError.note("There are more: --all lists them.") }
            if leftOut > 0 {
                StandardError.note(
                    "\(HumanText.count(leftOut, "entry is", "entries are")) not listed: the name is not UTF-8 or cannot be used, or it is neither a file nor a folder."
                )
            }
        }
    }

    /// What changes while it is read has such pages, a list that is made up has no end of them.
    private static let mostEmptyPages = 100
    /// The entries that are listed on a terminal without `--all`.
    private static let shown = 50
}

/// The values of `--sort`.
enum OrderArgument: String, ExpressibleByArgument, CaseIterable {
    case name, size, time

    var order: FileOrder {
        switch self {
        case .name: .name
        case .size: .size
        case .time: .time
        }
    }
}

struct LinkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "link", abstract: "Print links to files of a service, one a line as they come.",
        discussion: """
            hexlist link shares:talks/slides.pdf

            hexlist link dropbox:Photos/a.jpg --expire 7d

            hexlist link --revoke dropbox:Photos/a.jpg

            A link that a remote of rclone makes is public: whoever has it can read the file, until it ends or is taken back with --revoke, \
            where the service can do these. A link into a share of this machine (`shares:`) can be fetched by those it is shared with; one into a peer's share by those that \
            peer shares it with, and by nobody else.

            Exit code 1 where one of them could not be made.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("End the links after so long, as 7d, where the service can.", valueName: "duration"))
    var expire: Seconds?

    @Flag(help: "Take the links back that there are, where the service can.")
    var revoke = false

    @Flag(help: "Ask again at once for what failed repeatedly within the last 3 minutes.")
    var force = false

    @Argument(help: ArgumentHelp("SERVICE:PATH", valueName: "file"))
    var files: [ServiceArgument]

    func validate() throws {
        if revoke, expire != nil { throw ValidationError("--revoke and --expire do not go together.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            var (failed, isPublic, count) = (false, false, 0)
            let line = ProgressLine()
            let began = ContinuousClock.now
            defer { line.end() }
            try await ServiceLinks.make(files, client, expire: expire?.value, revoke: revoke, force: force) { file, reply in
                count += 1
                line.end()
                if output.json {
                    try output.object(reply)
                } else if let url = reply.url {
                    isPublic = isPublic || reply.service != nil
                    try output.line(url)
                } else if revoke, reply.code == nil {
                    try output.line("\(TerminalText.clean(file, columns: 200)): taken back")
                }
                if let code = reply.code {
                    failed = true
                    if !output.json {
                        let hint = reply.hint.map { " \($0)" } ?? ""
                        StandardError.note(
                            "\(TerminalText.clean(file, columns: 100)): \(TerminalText.clean((reply.message ?? code) + hint, columns: 400))"
                        )
                    }
                }
                try output.flush()
                if count < files.count, ContinuousClock.now - began > .seconds(1) { line.update("\(count) of \(files.count) links") }
            }
            line.end()
            if isPublic { StandardError.note(Self.warning) }
            if failed { throw Ending(status: .failed) }
        }
    }
}

extension LinkCommand {
    /// A warning about public links.
    static let warning =
        "Whoever has such a link can read the file, until it ends or `hexlist link --revoke` takes it back, where the service can."
}

/// Links made by services.
enum ServiceLinks {
    /// Makes links, service by service.
    /// - Parameter each: called with `SERVICE:PATH` and what became of it.
    static func make(
        _ files: [ServiceArgument], _ client: HexlistClient, expire: Double? = nil, revoke: Bool = false, force: Bool = false,
        _ each: (_ file: String, LinkReply) throws -> Void
    ) async throws {
        var rest = files[...]
        while let first = rest.first {
            let same = rest.prefix { $0.service.utf8.elementsEqual(first.service.utf8) }
            rest = rest.dropFirst(same.count)
            let request = LinkRequest(
                paths: same.map(\.path), expire: expire, revoke: revoke ? true : nil, force: force ? true : nil)
            _ = try await client.links(of: first.service, request) {
                try each("\(first.service):\($0.path)", $0)
            }
        }
    }
}

/// Texts about services and files.
enum FileText {
    static func cells(_ service: ServiceView) -> [Table.Cell] {
        let kind =
            switch service.kind.known {
            case .own: "this machine's shares"
            case .peer: "peer"
            case .rclone: service.service ?? "rclone"
            case nil: service.kind.text
            }
        return [
            Table.Cell(service.name + ":", .strong, columns: 64, minimum: 12), Table.Cell(kind, .faint),
            Table.Cell(service.usable ? "ready" : "not now", service.usable ? .good : .doubtful),
            Table.Cell([service.why, service.hint].compactMap(\.self).joined(separator: " "), columns: 400),
        ]
    }

    static func cells(_ entry: FileEntry) -> [Table.Cell] {
        let isFolder = entry.kind.known == .folder
        return [
            // Whole, as one has to type it; where it does not fit, the row flows.
            Table.Cell(isFolder ? entry.name + "/" : entry.name, isFolder ? .strong : .plain, columns: 255),
            Table.Cell(entry.size.map { ByteCountText.of($0) } ?? ""),
            Table.Cell(entry.modified.map { HumanText.moment($0) } ?? "", .faint),
        ]
    }
}
