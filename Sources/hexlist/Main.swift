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
    /// Reads the command line before anything runs on another thread, so that mistakes, `--help` and `--version` need nothing of the system.
    static func main() {
        StandardDescriptors.fill()
        signal(SIGPIPE, SIG_IGN)  // a closed pipe or socket is an error to report, not the end
        NIOSingletons.groupLoopCountSuggestion = 1  // a thread is enough for a connection or two
        let arguments = Array(ProcessArguments.all.dropFirst())
        do {
            if let send = SendCommand(usual: arguments) {
                try ProcFileSystem.check(for: "hexlist")
                MainLoop.run {
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

    /// Runs a command on the threads of the system, and ends the program.
    private static func run(_ command: sending any AsyncParsableCommand) -> Never {
        // Nobody can await it, nor has to: it ends the program.
        Task {
            await end {
                var command = command
                try await command.run()
            }
        }
        dispatchMain()
    }

    /// Runs a command, and ends the program with its status.
    private static func end(_ command: () async throws -> Void) async -> Never {
        do {
            try await command()
            exit(ExitStatus.done.rawValue)
        } catch {
            exit(report(error).rawValue)
        }
    }

    /// The command of the command line. What scripts run most is looked for first: to make all commands, in order to choose one, takes longer than
    /// a send. What is wrong with its words the whole program says, which knows where it stands.
    static func parsed(_ arguments: [String]) throws -> any ParsableCommand {
        if arguments.first == SendCommand.configuration.commandName,
            let command = (try? SendCommand.parseAsRoot(Array(arguments.dropFirst()))) as? SendCommand  // help is a command of its own
        {
            return command
        }
        return try Hexlist.parseAsRoot(arguments)
    }

    /// Reports an error on one or two lines of standard error.
    private static func report(_ error: any Error) -> ExitStatus {
        if let ending = error as? Ending { return ending.status }
        if let error = error as? HexlistError {
            StandardError.complain(error)
            return ExitStatus(error.code)
        }
        if Hexlist.exitCode(for: error) == .success {  // --help, --version
            print(Usage.wrapped(BashScript.completed(Hexlist.fullMessage(for: error)), Terminal.output.width))
            return .done
        }
        StandardError.complain(Usage(Array(ProcessArguments.all.dropFirst())).error(Hexlist.message(for: error)))
        return .usage
    }
}

/// The end of a command that has reported everything already.
struct Ending: Error {
    var status: ExitStatus
}

struct Hexlist: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hexlist",
        abstract: "Send bundles of links to people on the same network, and read what they sent.",
        discussion: "By itself it tells what is new and what to try.",
        version: ProtocolLimits.appVersion,
        groupedSubcommands: [
            CommandGroup(
                name: "Daemon",
                subcommands: [
                    StatusCommand.self, IDCommand.self, ConfigCommand.self, WebCommand.self, BrowserCommand.self, EventsCommand.self,
                    DoctorCommand.self, NotifyCommand.self, BackupCommand.self, RestoreCommand.self,
                ]),
            CommandGroup(name: "Peer", subcommands: [PeersCommand.self, PeerCommand.self, GroupCommand.self, PairCommand.self]),
            CommandGroup(
                name: "Hex",
                subcommands: [
                    SendCommand.self, InboxCommand.self, FetchCommand.self, TransfersCommand.self, CacheCommand.self, SearchCommand.self,
                    ShowCommand.self,
                    OpenCommand.self, ReadCommand.self,
                    DeleteCommand.self, AcceptCommand.self, SaveCommand.self, MineCommand.self,
                    OutboxCommand.self, ExportCommand.self, ImportCommand.self,
                ]),
            CommandGroup(
                name: "File", subcommands: [ShareCommand.self, ServicesCommand.self, FilesCommand.self, LinkCommand.self]),
            CommandGroup(name: "Protocol", subcommands: [FrameCommand.self]),
        ])
}
