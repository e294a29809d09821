import ArgumentParser
import Glibc
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistSystem

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Show the configuration that counts and where each value comes from, or check a file.",
        discussion: """
            A value is a default, or it comes from the file, from a variable of hexlistd's environment or from its command line; the command \
            line goes before the environment, and that before the file. What waits for a restart says what that will make of it.

            --check reads FILE as hexlistd would and needs no running daemon. Exit code 2 for a mistake in it.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Check this file, and change nothing.", valueName: "file"))
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
                    Table.Cell(SettingText.source(item), isGiven ? .plain : .faint, columns: 200),
                ])
            }
            try output.table(table)
        }
        try output.flush()
        guard !output.json else { return }
        StandardError.note("The file is \(inForce.file).")
        if let fault = inForce.fault {
            StandardError.note("What it says now does not count: \(fault)")
            if let hint = inForce.hint { StandardError.note(hint) }
        }
    }

    private func examine(_ file: String, _ output: Output) async throws {
        guard let program = InstalledDaemon.path(), let answer = await Program(program, ["--check", "--config", file]).answer()
        else {
            throw HexlistError(
                .internal, "hexlistd, which reads the file, is neither beside hexlist nor where the system has its programs.",
                hint: "Run `hexlistd --check --config \(ShellText.quoted(TerminalText.clean(file, columns: 200)))` where it is installed.")
        }
        let lines = answer.text.split(separator: "\n").map(String.init)
        let told = lines.map { $0.hasPrefix("hexlistd: ") ? String($0.dropFirst("hexlistd: ".count)) : $0 }
        if output.json {
            try output.object(Checked(file: file, ok: answer.status == 0, message: told.joined(separator: " ")))
        } else if answer.status == 0 {
            for line in told { try output.line(line) }
        }
        try output.flush()
        guard answer.status != 0 else { return }
        if !output.json {
            StandardError.complain(HexlistError(.configuration, told.first ?? "It cannot be used.", hint: told.dropFirst().first))
        }
        throw Ending(status: answer.status == Int(ExitStatus.usage.rawValue) ? .usage : .failed)
    }

    private struct Checked: Encodable, JSONEncodable {
        var file: String
        var ok: Bool
        var message: String
    }
}

enum SettingText {
    /// The source of the value, and what a restart will change about it.
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
