import ArgumentParser
import Dispatch
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel
import HexlistSystem
import NIOCore

@main
enum Main {
    /// Parses the command line before any other thread starts, so that usage errors, `--help` and `--version` work without /proc.
    static func main() {
        StandardDescriptors.fill()
        signal(SIGPIPE, SIG_IGN)  // writing to a closed pipe returns an error instead of ending the process
        NIOSingletons.groupLoopCountSuggestion = 1  // there are only one or two connections, so one thread is enough
        let arguments = Array(ProcessArguments.all.dropFirst())
        do {
            if let send = SendCommand(usual: arguments) {
                try ProcFileSystem.check(for: "hexlist")
                MainThreadEventLoop.run {
                    await end {
                        var send = send
                        try await send.run()
                    }
                }
            }
            var command = try parsed(arguments)
            guard let command = command as? any AsyncParsableCommand else {
                try command.run()
                exit(ExitStatus.done.rawValue)
            }
            try ProcFileSystem.check(for: "hexlist")
            run(command)
        } catch {
            exit(report(error).rawValue)
        }
    }

    /// Runs a command on the default executor and exits.
    private static func run(_ command: sending any AsyncParsableCommand) -> Never {
        // Nothing awaits this task, because it exits the process.
        Task {
            await end {
                var command = command
                try await command.run()
            }
        }
        dispatchMain()
    }

    /// Runs a command and exits with its status.
    private static func end(_ command: () async throws -> Void) async -> Never {
        do {
            try await command()
            exit(ExitStatus.done.rawValue)
        } catch {
            exit(report(error).rawValue)
        }
    }

    /// Parses the command line. First tries to parse it as the called command alone, because building all commands takes longer than many
    /// of them run. If this fails, parses it with all commands, so that errors and help refer to the full command line.
    static func parsed(_ arguments: [String]) throws -> any ParsableCommand {
        if let (type, rest) = called(by: arguments), let command = try? type.parseAsRoot(Array(rest)),
            Swift.type(of: command) == type  // another type for `--help`
        {
            return command
        }
        return try Hexlist.parseAsRoot(arguments)
    }

    /// Finds the command that the first words name, or the default one of its group.
    /// - Returns: the command and its arguments; `nil` if the first word names none.
    private static func called(by arguments: [String]) -> (type: any ParsableCommand.Type, rest: ArraySlice<String>)? {
        var type: any ParsableCommand.Type = Hexlist.self
        var rest = arguments[...]
        while let next = type.configuration.subcommands.first(where: { $0.configuration.commandName == rest.first }) {
            type = next
            rest.removeFirst()
        }
        if let usual = type.configuration.defaultSubcommand { type = usual }
        return type.configuration.subcommands.isEmpty ? (type, rest) : nil
    }

    /// Prints an error as one or two lines on standard error.
    /// - Returns: the exit status.
    private static func report(_ error: any Error) -> ExitStatus {
        if let ending = error as? SilentExit { return ending.status }
        if let error = error as? HexlistError {
            StandardError.report(error)
            return ExitStatus(error.code)
        }
        if Hexlist.exitCode(for: error) == .success {  // --help, --version
            print(Usage.wrapped(BashScript.completed(Hexlist.fullMessage(for: error)), Terminal.output.width))
            return .done
        }
        StandardError.report(Usage(Array(ProcessArguments.all.dropFirst())).error(Hexlist.message(for: error)))
        return .usage
    }
}

/// Ends a command whose error, if any, was already printed.
struct SilentExit: Error {
    var status: ExitStatus
}

struct Hexlist: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hexlist",
        abstract: "Send links and files to machines on your network, and read what they sent.",
        discussion: "Without a command: the news, and a next step to try.",
        version: ProtocolLimits.appVersion,
        groupedSubcommands: [
            CommandGroup(
                name: "Daemon",
                subcommands: [
                    StatusCommand.self, IDCommand.self, ConfigCommand.self, WebCommand.self, BrowserCommand.self, EventsCommand.self,
                    DoctorCommand.self, NotifyCommand.self, BackupCommand.self, RestoreCommand.self,
                ]),
            CommandGroup(
                name: "Peer",
                subcommands: [
                    PeersCommand.self, PeerCommand.self, GroupCommand.self, PairCommand.self, OwnCommand.self, InviteCommand.self,
                    DropCommand.self, RouteCommand.self,
                ]),
            CommandGroup(
                name: "Hex",
                subcommands: [
                    SendCommand.self, InboxCommand.self, FetchCommand.self, TransfersCommand.self, CacheCommand.self, SearchCommand.self,
                    FeedCommand.self, ShowCommand.self,
                    OpenCommand.self, CopyCommand.self, ReadCommand.self,
                    DeleteCommand.self, AcceptCommand.self, SaveCommand.self, MineCommand.self,
                    OutboxCommand.self, ExportCommand.self, ImportCommand.self,
                ]),
            CommandGroup(
                name: "File", subcommands: [ShareCommand.self, ServicesCommand.self, FilesCommand.self, LinkCommand.self]),
            CommandGroup(name: "Protocol", subcommands: [FrameCommand.self]),
        ])
}
