import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

struct PeersExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Print your trusted, blocked and named peers, to import on another machine.",
        discussion: "One peer per line, as JSON. `hexlist peers import` reads it.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let roster = try await common.withClient { try await $0.exportRoster() }
        let output = common.output
        try output.bytes(roster)
        try output.flush()
        if roster.isEmpty { StandardError.note("Nothing to export: no peer is trusted, blocked or has an alias.") }
    }
}

struct PeersImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Import peers that `hexlist peers export` printed: trust, blocks and aliases.",
        discussion: """
            Peers that are trusted in the file are trusted here before you ever meet them, so import only your own files or those of a \
            friend. Trust is tied to the whole fingerprint. `stranger` removes neither trust nor a block, and a peer without an alias in \
            the file keeps its alias here. A bad line is reported on standard error and the others are imported; exit code 2.
            """)

    @OptionGroup var common: CommonOptions

    @Argument(
        help: ArgumentHelp("The file that `hexlist peers export` wrote; - reads standard input.", valueName: "file"), completion: .file())
    var file: String

    func run() async throws {
        let roster = try InputFile.read(file, limit: LocalAPI.rosterBytes)
        guard common.json || RosterText.isRoster(roster) else {
            throw HexlistError(
                .badRequest, "\(InputFile.name(file)) is not a list of peers.",
                hint: "Nothing was imported. `hexlist peers export` writes one.")
        }
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
        if !done.refused.isEmpty { throw SilentExit(status: .usage) }
    }
}

/// Texts and checks for the import of a roster.
enum RosterText {
    /// Whether a file can be a roster: it is blank, or one of its lines is a JSON object with a fingerprint.
    static func isRoster(_ file: [UInt8]) -> Bool {
        file.allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
            || file.split(separator: UInt8(ascii: "\n")).contains { line in
                guard let value = try? JSONValue(parsing: Array(line)), let object = try? JSONObject(value) else { return false }
                return object["fingerprint"] != nil
            }
    }

    static func summary(_ done: RosterImportResult) -> String {
        var parts = ["\(HumanText.count(done.changed, "peer", "peers")) imported"]
        if done.unchanged > 0 { parts.append("\(done.unchanged) unchanged") }
        if done.own > 0 { parts.append("this machine itself skipped") }
        if !done.refused.isEmpty { parts.append("\(done.refused.count) refused") }
        return parts.joined(separator: ", ") + "."
    }
}
