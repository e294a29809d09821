import ArgumentParser
import HexlistAPI

/// The option of a list whose first rows are enough for a person, and which a script gets whole.
struct RowLimit: ParsableArguments {
    @Option(help: ArgumentHelp("How many; 0 lists all. On a terminal 50 where you do not say, else all.", valueName: "n"))
    var limit: Int?

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit takes a number from 0 up.") }
    }

    /// The most rows.
    func most(_ output: Output) -> Int {
        let most = limit ?? (output.terminal.isInteractive && !output.json ? 50 : 0)
        return most == 0 ? .max : most
    }
}

/// The options of a list that goes on where an earlier one ended.
struct PageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("How many; 0 lists all.", valueName: "n"))
    var limit = LocalAPI.defaultPageLimit

    @Option(help: ArgumentHelp("Go on where an earlier list ended.", valueName: "cursor"))
    var after: String?

    func validate() throws {
        if limit < 0 { throw ValidationError("--limit takes a number from 0 up.") }
    }

    /// The most rows.
    var most: Int { limit == 0 ? .max : limit }
}
