import ArgumentParser
import Dispatch
import Glibc
import HexlistAPI
import HexlistDaemon
import HexlistModel
import HexlistSystem

@main
struct Hexlistd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hexlistd",
        abstract: "Exchange bundles of links with people on the same network.",
        discussion: """
            Runs in the foreground and logs to standard error. SIGTERM and SIGINT stop it cleanly, SIGHUP reads the configuration again. \
            Every key of the configuration has an environment variable, as HEXLIST_PORT or HEXLIST_LIMITS_CONNECTIONS; the command line \
            goes before the environment, and that before the file.
            """,
        version: ProtocolLimits.appVersion)

    @Option(help: ArgumentHelp("The folder of the store and the identity.", valueName: "path"))
    var stateDir: String?

    @Option(help: ArgumentHelp("The configuration file.", valueName: "path"))
    var config: String?

    @Option(help: ArgumentHelp("The socket of the local API.", valueName: "path"))
    var socket: String?

    @Option(help: ArgumentHelp("The port peers connect to; 0 lets the system choose.", valueName: "n"))
    var port: String?

    @Option(help: ArgumentHelp("The name others see.", valueName: "text"))
    var name: String?

    @Option(help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel: String?

    @Option(help: ArgumentHelp("text or json.", valueName: "format"))
    var logFormat: String?

    @Flag(help: "Check the configuration and start nothing; exit code 2 for a mistake.")
    var check = false

    @Option(help: ArgumentHelp("Put a backup into the state folder and exit; existing files are moved aside.", valueName: "file"))
    var restore: String?

    @Flag(help: "Make the store or the identity that is missing, empty and new, and start nothing; files of a lost store are moved aside.")
    var beginAnew = false

    func validate() throws {
        if [check, restore != nil, beginAnew].count(where: \.self) > 1 {
            throw ValidationError("--check, --restore and --begin-anew do not go together.")
        }
    }

    /// Carries out the options that do not start the daemon: `--check`, `--restore` and `--begin-anew`.
    /// - Returns: the daemon to run; `nil` if nothing is left to do.
    private func daemon() throws -> Daemon? {
        if !check { try ProcFileSystem.check(for: "hexlistd") }
        let environment = Self.environment()
        let settings = ["port": port, "name": name, "log.level": logLevel, "log.format": logFormat].compactMapValues { $0 }
        let paths = HexlistPaths(environment: environment, stateFolder: stateDir, configurationFile: config, socket: socket)
        let daemon = Daemon(options: Daemon.Options(paths: paths, settings: settings, environment: environment))
        if let restore {
            let restored = try Restore.run(restore, into: paths.stateFolder)
            for line in restored.lines { print(TerminalText.clean(line)) }
            return nil
        }
        if beginAnew {
            for line in try MissingPartsRecreation.run(in: paths.stateFolder).lines { print(TerminalText.clean(line)) }
            return nil
        }
        guard check else { return daemon }
        for variable in try daemon.check() {
            let hint = variable.nearest.map { " Did you mean \($0)?" } ?? ""
            print("warning: nothing reads the variable \(TerminalText.clean(variable.name, columns: 80)).\(hint)")
        }
        print("\(TerminalText.clean(paths.configurationFile)) can be used.")
        return nil
    }

    /// Parses the command line before libdispatch starts its first thread, so that usage errors, `--help` and `--version` also work without
    /// /proc. libdispatch ends the process if /proc is missing.
    static func main() {
        do {
            StandardDescriptors.fill()
            guard let daemon = try parse(Array(ProcessArguments.all.dropFirst())).daemon() else { Glibc.exit(ExitStatus.done.rawValue) }
            // Nothing awaits this task, because it ends the program.
            Task {
                do {
                    try await daemon.run()
                    Glibc.exit(ExitStatus.done.rawValue)
                } catch {
                    Glibc.exit(report(error))
                }
            }
            dispatchMain()
        } catch {
            Glibc.exit(report(error))
        }
    }

    /// Prints an error as one or two lines on standard error.
    /// - Returns: the exit code.
    private static func report(_ error: any Error) -> Int32 {
        if let error = error as? HexlistError {
            complain(error)
            return error.code == .configuration || error.code == .badRequest ? ExitStatus.usage.rawValue : ExitStatus.failed.rawValue
        }
        if exitCode(for: error) == .success {  // --help, --version
            print(fullMessage(for: error))
            return ExitStatus.done.rawValue
        }
        let isUsage = exitCode(for: error) == .validationFailure
        complain(HexlistError(.badRequest, message(for: error), hint: isUsage ? "`hexlistd --help` says more." : nil))
        return isUsage ? ExitStatus.usage.rawValue : ExitStatus.failed.rawValue
    }

    private static func complain(_ error: HexlistError) {
        let lines = ["hexlistd: " + TerminalText.clean(error.message)] + (error.hint.map { [TerminalText.clean($0)] } ?? [])
        let text = Array((lines.joined(separator: "\n") + "\n").utf8)
        _ = text.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    private static func environment() -> [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            let pair = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if pair.count == 2, let name = pair.first, let value = pair.last { variables[String(name)] = String(value) }
            entry += 1
        }
        return variables
    }
}
