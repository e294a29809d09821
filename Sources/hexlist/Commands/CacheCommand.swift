import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "Manage the cache of fetched files.",
        discussion: """
            `hexlist fetch HEX --cache` and `hexlist open` put files into the cache. It holds up to `files.cacheBytes` (1 GiB): the \
            least recently used files are removed first, as are files unused for `files.cacheDays` (30). Files open in a program stay. A \
            kept file stays until its hex is deleted and does not count towards the limit.
            """,
        subcommands: [CacheListCommand.self, CacheClearCommand.self, CacheKeepCommand.self], defaultSubcommand: CacheListCommand.self)
}

struct CacheListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List cached and kept files.")

    @OptionGroup var common: CommonOptions

    @OptionGroup var rows: RowLimit

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            let (_, hasMore) = try await output.pages(maximum: rows.maximum(for: output), header: ["FILE", "SIZE", "HEX", "USED", "KEPT"]) {
                try await client.cachedFiles(limit: $0, after: $1)
            } cells: {
                Self.cells($0)
            }
            if !output.json { StandardError.note(Self.sum(try await client.cacheSummary())) }
            if hasMore { StandardError.note("There are more; list all with --limit 0.") }
        }
    }

    static func cells(_ row: CachedFile) -> [Table.Cell] {
        [
            Table.Cell(row.file, columns: 60, minimum: 12), Table.Cell(ByteCountText.of(row.size)),
            Table.Cell(row.hex.map(String.init) ?? ""),
            Table.Cell(HumanText.moment(row.usedAt), .faint), Table.Cell(row.kept ? "kept" : "", .good),
        ]
    }

    /// Returns a summary of the cache: `3 files, 12 MiB of 1.0 GiB; 1 kept, 2.0 MiB`.
    static func sum(_ sum: CacheSummary) -> String {
        var text = "\(HumanText.count(sum.files, "file", "files")), \(ByteCountText.of(sum.bytes)) of \(ByteCountText.of(sum.most))"
        if sum.coming > 0 { text += "; \(ByteCountText.of(sum.coming)) being downloaded" }
        if sum.kept > 0 { text += "; \(sum.kept) kept, \(ByteCountText.of(sum.keptBytes))" }
        if let copies = sum.copies, let bytes = sum.copyBytes {
            text += "; \(HumanText.count(copies, "copy", "copies")) of your offered files, \(ByteCountText.of(bytes))"
        }
        return text
    }
}

struct CacheClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Delete cached files that no program has open. Kept files stay.")

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Only files unused for this long, such as 7d.", valueName: "duration"))
    var older: Seconds?

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            let cleared = try await client.clearCache(olderThan: older.map { Int64($0.value) })
            if output.json {
                try output.object(cleared)
            } else {
                try output.line("\(HumanText.count(cleared.removed, "file", "files")) deleted, \(ByteCountText.of(cleared.bytes))")
            }
            try output.flush()
            if cleared.inUse > 0 {
                StandardError.note(
                    "\(HumanText.count(cleared.inUse, "file is", "files are")) still open in a program and not deleted."
                )
            }
        }
    }
}

struct CacheKeepCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keep", abstract: "Keep cached files until their hexes are deleted.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("The name or path of a file; `hexlist cache` lists them.", valueName: "file"), completion: .file())
    var files: [String] = []

    func validate() throws {
        guard !files.isEmpty else { throw ValidationError("Which file? `hexlist cache` lists them.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            var table = Table()
            for row in try await client.keepCached(files) {
                if output.json { try output.object(row) } else { table.add("kept", row.path, .good) }
            }
            if !table.isEmpty { try output.table(table) }
            try output.flush()
        }
    }
}
