import ArgumentParser
import HexlistAPI

/// The limit of a list: short on a terminal, complete in a pipe.
struct RowLimit: ParsableArguments {
    @Option(help: ArgumentHelp("Maximum number; 0 lists all. By default 50 on a terminal, else all.", valueName: "n"))
    var limit: Int?

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit needs a number of at least 0.") }
    }

    /// Maximum number of rows.
    func most(_ output: Output) -> Int {
        let most = limit ?? (output.terminal.isInteractive && !output.json ? 50 : 0)
        return most == 0 ? .max : most
    }
}

/// The options of a list with pages.
struct PageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Maximum number; 0 lists all.", valueName: "n"))
    var limit = LocalAPI.defaultPageLimit

    @Option(help: ArgumentHelp("Continue after an earlier list.", valueName: "cursor"))
    var after: String?

    func validate() throws {
        if limit < 0 { throw ValidationError("--limit needs a number of at least 0.") }
    }

    /// Maximum number of rows.
    var most: Int { limit == 0 ? .max : limit }
}
