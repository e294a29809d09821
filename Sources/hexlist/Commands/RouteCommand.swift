import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct RouteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "route", abstract: "List or test the routes for hexes to peers that are away.",
        discussion: """
            A route stores encrypted hexes for peers that are never online together with this machine: a shared folder, or an MQTT \
            broker. Routes are set in the configuration (`routes`). Without a subcommand it lists them.
            """,
        subcommands: [RouteListCommand.self, RouteTestCommand.self], defaultSubcommand: RouteListCommand.self)
}

struct RouteListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the routes, their state, and the envelopes that wait there.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let routes = try await common.withClient { try await $0.routes() }
        let output = common.output
        if output.json {
            for route in routes { try output.object(route) }
        } else if routes.isEmpty {
            StandardError.note("No routes. To add one, set `routes` in the configuration.")
        } else {
            var table = Table(["NAME", "STATE", "WAITING", "LAST OUT", "LAST IN", "PLACE", "WHY"])
            for route in routes { table.add(RouteText.cells(route)) }
            try output.table(table)
        }
        try output.flush()
    }
}

struct RouteTestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Post a letter to this machine itself, and wait until it comes back.",
        discussion: "Exit codes: 0 it came back, 1 it did not, 6 no such route.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("The name of the route; `hexlist route` lists them.", valueName: "name"))
    var name: String

    func run() async throws {
        let result = try await common.withClient { try await $0.testRoute(name) }
        let output = common.output
        if output.json { try output.object(result) } else { try output.line(RouteText.sentence(result, of: name)) }
        try output.flush()
        if result.milliseconds == nil { throw SilentExit(status: .failed) }
    }
}

/// Texts about routes.
enum RouteText {
    /// The error for a name that no route has.
    /// - Parameter known: the names of the routes.
    static func unknown(_ name: String, _ known: [String]) -> HexlistError {
        HexlistError(
            .notFound, "There is no route `\(TerminalText.clean(name))`.",
            hint: known.isEmpty ? "There are none; `routes` in the configuration sets them." : "Routes: \(known.joined(separator: ", ")).")
    }

    static func cells(_ route: RouteView) -> [Table.Cell] {
        let isWorking = route.state.known == .working
        let waiting = route.waiting.map { "\($0.envelopes) for \(PeerDisplayName($0.peer, $0.tag).shown())" }.joined(separator: ", ")
        return [
            Table.Cell(route.name, .strong), Table.Cell(route.state.text, isWorking ? .good : .failure),
            Table.Cell(waiting.isEmpty ? "–" : waiting, columns: 60, minimum: 8),
            Table.Cell(route.lastOut.map { HumanText.moment($0) } ?? "–", .faint),
            Table.Cell(route.lastIn.map { HumanText.moment($0) } ?? "–", .faint), Table.Cell(route.place, columns: 400),
            Table.Cell(why(route), .doubtful, columns: 400),
        ]
    }

    private static func why(_ route: RouteView) -> String {
        let next = route.nextTryAt.map { "next try at \(HumanText.time($0, seconds: true))" }
        return [route.problem, next].compactMap(\.self).joined(separator: "; ")
    }

    static func sentence(_ test: RouteTestResult, of name: String) -> String {
        if let milliseconds = test.milliseconds { return "\(name): round trip took \(milliseconds) ms" }
        return "\(name): the test letter did not come back: \(test.message ?? "unknown reason")"
    }
}
