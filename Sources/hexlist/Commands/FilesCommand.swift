import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct ServicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "services", abstract: "List services with files: your shares, peers and clouds, and whether each is available.",
        discussion: """
            The names are for the part before the colon, such as `hexlist files bob:talks`; `shares` are the shares of this machine.
            """)

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
        commandName: "files", abstract: "List the files of a service, such as the folders a peer shares.",
        discussion: """
            hexlist files bob:

            hexlist files bob:talks/2026 --sort time

            Before the colon stands a peer or another service of `hexlist services`, after it a path. Without a path it lists the shares \
            of the peer, without an argument the services. Folders end with a slash.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("name, size (largest first) or time (newest first).", valueName: "order"))
    var sort = OrderArgument.name

    @Flag(help: "List everything; by default a terminal shows 50 entries.")
    var all = false

    @Flag(help: "Retry at once after repeated failures within the last 3 minutes.")
    var force = false

    @Argument(help: ArgumentHelp("SERVICE: or SERVICE:PATH", valueName: "service"))
    var folder: ServiceArgument?

    func run() async throws {
        guard let folder else { return try await ServicesCommand.list(common) }
        let output = common.output
        let maximum = all || output.json || !output.terminal.isInteractive ? Int.max : Self.defaultLimit
        try await common.withClient { client in
            var (leftOut, emptyPages) = (0, 0)
            let (listed, hasMore) = try await output.pages(maximum: maximum, header: ["NAME", "SIZE", "CHANGED"]) { limit, cursor in
                let page = try await client.files(
                    of: folder.service, at: folder.path, by: sort.order, limit: limit, after: cursor, force: force)
                leftOut = page.leftOut
                if page.items.isEmpty, page.next != nil { emptyPages += 1 }
                guard emptyPages <= Self.emptyPageLimit else {
                    throw HexlistError(.refused, "The list does not end: it sends empty pages.")
                }
                return Page(items: page.items, next: page.next)
            } cells: {
                FileText.cells($0)
            }
            if listed == 0, !output.json {
                if !folder.path.isEmpty {
                    StandardError.note("The folder is empty.")
                } else if PeerTextComparison.areEqual(folder.service, LocalAPI.ownService) {
                    StandardError.note("Nothing is shared. To share a folder: `hexlist share add FOLDER`.")
                } else {
                    StandardError.note("\(TerminalText.clean(folder.service, columns: 60)) shares nothing.")
                }
            }
            if hasMore { StandardError.note("There are more; list them with --all.") }
            if leftOut > 0 {
                StandardError.note(
                    "\(HumanText.count(leftOut, "entry is", "entries are")) not listed (special files, or unusable names)."
                )
            }
        }
    }

    /// Maximum number of empty pages. A list that changes while it is read can have a few. The limit stops a malicious peer that sends only
    /// empty pages.
    private static let emptyPageLimit = 100
    /// Maximum number of entries listed on a terminal without `--all`.
    private static let defaultLimit = 50
}

/// The values of `--sort`.
enum OrderArgument: String, ExpressibleByArgument, CaseIterable {
    case name, size, time

    var order: FolderSortOrder {
        switch self {
        case .name: .name
        case .size: .size
        case .time: .time
        }
    }
}

struct LinkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "link", abstract: "Print links to files of a service, one per line.",
        discussion: """
            hexlist link shares:talks/slides.pdf

            hexlist link dropbox:Photos/a.jpg --expire 7d

            hexlist link --revoke dropbox:Photos/a.jpg

            A link to a cloud (an rclone remote) is public: anyone with the link can read the file until it expires or is revoked, if the \
            cloud supports that. A link into your shares (`shares:`) works for the peers you share with; one into the share of a peer \
            only for those that the peer shares with.

            Exit code 1 if a link could not be made.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Expire the links after this time, such as 7d, if the service supports it.", valueName: "duration"))
    var expire: Seconds?

    @Flag(help: "Revoke existing links, if the service supports it.")
    var revoke = false

    @Flag(help: "Retry at once after repeated failures within the last 3 minutes.")
    var force = false

    @Argument(help: ArgumentHelp("SERVICE:PATH", valueName: "file"))
    var files: [ServiceArgument]

    func validate() throws {
        if revoke, expire != nil { throw ValidationError("Give --revoke or --expire, not both.") }
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
                    try output.line("\(TerminalText.clean(file, columns: 200)): revoked")
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
            if failed { throw SilentExit(status: .failed) }
        }
    }
}

extension LinkCommand {
    /// A warning printed after public links were created.
    static let warning =
        "Whoever has this link can read the file. To revoke it, if the service supports that: `hexlist link --revoke`."
}

/// Creates links to files of services.
enum ServiceLinks {
    /// Creates links, with one request for consecutive files of the same service.
    /// - Parameter each: called with `SERVICE:PATH` and its reply.
    static func make(
        _ files: [ServiceArgument], _ client: HexlistClient, expire: Double? = nil, revoke: Bool = false, force: Bool = false,
        _ each: (_ file: String, ServiceLinkResult) throws -> Void
    ) async throws {
        var rest = files[...]
        while let first = rest.first {
            let same = rest.prefix { $0.service.utf8.elementsEqual(first.service.utf8) }
            rest = rest.dropFirst(same.count)
            let request = ServiceLinksRequest(
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
            // A name is never cut, because the user has to type it. A row with a long name becomes running text instead.
            Table.Cell(isFolder ? entry.name + "/" : entry.name, isFolder ? .strong : .plain, columns: 255),
            Table.Cell(entry.size.map { ByteCountText.of($0) } ?? ""),
            Table.Cell(entry.modified.map { HumanText.moment($0) } ?? "", .faint),
        ]
    }
}
