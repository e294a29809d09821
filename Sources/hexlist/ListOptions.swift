import ArgumentParser
import HexlistAPI

/// The limit of a list without pages: by default 50 rows on a terminal and all rows in a pipe.
struct RowLimit: ParsableArguments {
    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp("Maximum number; 0 lists all. By default 50 on a terminal, else all.", valueName: "n"))
    var limit: Int?

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit needs a number of at least 0.") }
    }

    /// Maximum number of rows.
    func maximum(for output: Output) -> Int {
        let rows = limit ?? (output.terminal.isInteractive && !output.json ? 50 : 0)
        return rows == 0 ? .max : rows
    }
}

/// The options of a list that is printed in pages.
struct PageOptions: ParsableArguments {
    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp(
            "Maximum number; 0 lists all. By default \(LocalAPI.defaultPageLimit), with --json in a pipe all.", valueName: "n"))
    var limit: Int?

    @Option(help: ArgumentHelp("Continue after an earlier list.", valueName: "cursor"))
    var after: String?

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit needs a number of at least 0.") }
    }

    /// Returns the maximum number of rows. By default a script that reads JSON gets all rows.
    func maximum(for output: Output) -> Int {
        let rows = limit ?? (output.json && !output.terminal.isInteractive ? 0 : LocalAPI.defaultPageLimit)
        return rows == 0 ? .max : rows
    }
}
