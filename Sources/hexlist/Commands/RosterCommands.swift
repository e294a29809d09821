import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct PeersExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Print the roster: who is trusted, blocked or has an alias, with fingerprints.",
        discussion: "One peer a line, as JSON. `hexlist peers import` takes it on another machine.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let roster = try await common.withClient { try await $0.exportRoster() }
        let output = common.output
        try output.bytes(roster)
        try output.flush()
        if roster.isEmpty { StandardError.note("Nobody is trusted, blocked or has an alias.") }
    }
}

struct PeersImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Trust and block whom a roster names, by their fingerprints.",
        discussion: """
            Who is trusted in it is trusted here before it was ever met, so import only what comes from you or from a friend. Trust goes \
            to the whole fingerprint. `stranger` takes no trust and no block away, and a peer keeps its alias where none is given. A \
            line that is wrong is named on standard error and the others are done; exit code 2.
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("What `hexlist peers export` printed; - for standard input.", valueName: "file"), completion: .file())
    var file: String

    func run() async throws {
        let roster = try InputFile.read(file, limit: LocalAPI.rosterBytes)
        let done = try await common.withClient { try await $0.importRoster(roster) }
        let output = common.output
        if output.json {
            try output.object(done)
        } else {
            for refusal in done.refused {
                StandardError.note(TerminalText.clean("line \(refusal.line): \(refusal.code): \(refusal.message)", columns: 300))
            }
            try output.line(RosterText.summary(done))
        }
        try output.flush()
        if !done.refused.isEmpty { throw Ending(status: .usage) }
    }
}

/// Texts about imports of rosters.
enum RosterText {
    static func summary(_ done: RosterImport) -> String {
        var parts = ["\(HumanText.count(done.changed, "peer", "peers")) taken over"]
        if done.unchanged > 0 { parts.append("\(done.unchanged) as before") }
        if done.own > 0 { parts.append("this machine itself passed over") }
        if !done.refused.isEmpty { parts.append("\(done.refused.count) refused") }
        return parts.joined(separator: ", ") + "."
    }
}
