import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel
import HexlistSystem

/// The options that every command with access to the daemon accepts.
struct CommonOptions: ParsableArguments {
    @Flag(name: .long, help: "Print JSON: one object, or for lists one object per line.")
    var json = false

    @Option(name: .long, help: ArgumentHelp("The daemon's socket.", valueName: "path"))
    var socket: String?

    @Option(
        name: .long, help: ArgumentHelp("The daemon's state folder, which also identifies a running daemon.", valueName: "path"))
    var stateDir: String?

    var output: Output { Output(json: json) }

    /// Runs `body` with a client for the daemon of the current user. Under `sudo`, an error recommends to run without it.
    func withClient<Result>(_ body: (HexlistClient) async throws -> Result) async throws -> Result {
        do {
            return try await withClient(Environment.variables, body)
        } catch var error as HexlistError where error.code == .daemonUnreachable {
            if let invoker = SudoInvoker.ofSudo() {
                error.hint = "Run it without sudo: hexlistd only answers the user it runs as (\(invoker.name))."
            }
            throw error
        }
    }

    /// The paths that the running daemon uses. If none runs, the paths that a daemon started in this environment would use.
    var paths: HexlistPaths { located(Environment.variables).paths }

    /// Returns the paths, and the process that holds the lock of the state folder. Unless a socket is given explicitly, the socket path is
    /// read from the lock file, because the daemon may run with another environment than this command, for instance under cron.
    private func located(_ variables: [String: String]) -> (paths: HexlistPaths, holder: LockFile.Holder?) {
        var paths = HexlistPaths(environment: variables, stateFolder: stateDir, socket: socket)
        let holder = LockFile.holder(of: HexlistPaths.lockName, in: paths.stateFolder)
        if !paths.socketIsNamed, let recorded = holder?.socket { paths.socket = recorded }
        return (paths, holder)
    }

    /// Runs `body` with a client.
    /// - Parameter variables: the environment of the user whose daemon is contacted.
    func withClient<Result>(_ variables: [String: String], _ body: (HexlistClient) async throws -> Result) async throws -> Result {
        let (paths, holder) = located(variables)
        let command = DaemonNotRunningText.command(paths) { access($0, F_OK) == 0 }
        return try await body(
            HexlistClient(
                socketPath: paths.socket, startCommand: command,
                absent: DaemonNotRunningText.absent(paths, holder: holder, startCommand: command)))
    }
}

/// Access to the environment variables of this process.
enum Environment {
    static var variables: [String: String] {
        ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "HEXLIST_STATE_DIR", "HEXLIST_CONFIG", "HEXLIST_SOCKET"]
            .reduce(into: [:]) { variables, name in variables[name] = value(name) }
    }

    static func value(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// The variables that are set, as `NAME=value`, for the environment of another program.
    static func assignments(of names: [String]) -> [String] { names.compactMap { name in value(name).map { "\(name)=\($0)" } } }

    /// The folder for temporary files.
    static var temporaryFolder: String { value("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp" }
}

/// A duration as a command-line argument, such as `10s`, `1.5m`, `250ms`, or a number of seconds.
struct Seconds: ExpressibleByArgument {
    var value: Double

    init(_ value: Double) { self.value = value }

    init?(argument: String) {
        guard let seconds = DurationText.seconds(argument) else { return nil }
        value = seconds
    }

    var defaultValueDescription: String { "\(Int(value))s" }
}

/// The local id of a hex as a command-line argument.
struct HexID: ExpressibleByArgument {
    var value: Int64

    init(_ value: Int64) { self.value = value }

    init?(argument: String) {
        guard let value = Int64(argument), value > 0 else { return nil }
        self.value = value
    }

    static var defaultCompletionKind: CompletionKind { .hexes }
}

/// The number of a hex, or of one of its links: `7`, or `7.2` for the second link of hex 7.
struct HexOrLinkID: ExpressibleByArgument, Equatable {
    var hex: Int64
    /// The number of the link, from 1; `nil` for the hex itself.
    var link: Int?

    init?(argument: String) {
        let parts = argument.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let hex = HexID(argument: String(parts[0])) else { return nil }
        self.hex = hex.value
        guard parts.count == 2 else { return }
        guard let link = Int(parts[1]), link > 0 else { return nil }
        self.link = link
    }

    static var defaultCompletionKind: CompletionKind { .mine }
}
