import ArgumentParser
import Glibc
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistSystem

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Show the configuration in effect, or check a file.",
        discussion: """
            The command line of hexlistd overrides its environment, which overrides the file, which overrides the defaults. For values \
            that need a restart, the new value is shown too.

            --check reads FILE as hexlistd would and needs no running daemon. Exit code 2 if the file has an error.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Check this file without using it.", valueName: "file"), completion: .file())
    var check: String?

    func run() async throws {
        let output = common.output
        if let check { return try await examine(check, output) }
        let inForce = try await common.withClient { try await $0.configuration() }
        if output.json {
            try output.object(inForce)
        } else {
            var table = Table(["KEY", "", "FROM"])
            for item in inForce.items {
                let isGiven = item.source != .default
                table.add([
                    Table.Cell(item.key), Table.Cell(item.value.isEmpty ? "–" : item.value, isGiven ? .strong : .plain, columns: 200),
                    Table.Cell(ConfigurationSourceText.source(item), isGiven ? .plain : .faint, columns: 200),
                ])
            }
            try output.table(table)
        }
        try output.flush()
        guard !output.json else { return }
        StandardError.note("File: \(inForce.file)")
        if let fault = inForce.fault {
            StandardError.note("The file has an error, so the previous configuration stays: \(fault)")
            if let hint = inForce.hint { StandardError.note(hint) }
        }
    }

    private func examine(_ file: String, _ output: Output) async throws {
        guard let program = InstalledDaemon.path(), let answer = await Program(program, ["--check", "--config", file]).answer()
        else {
            throw HexlistError(
                .internal, "Cannot find hexlistd, which checks the file.",
                hint: "Run `hexlistd --check --config \(ShellText.quoted(TerminalText.clean(file, columns: 200)))` where it is installed.")
        }
        let lines = answer.text.split(separator: "\n").map(String.init)
        let messages = lines.map { $0.hasPrefix("hexlistd: ") ? String($0.dropFirst("hexlistd: ".count)) : $0 }
        if output.json {
            try output.object(Checked(file: file, ok: answer.status == 0, message: messages.joined(separator: " ")))
        } else if answer.status == 0 {
            for line in messages { try output.line(line) }
        }
        try output.flush()
        guard answer.status != 0 else { return }
        if !output.json {
            StandardError.report(
                HexlistError(.configuration, messages.first ?? "The file cannot be used.", hint: messages.dropFirst().first))
        }
        throw SilentExit(status: answer.status == Int(ExitStatus.usage.rawValue) ? .usage : .failed)
    }

    private struct Checked: Encodable, JSONEncodable {
        var file: String
        var ok: Bool
        var message: String
    }
}

enum ConfigurationSourceText {
    /// Returns the source of a setting, followed by its value after the next restart if that differs.
    static func source(_ item: SettingJSON) -> String {
        let source =
            switch item.source {
            case .default: "default"
            case .file: item.line.map { "the file, line \($0)" } ?? "the file"
            case .environment: item.variable
            case .commandLine: "the command line"
            }
        return item.waiting.map { "\(source); after a restart: \($0.isEmpty ? "none" : $0)" } ?? source
    }
}
